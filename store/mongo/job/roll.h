/* mongo/job/roll.h - R.year and R.week from R.month: what is over, set, never added.
 *
 *   pages.year { _id: "2010/%2Fapache_pb.gif", metadata, total: { "10": 2 },
 *                bytes: { total: { "10": 4652 } }, applied: { rollup: 17 }, modified, v }
 *   pages.week { _id: "20101004/%2Fapache_pb.gif", metadata, weekly: 2, daily: { "6": 2 },
 *                bytes: { weekly: 4652, daily: { "6": 4652 } }, applied: { rollup: 18 }, modified, v }
 *
 * Exact  : a month's stamp is read, then every batch that is open is waited for, then R.month is read:
 *          whatever the stamp counts is in what is read. What comes meanwhile makes the stamp another, and
 *          the month is rolled up again. What is set is in mongo/job/merge.h.
 * Who    : anybody, by a lease for each report; see mongo/doc/stamps.h.
 * Pace   : a month, or week, that is over, once nothing was written to it for store_roll.quiet_ms; but if
 *          that does not end, after MONGO_ROLL_WAIT_MS.
 * Cost   : those months of a year that wait go together: one pass over their documents, and an update of each
 *          of the year, sent as those of a batch are. A week is a pass over those of its month, or two.
 * Weeks  : for whoever reads them by other tools, and only where they are wanted (store_roll.weeks): a
 *          chart of a year by weeks takes 12 documents of months, or 53 of weeks. All days of a week are
 *          there, or it is not: it goes with its first day (mongo/job/expire.c), and is not set again. They
 *          begin on the day that the stamps say; on another only by a rebuild, which deletes those that there
 *          are (mongo/job/weeks.h).
 */
#pragma once

#include "store/mongo/handle/handle.h"

#define MONGO_ROLL_WAIT_MS (15 * MINUTE_MS)

bool mongo_roll(struct store *st, const struct store_roll *what, struct err *e);
bool mongo_jobs(struct store *st, job_fn *fn, void *context, struct err *e);
