/* mongo/doc/longer.h - reads the measures without a sketch from the fewest documents that have every done
 * batch. It reads what longer documents lack (mongo/doc/unrolled.h) from shorter ones, as long as these
 * have not expired.
 */
#pragma once

#include "store/mongo/handle/handle.h"

/* As store_scan(). A bucket may come in parts, which are to be merged. */
bool mongo_scan_plain(struct mongo_store *m, const struct scan *scan, scan_fn *fn, void *context,
                      struct scan_stats *stats, struct err *e) MUST_CHECK;
