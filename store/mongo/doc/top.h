/* mongo/doc/top.h - cached rankings: the largest series of each hour, day and month of UTC, one document each
 * in R.top. Queries read them by mongo_top(); mongo/job/top_job.c sets them.
 *
 *   pages.top  { _id: "day/20101010", metadata: { date: ISODate("2010-10-10") },
 *                written: 42,        batches that had counts of the period
 *                waiting: true,      present while the ranking lacks some of these batches
 *                ranked: 41,         batches that the ranking has, at least
 *                at: ISODate(…),     time of the ranking
 *                measures: { hits: { total: 123456, series: 1200,
 *                                    top: [ { metadata: { path: "/a" }, value: 900 }, … ] },
 *                            latency: { total: { units: 4318.5, count: 17000, buckets: { "-64": 11, … } },
 *                                       p99: { series: 1200, top: [ { metadata: { path: "/a" },
 *                                                                     value: 0.84, count: 900 }, … ] },
 *                                       p50: …, count: …, … }, … },
 *                open, minutes,      sums of a period that is open: mongo/live/groups.h
 *                applied, modified, v }
 *
 * Written : each batch raises it, by one of its updates, for every hour, day and month that it has counts of.
 * Valid   : a ranking is used if `ranked` and `written` of the same read are equal. Else all series are
 *           scanned; so they are if there is no document, as for periods counted before there were rankings.
 *           A version that raises no `written` must not count beside one that does.
 * Order   : as query/top.h ranks: by value, the largest first, then by key. Counts, sums and numbers of
 *           different texts that are 0 are left out; other measures than those of aggregate/rank_by.h are not
 *           ranked. `series` is the number of all series that a scan would show. Those without a value are in
 *           it, but not in the list: an answer that must show them is scanned.
 * Sketches: a histogram has a list for each of its figures, and so has a distinct count. An entry has the
 *           figure's value, and of how many events. `total` is a bucket of all series, as mongo/doc/sketch.h
 *           has it.
 * Job     : it ranks a period that is over and quiet (mongo/job/top_job.c). Compare-and-set on `written`: a
 *           batch that commits meanwhile makes the job's update fail. No other guard is needed
 *           (docs/LEDGER.md).
 * Limits  : MONGO_TOP_SERIES series and MONGO_TOP_BYTES for each measure, MONGO_TOP_FIGURE_BYTES for each
 *           figure of a sketch. If more series are asked for, they are scanned. Reports without dimensions
 *           have no rankings.
 */
#pragma once

#include "store/mongo/handle/handle.h"

#define MONGO_TOP_SERIES       1000
#define MONGO_TOP_BYTES        ((size_t)256 << 10) /* keys of one measure */
/* Bytes of one list, in the document: a histogram has eight. */
#define MONGO_TOP_FIGURE_BYTES ((size_t)64 << 10)

/* The resolutions that are ranked. */
#define MONGO_TOP_SPANS 3
extern const enum span mongo_top_spans[MONGO_TOP_SPANS];
bool mongo_top_has_span(enum span span);

bool mongo_top_is_cached(const struct report *r);
/* The `_id` of a ranking: "day/20101010". */
#define MONGO_TOP_ID_BYTES (MONGO_TIME_BYTES + 8)
const char *mongo_top_id(enum span span, int64_t ms, char buf[MONGO_TOP_ID_BYTES]);

bool mongo_top(struct store *st, const struct store_top *what, top_fn *fn, void *context,
               struct top_total *total, struct scan_stats *stats, bool *found, struct err *e) MUST_CHECK;
