/* mongo/doc/scan.h - the scans of store.h. */
#pragma once

#include "store/mongo/doc/read.h"

bool mongo_scan(struct store *st, const struct scan *scan, scan_fn *fn, void *context,
                struct scan_stats *stats, struct err *e) MUST_CHECK;
/* As store_recent(). */
bool mongo_recent(struct store *st, const struct scan *scan, void *context, struct scan_stats *stats,
                  struct err *e) MUST_CHECK;
enum span mongo_copy(const struct store *st, size_t report, enum span resolution, size_t n);
bool mongo_scan_copy(struct store *st, const struct scan *scan, size_t n, scan_fn *fn, void *context,
                     struct scan_stats *stats, struct err *e) MUST_CHECK;
/* Scan all series, by their keys. */
bool mongo_scan_keys(struct mongo_store *m, struct mongo_from from, const struct scan *scan, mongo_key_fn *fn,
                     void *context, struct scan_stats *stats, struct err *e) MUST_CHECK;
