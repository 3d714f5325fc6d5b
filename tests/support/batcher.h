/* batcher.h - makes batches for tests as a pipeline does, without lines or shards: it puts keys and columns
 * straight into parts, one part per shard.
 *
 * Owner : the batcher owns the batch; a pointer from batcher_seal() is valid until batcher_clear().
 */
#pragma once

#include "aggregate/batch.h"
#include "aggregate/report.h"

struct batcher;

struct batcher *batcher_new(const struct report *reports, size_t report_count, uint32_t shard_count);
void batcher_free(struct batcher *b);

/* Adds columns; if the report keeps newest events, also an event of this time. */
void batcher_add(struct batcher *b, uint32_t shard, size_t report, const char *key, int64_t at_ms,
                 const int64_t *values);
/* The open books of a shard, which the test may change. */
struct books *batcher_books(struct batcher *b, uint32_t shard);
/* The shard forgets its series. Pre: it added nothing since the last clear. */
void batcher_new_epoch(struct batcher *b, uint32_t shard);

/* Seals all that was added, as the range [from, to) of `source`. */
const struct batch *batcher_seal(struct batcher *b, const char *source, int64_t from, int64_t to);
/* The range of the sealed batch, which the test may change. */
struct range *batcher_range(struct batcher *b);
/* Empties the batcher. Call it once the store has applied the batch, or has refused and forgotten it. */
void batcher_clear(struct batcher *b);
