/* logfmt.h - finds the parts of a line of logfmt: time=2026-11-23T10:11:12Z msg="a \"text\"" status=200
 *
 * Grammar : KEY=VALUE pairs with blanks between them. A key has no blanks, control bytes, '=' or quotes. A
 *           value without quotes ends at a blank; a quote in it is refused. A value in quotes may have
 *           escapes, those of JSON and \xHH. A key without '=' has the text "".
 * Checked : a line must fit the grammar as a whole, wanted keys or not, and have at least one '='.
 * Source  : github.com/kr/logfmt and go-logfmt, which differ in details: a '=' in a value is taken.
 * Threads : read-only once complete.
 */
#pragma once

#include "ingest/decode/parts.h"

struct logfmt;

struct logfmt *logfmt_new(void);
void logfmt_free(struct logfmt *lf);
/* Makes it put the values of `key` into this slot; a key that was added before keeps its slot. Returns the
 * key's slot. The key is borrowed. Pre: fewer than PARTS_SLOTS keys. */
unsigned logfmt_add(struct logfmt *lf, struct slice key, unsigned slot);
/* False: *reason, and *at is the byte that does not fit. */
bool logfmt_read(const struct logfmt *lf, struct slice line, struct parts *ps, enum reject_reason *reason,
                 const char **at);
/* Undoes the escapes of a value of logfmt_read(). */
size_t logfmt_unescape(struct slice text, char *out);
