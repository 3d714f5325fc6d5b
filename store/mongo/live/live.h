/* mongo/live/live.h - ranks an open hour, day or month exactly, by its group sums (groups.h) and a few
 * documents instead of all. store_top() of a reader is here.
 *
 * Bound   : the values of a group's series add up to the group's sum, and none is negative. So a series whose
 *           document was not read has at most the sum of its group less the values that were read of it. If
 *           that is less than the smallest value of the answer for each group, the answer has the largest
 *           series. Which documents are read is a guess (hints.h) that the answer does not rely on.
 * Moment  : the sums must have every batch that the documents which were read have; else a value would be
 *           taken from a sum that lacks it. `applied` of both says so, or the ledger: a batch that is done is
 *           in every document. Batches that only the sums have make the bound larger, which does no harm.
 *           Writers send the period's document first, so it is rarely behind.
 * Exact   : the answer is that of a scan which read the other documents when they had the batches of the
 *           sums. As for a scan, a batch that is being applied becomes visible one document after the other.
 * Else    : *found is false, and the caller scans: the sums are not whole, a group is not explained by known
 *           series, or the period has counts behind the range that is asked for.
 */
#pragma once

#include "store/mongo/handle/handle.h"

bool mongo_live_top(struct store *st, const struct store_top *what, top_fn *fn, void *context,
                    struct top_total *total, struct scan_stats *stats, bool *found, struct err *e) MUST_CHECK;
