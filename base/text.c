#include "base/text.h"

#include "base/mem.h"
#include "base/show.h"
#include "base/utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void text_fini(struct text *t)
{
    free(t->ptr);
    *t = (struct text){0};
}

void text_clear(struct text *t)
{
    text_cut(t, 0);
}

void text_cut(struct text *t, size_t len)
{
    ASSERT(len <= t->len);
    t->len = len;
    if (t->ptr != NULL)
        t->ptr[len] = '\0';
}

static void reserve(struct text *t, size_t more)
{
    t->ptr = xgrow(t->ptr, &t->capacity, t->len + more + 1, 1);
}

void text_add(struct text *t, const char *bytes, size_t len)
{
    reserve(t, len);
    if (len > 0)
        memcpy(t->ptr + t->len, bytes, len);
    t->len += len;
    t->ptr[t->len] = '\0';
}

void text_puts(struct text *t, const char *string)
{
    text_add(t, string, strlen(string));
}

void text_putc(struct text *t, char c)
{
    text_add(t, &c, 1);
}

void text_printf(struct text *t, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int need = vsnprintf(NULL, 0, format, args);
    va_end(args);
    ASSERT(need >= 0);
    reserve(t, (size_t)need);
    vsnprintf(t->ptr + t->len, (size_t)need + 1, format, again);
    va_end(again);
    t->len += (size_t)need;
}

void text_json(struct text *t, struct slice s)
{
    const unsigned char *p = (const unsigned char *)s.ptr;
    const unsigned char *end = (const unsigned char *)slice_end(s);
    text_putc(t, '"');
    while (p < end) {
        size_t n = utf8_len(p, end);
        if (n == 0) {
            text_puts(t, "\\ufffd");
            p++;
            continue;
        }
        if (*p == '"' || *p == '\\')
            text_printf(t, "\\%c", *p);
        else if (*p < 0x20 || *p == 0x7f || *p == '<' || *p == '>' || *p == '&')
            text_printf(t, "\\u%04x", *p); /* <, > and & too: a page may embed the JSON */
        else
            text_add(t, (const char *)p, n);
        p += n;
    }
    text_putc(t, '"');
}

void text_show(struct text *t, struct slice s)
{
    const char *end = slice_end(s);
    size_t len;
    text_add(t, "", 0);
    for (const char *p = s.ptr; p < end; p += len) {
        bool is_safe = show_is_safe(p, end, &len);
        if (is_safe)
            text_add(t, p, len);
        for (size_t i = 0; i < len && !is_safe; i++)
            text_printf(t, "\\x%02x", (unsigned char)p[i]);
    }
}

void text_csv(struct text *t, struct slice s)
{
    bool quote = false;
    for (size_t i = 0; i < s.len && !quote; i++)
        quote = s.ptr[i] == ',' || s.ptr[i] == '"' || s.ptr[i] == '\n' || s.ptr[i] == '\r';
    if (!quote) {
        text_add(t, s.ptr, s.len);
        return;
    }
    text_putc(t, '"');
    for (size_t i = 0; i < s.len; i++) {
        if (s.ptr[i] == '"')
            text_putc(t, '"');
        text_putc(t, s.ptr[i]);
    }
    text_putc(t, '"');
}

void text_csv_cell(struct text *t, struct slice s)
{
    struct text cell = {0};
    bool is_formula = s.len > 0 && s.ptr[0] != '\0' && strchr("=+-@\t\r", s.ptr[0]) != NULL;
    if (!is_formula || slice_is(s, "-")) {
        text_csv(t, s);
        return;
    }
    text_putc(&cell, '\'');
    text_add(&cell, s.ptr, s.len);
    text_csv(t, text_slice(&cell));
    text_fini(&cell);
}

static bool is_unreserved(unsigned char c)
{
    return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || c == '-' || c == '_' ||
           c == '.' || c == '~';
}

void text_percent(struct text *t, struct slice s, const char *which)
{
    static const char digits[] = "0123456789ABCDEF";
    for (size_t i = 0; i < s.len; i++) {
        unsigned char c = (unsigned char)s.ptr[i];
        bool stays = which == NULL ? is_unreserved(c) : c != '%' && (c == '\0' || strchr(which, c) == NULL);
        if (stays) {
            text_putc(t, (char)c);
        } else {
            text_putc(t, '%');
            text_putc(t, digits[c >> 4]);
            text_putc(t, digits[c & 15]);
        }
    }
}

void text_url(struct text *t, struct slice url)
{
    const char *end = slice_end(url), *from = memmem(url.ptr, url.len, "://", 3);
    const char *colon = NULL, *at = NULL;
    /* the last @ before the path: a careless password may have one, too */
    for (const char *p = from != NULL ? from + 3 : end; p < end && *p != '/' && *p != '?'; p++) {
        if (*p == ':' && colon == NULL)
            colon = p;
        if (*p == '@')
            at = p;
    }
    if (at == NULL || colon == NULL || colon > at) {
        text_add(t, url.ptr, url.len);
        return;
    }
    text_add(t, url.ptr, (size_t)(colon + 1 - url.ptr));
    text_puts(t, TEXT_HIDDEN);
    text_add(t, at, (size_t)(end - at));
}
