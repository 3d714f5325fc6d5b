/* ranked.h - reads the series of a topk from the store's cached ranking (store_top()) instead of all series.
 * Called by fetch.c.
 *
 * Used   : by a topk without a grouping, right around rate, increase or sum_over_time of a count or sum of
 *          all series, at one instant, in one whole hour, day or month of UTC.
 * Exact  : only if the ranking tells the k-th series from the next one, and has no series of 0 among them.
 *          topk takes the first by labels among equals, and sums of 0 may belong to series that it lacks.
 * Errors : the store's; EX_UNAVAILABLE: the budget is spent.
 */
#pragma once

#include "prom/reading.h"

/* *found false: nothing was read, and a scan is due. Else the rows may be among the k greatest, and no others
 * are. */
bool ranked_read(struct reading *rd, const struct series_set *set, bool *found, struct err *e) MUST_CHECK;
