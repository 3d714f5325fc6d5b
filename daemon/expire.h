/* expire.h - what reports need not keep, let go by hand or at the end of an import: all of it at once. A run
 * does so bit by bit (writer.h).
 *
 * Clock : that of the computer, which is believed.
 */
#pragma once

#include "store/store.h"

#include <stdatomic.h>
#include <stdio.h>

/* Of a handle that writes, until nothing is left, or it is told to stop; `rows` are added to. On a terminal
 * it shows how far it is, unless `quiet`. */
bool expire_all(struct store *st, const atomic_bool *stop, bool quiet, uint64_t *rows, struct err *e);

/* How many marks of a report, of which `keep` is taken, would move. */
bool expire_count(struct store *st, const struct report *r, uint64_t *moving, struct err *e);
/* Where the marks of these reports are, and where they are to be: a line each. *count: of lines. */
bool expire_show(FILE *out, struct store *st, const struct report *reports, size_t report_count,
                 size_t *count, struct err *e);
