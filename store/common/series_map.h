/* series_map.h - maps the series numbers of shards (batch.h) to the series numbers of a store's handle, for
 * one report. Each store uses it while it applies a batch. Only the caller's `resolve` can fail.
 *
 * Shape : for each shard an array, indexed by the shard's numbers of one epoch; a part of a new epoch empties
 *         it. Begin with zeros.
 * Retry : a batch that failed may be added again.
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

/* Sets *number to the handle's number of a key. */
typedef bool series_resolve_fn(void *context, size_t report, struct slice key, uint32_t *number,
                               struct err *e);

void series_map_fini(struct series_map *map);
/* Resolves the series of the report that a part has and the map lacks. False: `resolve` failed; the series
 * resolved before it remain. */
bool series_map_add(struct series_map *map, const struct part *part, size_t report,
                    series_resolve_fn *resolve, void *context, struct err *e) MUST_CHECK;

/* The handle's number of a series, in a part that was added. */
static inline uint32_t series_map_number(const struct series_map *map, const struct part *part,
                                         uint32_t series)
{
    const struct series_numbers *shard = &map->shards[part->shard];
    ASSERT(series < shard->count && shard->epoch == part->epoch);
    return shard->numbers[series];
}
