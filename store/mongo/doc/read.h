/* mongo/doc/read.h - reads time buckets from documents of one kind. mongo/doc/scan.h chooses the kind. */
#pragma once

#include "store/mongo/handle/handle.h"

/* The documents that are read: a kind of those of the measures without a sketch, or of those of a sketch. */
struct mongo_from {
    const struct mongo_kind *kind;
    size_t sketch; /* kind->of_sketch: its index among the report's sketches */
};
struct mongo_from mongo_from_sketch(const struct report *r, size_t sketch, enum span resolution);
/* Reads the buckets of a scan, by the number of the series. */
bool mongo_scan_from(struct mongo_store *m, struct mongo_from from, const struct scan *scan, scan_fn *fn,
                     void *context, struct scan_stats *stats, struct err *e) MUST_CHECK;
/* Reads the buckets of all series, by key (NULL: the series `other`). The handle adds no names. Each series
 * has a bucket once. `sketch`: the bucket of a sketch, for mongo_merge_sketch(). If `fn` returns false, the
 * scan ends, which is no failure. */
typedef bool mongo_key_fn(void *context, const struct slice *key, int64_t bucket_ms, const int64_t *values,
                          struct slice sketch);
bool mongo_read_keys(struct mongo_store *m, struct mongo_from from, const struct scan *scan, mongo_key_fn *fn,
                     void *context, struct scan_stats *stats, struct err *e) MUST_CHECK;
