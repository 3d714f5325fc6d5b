/* mongo/doc/months.h - several months from the documents of years, as far as they are rolled up. */
#pragma once

#include "store/mongo/handle/handle.h"

/* Several months: those that are rolled up from the documents of their years. */
bool mongo_scan_months(struct mongo_store *m, const struct scan *scan, scan_fn *fn, void *context,
                       struct scan_stats *stats, struct err *e);
