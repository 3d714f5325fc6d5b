/* series_map.h - from the numbers by which shards name the series of a report (batch.h) to those of a store's
 * handle.
 *
 * Shape : per shard, its numbers 0, 1, … of the shard's epoch; a new epoch empties it.
 * Twice : a batch that failed may be added again.
 */
#pragma once

#include "aggregate/batch.h"
#include "base/check.h"
#include "base/err.h"

#include <stddef.h>

struct series_numbers {
    uint32_t epoch;
    uint32_t *numbers;
    size_t count, capacity;
};

struct series_map {
    struct series_numbers *shards;
    size_t shard_count;
};

/* The handle's number of a key. */
typedef bool series_resolve_fn(void *context, size_t report, struct slice key, uint32_t *number,
                               struct err *e);

void series_map_fini(struct series_map *map);
/* Take the series of the report that are new in a part. False: `resolve` failed; nothing but what it did
 * remains. */
bool series_map_add(struct series_map *map, const struct part *part, size_t report,
                    series_resolve_fn *resolve, void *context, struct err *e) MUST_CHECK;

/* Of a series of a part that was added. */
static inline uint32_t series_map_number(const struct series_map *map, const struct part *part,
                                         uint32_t series)
{
    const struct series_numbers *shard = &map->shards[part->shard];
    ASSERT(series < shard->count);
    return shard->numbers[series];
}
