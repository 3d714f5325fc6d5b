/* mongo/doc/top.h - cached rankings: the largest series of each hour, day and month of UTC, one document each
 * in R.top. Queries read them by mongo_top(); mongo/job/top_job.c sets them.
 *
 *   pages.top  { _id: "day/20101010", metadata: { date: ISODate("2010-10-10") },
 *                written: 42,        batches that had counts of the period
 *                waiting: true,      present while the ranking lacks some of these batches
 *                ranked: 41,         batches that the ranking has, at least
 *                at: ISODate(…),     time of the ranking
 *                measures: { hits: { total: 123456, series: 1200,
 *                                    top: [ { metadata: { path: "/a" }, value: 900 }, … ] }, … },
 *                open, minutes,      sums of a period that is open: mongo/live/groups.h
 *                applied, modified, v }
 *
 * Written : each batch raises it, by one of its updates, for every hour, day and month that it has counts of.
 * Valid   : a ranking is used if `ranked` and `written` of the same read are equal. Else all series are
 *           scanned; so they are if there is no document, as for periods counted before there were rankings.
 *           A version that raises no `written` must not count beside one that does.
 * Order   : as query/top.h ranks: by value, the largest first, then by key. Series whose value is 0 are left
 *           out. Counts and sums only: other measures cannot be totalled over series that are not listed.
 *           `series` is the number of all series.
 * Job     : it ranks a period that is over and quiet (mongo/job/top_job.c). Compare-and-set on `written`: a
 *           batch that commits meanwhile makes the job's update fail. No other guard is needed
 *           (docs/LEDGER.md).
 * Limits  : MONGO_TOP_SERIES series and MONGO_TOP_BYTES for each measure. Reports without dimensions have no
 *           rankings.
 */
#pragma once

#include "store/mongo/handle/handle.h"

#define MONGO_TOP_SERIES 1000
#define MONGO_TOP_BYTES  ((size_t)256 << 10) /* entries of one measure */

/* The resolutions that are ranked. */
#define MONGO_TOP_SPANS 3
extern const enum span mongo_top_spans[MONGO_TOP_SPANS];

bool mongo_top_is_cached(const struct report *r);
bool mongo_top_ranks(const struct measure *m);
/* The `_id` of a ranking: "day/20101010". */
#define MONGO_TOP_ID_BYTES (MONGO_TIME_BYTES + 8)
const char *mongo_top_id(enum span span, int64_t ms, char buf[MONGO_TOP_ID_BYTES]);

bool mongo_top(struct store *st, const struct store_top *what, scan_fn *fn, void *context, int64_t *total,
               struct scan_stats *stats, bool *found, struct err *e) MUST_CHECK;
