/* ranked.h - reads the series of a topk from the store's cached rankings (store_top()) instead of all series.
 * Called by fetch.c before it scans.
 *
 * Used   : by a topk without a grouping, right around rate, increase or sum_over_time of a count or sum of
 *          all series, for steps that are one whole hour, day or month of UTC each. A step without a ranking
 *          is left to the scan.
 * Exact  : only if the ranking tells which series are the k greatest, and all that equal the k-th, and has no
 *          series of 0 among them. topk takes the first by labels among equals, and sums of 0 may belong to
 *          series that the ranking lacks.
 * Errors : the store's; EX_UNAVAILABLE: the budget is spent.
 */
#pragma once

#include "prom/reading.h"

/* Reads what rankings tell: rows of the series that may be among the k greatest of a piece. These pieces are
 * left out of the windows. */
bool ranked_read(struct reading *rd, const struct series_set *set, struct err *e) MUST_CHECK;
