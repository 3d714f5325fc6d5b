/* mongo/doc/months.h - scans several months with the fewest documents. */
#pragma once

#include "store/mongo/handle/handle.h"

/* Reads rolled-up months from documents of years, and the other months from their own documents. */
bool mongo_scan_months(struct mongo_store *m, const struct scan *scan, scan_fn *fn, void *context,
                       struct scan_stats *stats, struct err *e) MUST_CHECK;
