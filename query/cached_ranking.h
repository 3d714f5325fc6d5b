/* cached_ranking.h - answers rankings without a scan, by store_top(): from the store's cached rankings, or
 * in a few rows if the period is open. That is possible for one hour, day or month of UTC, over all
 * series, by one figure that the store ranks (aggregate/rank_by.h); also for the part of it up to a time
 * behind which nothing is counted yet, such as now. Otherwise the caller scans the series. */
#pragma once

#include "query/bound.h"
#include "query/top.h"

/* Add the largest `limit` series of the answer's range to `top`, as a scan would. Set `total` to the state of
 * all series; its memory must be set. *found false: no ranking is cached or its range has expired; `top` and
 * `total` are unchanged. */
bool cached_ranking_series(const struct bound *b, const struct series_set *set, uint64_t limit,
                           struct top *top, struct top_total *total, struct query_stats *stats, bool *found,
                           struct err *e) MUST_CHECK;
/* Call it after the caller scanned instead: if the period goes on, the next question may be answered without
 * a scan. */
void cached_ranking_learn(const struct bound *b, const struct series_set *set, const struct top *t);
/* Set `total` only, of all series in [from_ms, to_ms), which may be several periods; its `longest` must be
 * set, too. */
bool cached_ranking_total(const struct bound *b, int64_t from_ms, int64_t to_ms, struct top_total *total,
                          bool *found, struct err *e) MUST_CHECK;
