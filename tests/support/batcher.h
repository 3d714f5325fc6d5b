/* batcher.h - makes batches as a pipeline does, without lines or shards: keys and columns straight into
 * parts, one part per shard.
 *
 * Owner : the batcher; what batcher_seal() returns holds until batcher_clear().
 */
#pragma once

#include "aggregate/batch.h"
#include "aggregate/report.h"

struct batcher;

struct batcher *batcher_new(const struct report *reports, size_t report_count, uint32_t shard_count);
void batcher_free(struct batcher *b);

void batcher_add(struct batcher *b, uint32_t shard, size_t report, const char *key, int64_t at_ms,
                 const int64_t *values);
/* The open books of a shard, to be filled by hand. */
struct books *batcher_books(struct batcher *b, uint32_t shard);
/* The shard forgets its series. Pre: it added nothing since the last clear. */
void batcher_new_epoch(struct batcher *b, uint32_t shard);

/* All that was added, as [from, to) of `source`. */
const struct batch *batcher_seal(struct batcher *b, const char *source, int64_t from, int64_t to);
/* Its range, to be changed by hand after batcher_seal(). */
struct range *batcher_range(struct batcher *b);
/* The batch was applied, or refused and forgotten by the store. */
void batcher_clear(struct batcher *b);
