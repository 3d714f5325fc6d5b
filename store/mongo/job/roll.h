/* mongo/job/roll.h - rolls up: sets R.year and R.week from R.month, when a month or week is over. Any daemon
 * or the operator may run it (store/jobs.h). It fails if the server does.
 *
 *   pages.year { _id: "2010/%2Fapache_pb.gif", metadata, total: { "10": 2 },
 *                bytes: { total: { "10": 4652 } }, applied: { rollup: 17 }, modified, v }
 *   pages.week { _id: "20101004/%2Fapache_pb.gif", metadata, weekly: 2, daily: { "6": 2 },
 *                bytes: { weekly: 4652, daily: { "6": 4652 } }, applied: { rollup: 18 }, modified, v }
 *   pages.latency.week and pages.visitors.week: the same of sketches (mongo/handle/kind.h)
 *
 * Exact  : values are set, never added. The job reads a month's stamp, waits for every open batch, then reads
 *          R.month: so it reads all that the stamp counts. A batch that comes meanwhile raises the stamp, and
 *          the month is rolled up again. mongo/job/merge.h shows how documents are set.
 * Lease  : one for each report and target, which anybody may take: mongo/doc/version_stamps.h.
 * Pace   : a month or week that is over waits until it is quiet: mongo/job/waits.h.
 * Cost   : the months of a year that wait are rolled up together: one pass over their documents, and one
 *          update for each document of the year, sent as a batch is. A week takes one pass over each of its
 *          months, one or two; of a distinct count over its days.
 * Weeks  : for other tools, and only if they are wanted (store_roll.weeks): a chart of a year by weeks takes
 *          12 documents of months, or 53 of weeks. A week has all its days or does not exist: it is deleted
 *          when its first day expires (mongo/job/expire.c), and not set again. Weeks begin on the day that
 *          the stamps say. Only a rebuild changes the day; it deletes the weeks of the old day
 *          (mongo/job/weeks.h).
 */
#pragma once

#include "store/jobs.h"
#include "store/mongo/handle/handle.h"

bool mongo_roll(struct store *st, const struct store_roll *what, struct err *e) MUST_CHECK;
bool mongo_jobs(struct store *st, job_fn *fn, void *context, struct err *e) MUST_CHECK;
