/* text.h - a growing string, for everything that is printed, served or stored as text.
 *
 * Owner : its user: begin with zeros, end with text_fini().
 * Bytes : NUL-terminated once something was added; `len` does not count the terminator.
 * Errors: none; if memory runs out, the process ends (mem.h).
 */
#pragma once

#include "base/check.h"
#include "base/slice.h"

#define TEXT_HIDDEN "…" /* stands where a secret is not shown */

struct text {
    char *ptr; /* NULL until something is added */
    size_t len, capacity;
};

void text_fini(struct text *t);
void text_clear(struct text *t);
/* Cuts the text to its first `len` bytes. */
void text_cut(struct text *t, size_t len);
void text_add(struct text *t, const char *bytes, size_t len);
void text_puts(struct text *t, const char *string);
void text_putc(struct text *t, char c);
void text_printf(struct text *t, const char *format, ...) PRINTF_LIKE(2, 3);
/* Adds `s` as a JSON string with its quotes; bytes that are not UTF-8 become U+FFFD. */
void text_json(struct text *t, struct slice s);
/* Adds `s` as a CSV field, quoted only if RFC 4180 requires it. */
void text_csv(struct text *t, struct slice s);
/* Adds `s` as a CSV field that a spreadsheet takes for a text: a single quote precedes it if it begins as a
 * formula does (OWASP, "CSV Injection"). A lone "-" begins none. */
void text_csv_cell(struct text *t, struct slice s);
/* Adds `s` for a terminal, as show.h has it. */
void text_show(struct text *t, struct slice s);
/* Adds a URL with TEXT_HIDDEN for its password: "mongodb://bob:…@host/db". */
void text_url(struct text *t, struct slice url);
/* Adds `s`, percent-encoding '%' and the bytes of `which`; if that is NULL, all bytes but the unreserved
 * characters of RFC 3986. */
void text_percent(struct text *t, struct slice s, const char *which);

/* The whole text as a slice; valid until the next change. */
static inline struct slice text_slice(const struct text *t)
{
    return slice_of(t->ptr, t->len);
}
