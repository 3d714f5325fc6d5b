#include "base/err.h"

#include "base/show.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Servers send lines and tabs in their errors: these become spaces. */
static void make_safe(char text[sizeof((struct err *)0)->text])
{
    char raw[sizeof((struct err *)0)->text];
    size_t len = strlen(text);
    for (size_t i = 0; i < len; i++)
        raw[i] = text[i] == '\n' || text[i] == '\t' ? ' ' : text[i];
    show_into(text, sizeof raw, slice_of(raw, len));
}

static void fill(struct err *e, int code, bool retryable, const char *format, va_list args)
{
    e->code = code;
    e->retryable = retryable;
    vsnprintf(e->text, sizeof e->text, format, args);
    make_safe(e->text);
}

bool err_set(struct err *e, int code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fill(e, code, false, format, args);
    va_end(args);
    return false;
}

bool err_set_retryable(struct err *e, int code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fill(e, code, true, format, args);
    va_end(args);
    return false;
}

bool err_prefix(struct err *e, const char *format, ...)
{
    char tail[sizeof e->text];
    memcpy(tail, e->text, sizeof tail);
    va_list args;
    va_start(args, format);
    int n = vsnprintf(e->text, sizeof e->text, format, args);
    va_end(args);
    size_t used = n < 0 ? 0 : (size_t)n < sizeof e->text ? (size_t)n : sizeof e->text - 1;
    snprintf(e->text + used, sizeof e->text - used, ": %.*s", (int)(sizeof tail - used), tail);
    make_safe(e->text);
    return false;
}
