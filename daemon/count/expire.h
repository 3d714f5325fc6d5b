/* expire.h - what reports need not keep, deleted by hand or at the end of an import: all of it at once. A run
 * does so bit by bit (writer.h).
 *
 * Time : that which the newest events confirm (event_time.h); or that of the computer's clock, where the
 *        operator says so.
 */
#pragma once

#include "store/event_time.h"

#include <stdatomic.h>
#include <stdio.h>

/* The time that expiry goes by now. */
bool expire_time(struct store *st, bool by_clock, struct event_time *by, struct err *e);

/* Does anything of the store expire? `marks`: by report, its watermarks. */
bool expire_has_limits(const struct store *st, const struct marks *marks);

/* Of a handle that writes, until nothing is left, or it is told to stop; `rows` are added to. On a terminal
 * it shows how far it is, unless `quiet`. */
bool expire_all(struct store *st, bool by_clock, const atomic_bool *stop, bool quiet, uint64_t *rows,
                struct err *e);

/* How many watermarks of a report, of which `keep` is taken, would move. */
bool expire_count(struct store *st, const struct report *r, uint64_t *moving, struct err *e);
/* Where the watermarks of these reports are, and where they are to be: a line each. *count: of lines. */
bool expire_show(FILE *out, struct store *st, const struct report *reports, size_t report_count,
                 const struct event_time *by, size_t *count, struct err *e);
