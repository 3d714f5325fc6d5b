/* mongo/doc/read.h - reads time buckets from documents of one kind. mongo/doc/scan.h chooses the kind. */
#pragma once

#include "store/mongo/handle/handle.h"

/* Reads the buckets of a scan, of measures without a sketch; series by number. */
bool mongo_scan_kind(struct mongo_store *m, const struct mongo_kind *kind, const struct scan *scan,
                     scan_fn *fn, void *context, struct scan_stats *stats, struct err *e) MUST_CHECK;
/* Reads the buckets of one sketch of the report: its columns, and it. */
bool mongo_scan_sketch(struct mongo_store *m, size_t sketch, const struct scan *scan, scan_fn *fn,
                       void *context, struct scan_stats *stats, struct err *e) MUST_CHECK;
/* Reads the buckets of all series, by key (NULL: the series `other`). The handle adds no names. Each series
 * has a bucket once. `sketch`: the bucket of a sketch, for mongo_merge_sketch(). If `fn` returns false, the
 * scan ends, which is no failure. */
typedef bool mongo_key_fn(void *context, const struct slice *key, int64_t bucket_ms, const int64_t *values,
                          struct slice sketch);
/* As mongo_scan_kind(), by key. */
bool mongo_read_keys(struct mongo_store *m, const struct mongo_kind *kind, const struct scan *scan,
                     mongo_key_fn *fn, void *context, struct scan_stats *stats, struct err *e) MUST_CHECK;
/* As mongo_scan_sketch(), by key. */
bool mongo_read_sketch_keys(struct mongo_store *m, size_t sketch, const struct scan *scan, mongo_key_fn *fn,
                            void *context, struct scan_stats *stats, struct err *e) MUST_CHECK;
