/* cached_ranking.h - answers rankings without a scan, by store_top(): from the store's cached rankings, or in
 * a few rows if the period is open. That is possible for one hour, day or month of UTC, by one count or sum,
 * over all series; also for the part of it up to a time behind which nothing is counted yet, such as now.
 * Otherwise the caller scans the series. */
#pragma once

#include "query/bound.h"
#include "query/top.h"

/* Pass the largest `limit` series of the answer's range to `fn`, as a scan would. Add the sums of all series
 * to `total`, which must be zeros. *found false: no ranking is cached or its range has expired, and `fn` was
 * not called. */
bool cached_ranking_series(const struct bound *b, const struct series_set *set, uint64_t limit, scan_fn *fn,
                           void *context, int64_t *total, struct query_stats *stats, bool *found,
                           struct err *e) MUST_CHECK;
/* Call it after the caller scanned instead: the next question may be answered without a scan. */
void cached_ranking_learn(const struct bound *b, const struct series_set *set, const struct top *t);
/* Add only the sums of all series in [from_ms, to_ms), which may be several periods. */
bool cached_ranking_total(const struct bound *b, int64_t from_ms, int64_t to_ms, int64_t *total, bool *found,
                          struct err *e) MUST_CHECK;
