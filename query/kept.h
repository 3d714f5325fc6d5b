/* kept.h - rankings from what a store keeps of them (store_top()), where that is enough: of one hour, day or
 * month of UTC, by one count or sum, of all series. Else the series are scanned.
 */
#pragma once

#include "query/bound.h"

/* The largest `limit` series of the answer's range, as a scan of all would tell `fn` of them, and what all of
 * them counted, into `total`, which is zeros. *found false: they are not kept, and `fn` was told nothing.
 * Slots that are gone are refused. */
bool kept_series(const struct bound *b, const struct series_set *set, uint64_t limit, scan_fn *fn,
                 void *context, int64_t *total, struct query_stats *stats, bool *found,
                 struct err *e) MUST_CHECK;
/* Only what all series counted in [from_ms, to_ms), which may be several periods. */
bool kept_total(const struct bound *b, int64_t from_ms, int64_t to_ms, int64_t *total, bool *found,
                struct err *e) MUST_CHECK;
