/* slice.h - a borrowed run of bytes: no terminator, NUL is an ordinary byte, never owned.
 *
 * A slice lives as long as the memory it points into (a line's block, a message, an arena).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

struct slice {
    const char *ptr;
    size_t len;
};

static inline struct slice slice_of(const char *ptr, size_t len)
{
    return (struct slice){ptr, len};
}

static inline struct slice slice_text(const char *text)
{
    return (struct slice){text, strlen(text)};
}

static inline bool slice_equal(struct slice a, struct slice b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

/* Compares bytes; a slice that begins the other comes first. Negative, 0 or positive, as memcmp(). */
static inline int slice_compare(struct slice a, struct slice b)
{
    size_t shorter = a.len < b.len ? a.len : b.len;
    int order = shorter > 0 ? memcmp(a.ptr, b.ptr, shorter) : 0;
    return order != 0 ? order : (a.len > b.len) - (a.len < b.len);
}

static inline bool slice_begins(struct slice s, struct slice with)
{
    return s.len >= with.len && slice_equal(slice_of(s.ptr, with.len), with);
}

static inline bool slice_ends(struct slice s, struct slice with)
{
    return s.len >= with.len && (with.len == 0 || memcmp(s.ptr + s.len - with.len, with.ptr, with.len) == 0);
}

static inline bool slice_is(struct slice a, const char *text)
{
    return slice_equal(a, slice_text(text));
}

/* The index of `s` in a list of names that ends with NULL. -1: it is none of them. */
static inline int slice_find(struct slice s, const char *const *names)
{
    for (int i = 0; names[i] != NULL; i++) {
        if (slice_is(s, names[i]))
            return i;
    }
    return -1;
}

/* Is it a valid name of a report, field or source: a-z, then a-z, 0-9 and _, shorter than `bytes`? */
static inline bool slice_is_name(struct slice s, size_t bytes)
{
    if (s.len == 0 || s.len >= bytes || s.ptr[0] < 'a' || s.ptr[0] > 'z')
        return false;
    for (size_t i = 1; i < s.len; i++) {
        char c = s.ptr[i];
        if (!(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9') && c != '_')
            return false;
    }
    return true;
}

/* The slice without spaces around it. */
static inline struct slice slice_trim(struct slice s)
{
    for (; s.len > 0 && s.ptr[0] == ' '; s.ptr++)
        s.len--;
    while (s.len > 0 && s.ptr[s.len - 1] == ' ')
        s.len--;
    return s;
}

/* Cuts `rest` at its first `byte`: returns what is before it, leaves what is after it. Without that byte, it
 * returns all and leaves nothing. */
static inline struct slice slice_cut(struct slice *rest, char byte)
{
    const char *at = rest->len > 0 ? (const char *)memchr(rest->ptr, byte, rest->len) : NULL;
    struct slice before = *rest;
    if (at == NULL) {
        *rest = slice_of(rest->ptr + rest->len, 0);
        return before;
    }
    before.len = (size_t)(at - rest->ptr);
    *rest = slice_of(at + 1, rest->len - before.len - 1);
    return before;
}

/* The byte after the last one. An empty slice, whose pointer may be NULL, returns its pointer. */
static inline const char *slice_end(struct slice s)
{
    return s.len > 0 ? s.ptr + s.len : s.ptr;
}

/* Writes the bytes to out + *len, unless `out` is NULL, and adds their number to *len. */
static inline void slice_write(struct slice s, char *out, size_t *len)
{
    if (out != NULL && s.len > 0)
        memcpy(out + *len, s.ptr, s.len);
    *len += s.len;
}

/* For printf's "%.*s". */
#define SLICE_ARGS(s) (int)(s).len, (s).ptr
