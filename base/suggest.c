#include "base/suggest.h"

#include "base/utf8.h"

#include <stdio.h>

static unsigned smaller(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

/* Optimal string alignment distance; three rows of the matrix are enough for swapped neighbours. */
static unsigned distance(struct slice a, struct slice b)
{
    unsigned rows[3][SUGGEST_TEXT_MAX + 1];
    for (size_t j = 0; j <= b.len; j++)
        rows[0][j] = (unsigned)j;
    for (size_t i = 1; i <= a.len; i++) {
        unsigned *row = rows[i % 3];
        const unsigned *above = rows[(i + 2) % 3], *above2 = rows[(i + 1) % 3];
        row[0] = (unsigned)i;
        for (size_t j = 1; j <= b.len; j++) {
            unsigned best = above[j - 1] + (a.ptr[i - 1] != b.ptr[j - 1]);
            best = smaller(best, smaller(above[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && a.ptr[i - 1] == b.ptr[j - 2] && a.ptr[i - 2] == b.ptr[j - 1])
                best = smaller(best, above2[j - 2] + 1);
            row[j] = best;
        }
    }
    return rows[a.len % 3][b.len];
}

const char *suggest_nearest(struct slice given, const char *const names[])
{
    if (given.len == 0 || given.len > SUGGEST_TEXT_MAX)
        return NULL;
    const char *nearest = NULL;
    unsigned best = given.len < 6 ? 1 : (unsigned)given.len / 3;
    for (; *names != NULL; names++) {
        struct slice name = slice_text(*names);
        if (name.len > SUGGEST_TEXT_MAX)
            continue;
        unsigned d = distance(given, name);
        if (d < best || (d == best && nearest == NULL)) {
            best = d;
            nearest = *names;
        }
    }
    return nearest;
}

const char *suggest_hint(struct slice given, const char *const names[], char buf[SUGGEST_HINT_BYTES])
{
    const char *nearest = suggest_nearest(given, names);
    buf[0] = '\0';
    if (nearest != NULL)
        snprintf(buf, SUGGEST_HINT_BYTES, " (did you mean \"%s\"?)", nearest);
    return buf;
}

const char *suggest_quote(struct slice given, char buf[SUGGEST_QUOTE_BYTES])
{
    const unsigned char *p = (const unsigned char *)given.ptr, *from = p;
    const unsigned char *end = (const unsigned char *)slice_end(given);
    char *out = buf;
    *out++ = '"';
    while (p < end && (size_t)(p - from) < SUGGEST_TEXT_MAX) {
        size_t n = utf8_len(p, end);
        if (n == 0 || *p < 0x20 || *p == 0x7f) {
            out += snprintf(out, 5, "\\x%02x", *p++);
            continue;
        }
        memcpy(out, p, n);
        out += n;
        p += n;
    }
    snprintf(out, 5, p < end ? "…\"" : "\"");
    return buf;
}
