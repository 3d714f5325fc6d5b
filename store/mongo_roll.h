/* mongo_roll.h - R.year from R.month: the months that are over, set, never added.
 *
 *   pages.year { _id: "2010/%2Fapache_pb.gif", metadata, total: { "10": 2 },
 *                bytes: { total: { "10": 4652 } }, applied: { rollup: 17 }, modified, v }
 *
 * Exact  : a month's mark is read, then every batch that is open is waited for, then R.month is read:
 *          whatever the mark counts is in what is read. What comes meanwhile makes the mark another, and the
 *          month is rolled up again. Values are taken over as they stand; a mean is told beside what it is
 *          made of, with the time: it is as of then.
 * Who    : anybody, by a lease for each report; see mongo_marks.h.
 * Pace   : a month that is over, once nothing was written to it for store_roll.quiet_ms; but if that does not
 *          end, after MONGO_ROLL_WAIT_MS.
 * Cost   : those months of a year that wait go together: one pass over their documents, and an update of each
 *          of the year, sent as those of a batch are.
 * Memory : MONGO_ROLL_LOG_BYTES, and of each month what a server answers at once.
 */
#pragma once

#include "store/mongo_internal.h"

#define MONGO_ROLL_WAIT_MS   (15 * MINUTE_MS)
#define MONGO_ROLL_LOG_BYTES ((size_t)256 << 10) /* packed, of updates that are sent together */
#define MONGO_ROLL_SLOT      "rollup"
#define MONGO_ROLL_APPLIED   "applied." MONGO_ROLL_SLOT

bool mongo_roll(struct store *st, const struct store_roll *what, struct err *e);
bool mongo_jobs(struct store *st, job_fn *fn, void *context, struct err *e);
