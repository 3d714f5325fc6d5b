/* expire.h - deletes all expired time buckets at once: for `tallyd job run expire`, and at the end of an
 * import. A daemon deletes them bit by bit instead (writer.h).
 *
 * Time   : the time that the newest events confirm (event_time.h), or the wall clock if the operator says so.
 * Errors : those of the store.
 */
#pragma once

#include "daemon/count/event_time.h"
#include "store/reader.h"

#include <stdatomic.h>
#include <stdio.h>

/* Find the time that expiry goes by now. */
bool expire_time(struct store *st, bool by_clock, struct event_time *by, struct err *e) MUST_CHECK;

/* Does anything in the store expire? `watermarks`: the expiry watermarks, by report. */
bool expire_has_limits(const struct store *st, const struct watermarks *watermarks);

/* Delete until nothing expired is left, or until `stop` is set. `st` must be open for writing. Adds the
 * number of deleted rows to *rows. Shows its progress on a terminal, unless `quiet`. */
bool expire_all(struct store *st, bool by_clock, const atomic_bool *stop, bool quiet, uint64_t *rows,
                struct err *e) MUST_CHECK;

/* Count how many expiry watermarks of a report would move if it kept what `r` says. The newest events
 * and the computer's clock give the time. */
bool expire_count(struct store *st, const struct report *r, uint64_t *moving, struct err *e) MUST_CHECK;
/* Print a line for each watermark of these reports: where it is and where it will be. *count: lines printed.
 */
bool expire_show(FILE *out, struct store *st, const struct report *reports, size_t report_count,
                 const struct event_time *by, size_t *count, struct err *e) MUST_CHECK;
