/* mongo/doc/top.h - the largest series of each hour, day and month of UTC, in a document each: R.top.
 *
 *   pages.top  { _id: "day/20101010", metadata: { date: ISODate("2010-10-10") },
 *                written: 42,        batches that had counts of it
 *                waiting: true,      while its ranking is not that of all of them
 *                ranked: 41,         of how many it is, at least
 *                at: ISODate(…),     when it was found
 *                measures: { hits: { total: 123456, series: 1200,
 *                                    top: [ { metadata: { path: "/a" }, value: 900 }, … ] }, … },
 *                applied, modified, v }
 *
 * Written : by each batch, as one of its updates, for every hour, day and month that it has counts of.
 * Valid   : what is ranked is taken if `ranked` and `written` are the same, which is read at once with it;
 *           else all series are scanned, as they are where there is no document: of a period that was counted
 *           before there were such. A version that writes none must not count beside one that does.
 * Order   : as query/top.h ranks: by value, the largest first, then by key; no series whose value is 0. Of
 *           counts and sums: others cannot be added up over what is left out. `series`: how many there are.
 * Found   : by a job, once a period is over and quiet (mongo/job/top_job.c). Whatever is written meanwhile
 *           makes `written` another, by which its update is refused; so nothing else guards it
 *           (docs/LEDGER.md).
 * Limits  : MONGO_TOP_SERIES of each measure, and MONGO_TOP_BYTES. Of a report without dimensions none.
 */
#pragma once

#include "store/mongo/handle/handle.h"

#define MONGO_TOP_SERIES 1000
#define MONGO_TOP_BYTES  ((size_t)256 << 10) /* of the entries of one measure */

/* The spans that are ranked. */
#define MONGO_TOP_SPANS 3
extern const enum span mongo_top_spans[MONGO_TOP_SPANS];

bool mongo_top_is_kept(const struct report *r);
bool mongo_top_ranks(const struct measure *m);
/* "day/20101010" */
#define MONGO_TOP_ID_BYTES (MONGO_TIME_BYTES + 8)
const char *mongo_top_id(enum span span, int64_t ms, char buf[MONGO_TOP_ID_BYTES]);

bool mongo_top(struct store *st, const struct store_top *what, scan_fn *fn, void *context, int64_t *total,
               struct scan_stats *stats, bool *found, struct err *e);
