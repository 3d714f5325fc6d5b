/* mongo/live/minutes.h - totals of all series over minutes or hours, from the documents of hours (groups.h),
 * or of hours, days and months, from cached rankings. live.c calls it; a ranking compares its total with that
 * of the time before.
 *
 * Exact : if every hour of the range has a document, and all its batches in its totals. An hour without one
 *         may be of a version that wrote none.
 */
#pragma once

#include "store/mongo/handle/handle.h"

/* store_top() with the limit 0: adds to `total` if *found. */
bool mongo_totals(struct store *st, const struct store_top *what, struct top_total *total,
                  struct scan_stats *stats, bool *found, struct err *e) MUST_CHECK;
