#include "base/log.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

static const char *const level_names[] = {"debug", "info", "warn", "error"};
static atomic_int lowest = LOG_LEVEL_INFO;

void log_set_level(enum log_level level)
{
    ASSERT((unsigned)level < COUNT_OF(level_names));
    atomic_store(&lowest, (int)level);
}

void log_line(enum log_level level, const char *event, const char *fields, ...)
{
    if ((int)level < atomic_load(&lowest))
        return;
    char line[2048];
    int n = snprintf(line, sizeof line, "level=%s event=%s ", level_names[level], event);
    ASSERT(n > 0 && (size_t)n < sizeof line);
    va_list args;
    va_start(args, fields);
    int m = vsnprintf(line + n, sizeof line - (size_t)n - 1, fields, args);
    va_end(args);
    size_t len = (size_t)n + (m > 0 ? (size_t)m : 0);
    if (len > sizeof line - 2)
        len = sizeof line - 2;
    line[len++] = '\n';
    if (write(STDERR_FILENO, line, len) < 0)
        return; /* nobody is listening; there is nowhere to say so */
}

const char *log_quote(const char *text, char buf[LOG_QUOTE_BYTES])
{
    size_t n = 0;
    buf[n++] = '"';
    for (; *text != '\0' && n < LOG_QUOTE_BYTES - 4; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\')
            buf[n++] = '\\';
        buf[n++] = c < 0x20 || c == 0x7f ? ' ' : (char)c;
    }
    buf[n++] = '"';
    buf[n] = '\0';
    return buf;
}
