/* text.h - a growing string, for everything that is printed, served or stored as text.
 *
 * Always NUL-terminated once something was added; `len` does not count the terminator.
 */
#pragma once

#include "base/check.h"
#include "base/slice.h"

struct text {
    char *ptr; /* NULL while empty */
    size_t len, capacity;
};

void text_fini(struct text *t);
void text_clear(struct text *t);
/* Back to its first `len` bytes. */
void text_cut(struct text *t, size_t len);
void text_add(struct text *t, const char *bytes, size_t len);
void text_puts(struct text *t, const char *string);
void text_putc(struct text *t, char c);
void text_printf(struct text *t, const char *format, ...) PRINTF_LIKE(2, 3);
/* As a JSON string with its quotes; bytes that are not UTF-8 become U+FFFD. */
void text_json(struct text *t, struct slice s);
/* As a CSV field, quoted only where RFC 4180 asks for it. */
void text_csv(struct text *t, struct slice s);
/* Percent-encoded: '%' and the bytes of `which`; NULL: all but the unreserved characters of RFC 3986. */
void text_percent(struct text *t, struct slice s, const char *which);

/* The whole text as a slice; valid until the next change. */
static inline struct slice text_slice(const struct text *t)
{
    return slice_of(t->ptr, t->len);
}
