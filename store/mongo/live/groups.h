/* mongo/live/groups.h - group sums: the counts of an open hour, day or month by groups of series, in the
 * period's document of R.top (mongo/doc/top.h). Batches raise them, and readers rank open periods by them
 * without a scan (mongo/live/live.h). Nothing here can fail.
 *
 *   pages.top  { _id: "hour/2010101013", written: 41, …,
 *                open: { batches: 41,           batches that raised the sums
 *                        until: ISODate(…),     end of the last minute that has counts
 *                        sums: { hits: { "0": 12, "511": 7 }, … } },   by group
 *                minutes: { batches: 41,        batches that raised the totals; hours only
 *                           totals: { hits: { "0": 5, "59": 14 }, … } } }   of all series, by minute
 *
 * Group   : the low bits of the hash of a series' key (names.h), so it is the same for all writers; `other`
 *           is in group 0.
 * Whole   : if `batches` is `written`, every batch with counts of the period is in the sums. A batch that
 *           takes counts out, has a negative sum, or fills a store or report from another (admin/fill.h,
 *           job/splice.h), whose cells may be of whole days or months where minutes have expired; and a
 *           version without group sums, raise `written` alone. Then nobody uses them.
 * When    : batches raise `open` while the period is open by the writer's clock, and a while longer. The job
 *           that ranks a period which is over removes `open`. `minutes` stay.
 * Since   : reports that a version of format 4 began (is_decimal). Versions of format 1 may have counted
 *           without a document in R.top, so of older reports no sums are known to be whole.
 * Measures: counts, and sums of whole numbers. Sums with fractions have two columns.
 */
#pragma once

#include "store/mongo/handle/handle.h"

#define MONGO_LIVE_OVER_MS  (15 * MINUTE_MS) /* a period is open for this long after its end */
#define MONGO_LIVE_AHEAD_MS HOUR_MS          /* and for this long before it begins */

static inline bool mongo_live_sums(const struct measure *m)
{
    return m->kind == MEASURE_COUNT || (m->kind == MEASURE_SUM && !m->is_fraction);
}

static inline size_t mongo_group(const struct mongo_report *more, uint32_t series)
{
    return series == STORE_SERIES_OTHER ? 0 : mongo_names_at(&more->names, series)->hash % MONGO_GROUPS;
}

/* Has every batch that ever counted for the report a stamp in R.top? */
static inline bool mongo_is_stamped(const struct mongo_report *more)
{
    return more->is_decimal;
}

static inline bool mongo_is_open(enum span span, int64_t start_ms, int64_t now_ms)
{
    return start_ms <= now_ms + MONGO_LIVE_AHEAD_MS &&
           now_ms < span_next(span, start_ms) + MONGO_LIVE_OVER_MS;
}
