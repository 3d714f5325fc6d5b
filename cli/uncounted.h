/* uncounted.h - what `verify` finds that no store has counted: ends of files, and files beside them. verify
 * can only say that what was counted is right; this says what was not.
 *
 *   a tail       lines behind the position, older than UNCOUNTED_AGE_MS: a daemon would have them by now
 *   a file       one that was named and never counted, or a rotated one that was not, and is not older than
 *                all that were, or changed after the log itself
 *   history      a rotated file that is older than all that were: listed, but as it should be
 *   lost         a followed file whose rest was not found
 */
#pragma once

#include "base/err.h"
#include "store/reader.h"

#include <stdio.h>

#define UNCOUNTED_AGE_MS 60000

enum uncounted_kind { UNCOUNTED_TAIL, UNCOUNTED_FILE, UNCOUNTED_HISTORY, UNCOUNTED_LOST };

struct uncounted_row {
    enum uncounted_kind kind;
    char *name;       /* path; owned */
    int64_t to, size; /* counted up to; bytes that it has, -1: not shown */
};

struct uncounted {
    struct uncounted_row *rows;
    size_t count, capacity;
};

void uncounted_add(struct uncounted *u, enum uncounted_kind kind, const char *name, int64_t to, int64_t size);
/* Add the tail of a plain file that is counted up to `to`, if it has whole lines there that are old
 * enough. */
void uncounted_add_tail(struct uncounted *u, const char *path, int64_t to, int64_t now_ms);
/* The same of a packed file that is known to have lines there. */
void uncounted_add_packed(struct uncounted *u, const char *path, int64_t to, int64_t now_ms);
/* Add the followed files whose rest was not found. */
bool uncounted_add_lost(struct uncounted *u, struct store *st, struct err *e) MUST_CHECK;
/* Is anything else than history among them? */
bool uncounted_matters(const struct uncounted *u);
/* Print a table; nothing if there is none. */
void uncounted_print(const struct uncounted *u, FILE *out);
void uncounted_fini(struct uncounted *u);
