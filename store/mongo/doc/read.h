/* mongo/doc/read.h - the slots of documents of one kind. */
#pragma once

#include "store/mongo/handle/handle.h"

/* The slots of a scan, series by their numbers; … */
bool mongo_scan_kind(struct mongo_store *m, const struct mongo_kind *kind, const struct scan *scan,
                     scan_fn *fn, void *context, struct scan_stats *stats, struct err *e);
/* … or all series, by their keys (NULL: of `other`): the handle learns no names. Each has a slot once. False
 * ends the scan, which is no failure. */
typedef bool mongo_key_fn(void *context, const struct slice *key, int64_t slot_ms, const int64_t *values);
bool mongo_read_keys(struct mongo_store *m, const struct mongo_kind *kind, const struct scan *scan,
                     mongo_key_fn *fn, void *context, struct scan_stats *stats, struct err *e);
