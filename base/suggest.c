#include "base/suggest.h"

#include "base/utf8.h"

#include <stdint.h>
#include <stdio.h>

static unsigned smaller(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

static uint64_t letters_of(struct slice s)
{
    uint64_t letters = 0;
    for (size_t i = 0; i < s.len; i++)
        letters |= (uint64_t)1 << (s.ptr[i] & 63);
    return letters;
}

/* The least distance that two texts can have: by their lengths, and by letters that only one of them has. */
static unsigned distance_bound(struct slice a, struct slice b)
{
    uint64_t in_a = letters_of(a), in_b = letters_of(b);
    unsigned by_length = (unsigned)(a.len > b.len ? a.len - b.len : b.len - a.len);
    unsigned only_a = (unsigned)__builtin_popcountll(in_a & ~in_b);
    unsigned only_b = (unsigned)__builtin_popcountll(in_b & ~in_a);
    unsigned by_letters = only_a > only_b ? only_a : only_b;
    return by_length > by_letters ? by_length : by_letters;
}

/* Optimal string alignment distance; three rows of the matrix are enough for swapped neighbours. Once it
 * exceeds `most`, the result is any number above that. */
static unsigned distance(struct slice a, struct slice b, unsigned most)
{
    unsigned rows[3][SUGGEST_TEXT_MAX + 1], least_above = 0;
    if (distance_bound(a, b) > most)
        return most + 1;
    for (size_t j = 0; j <= b.len; j++)
        rows[0][j] = (unsigned)j;
    for (size_t i = 1; i <= a.len; i++) {
        unsigned *row = rows[i % 3];
        const unsigned *above = rows[(i + 2) % 3], *above2 = rows[(i + 1) % 3];
        unsigned least = row[0] = (unsigned)i;
        for (size_t j = 1; j <= b.len; j++) {
            unsigned best = above[j - 1] + (a.ptr[i - 1] != b.ptr[j - 1]);
            best = smaller(best, smaller(above[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && a.ptr[i - 1] == b.ptr[j - 2] && a.ptr[i - 2] == b.ptr[j - 1])
                best = smaller(best, above2[j - 2] + 1);
            row[j] = best;
            least = smaller(least, best);
        }
        if (smaller(least, least_above) > most) /* a swap looks two rows back */
            return most + 1;
        least_above = least;
    }
    return rows[a.len % 3][b.len];
}

/* The nearest name whose distance is at most `most`. */
static const char *nearest_within(struct slice given, const char *const names[], unsigned most)
{
    if (given.len == 0 || given.len > SUGGEST_TEXT_MAX)
        return NULL;
    const char *nearest = NULL;
    unsigned best = most;
    for (; *names != NULL; names++) {
        struct slice name = slice_text(*names);
        if (name.len > SUGGEST_TEXT_MAX)
            continue;
        unsigned d = distance(given, name, best);
        if (d < best || (d == best && nearest == NULL)) {
            best = d;
            nearest = *names;
        }
    }
    return nearest;
}

const char *suggest_nearest(struct slice given, const char *const names[])
{
    return nearest_within(given, names, given.len < 6 ? 1 : (unsigned)given.len / 3);
}

const char *suggest_slip(struct slice given, const char *const names[])
{
    return nearest_within(given, names, 1);
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
