#include "store/common/series_map.h"

#include "base/mem.h"
#include "store/store.h"

#include <stdlib.h>

void series_map_fini(struct series_map *map)
{
    for (size_t i = 0; i < map->shard_count; i++)
        free(map->shards[i].numbers);
    free(map->shards);
}

static struct series_numbers *shard_of(struct series_map *map, const struct part *part)
{
    if (part->shard >= map->shard_count) {
        map->shards = xrealloc(map->shards, (part->shard + 1) * sizeof *map->shards);
        for (; map->shard_count <= part->shard; map->shard_count++)
            map->shards[map->shard_count] = (struct series_numbers){.epoch = part->epoch};
    }
    struct series_numbers *shard = &map->shards[part->shard];
    if (shard->epoch != part->epoch) {
        shard->epoch = part->epoch;
        shard->count = 0;
    }
    return shard;
}

bool series_map_add(struct series_map *map, const struct part *part, size_t report,
                    series_resolve_fn *resolve, void *context, struct err *e)
{
    const struct part_report *pr = &part->reports[report];
    struct series_numbers *shard = shard_of(map, part);
    if (pr->added_count == 0)
        return true;
    /* It is less if a failed batch is applied again, or if shards of that number began anew. */
    ASSERT(pr->first_added <= shard->count);
    shard->count = pr->first_added;
    shard->numbers =
        xgrow(shard->numbers, &shard->capacity, shard->count + pr->added_count, sizeof *shard->numbers);
    for (size_t i = 0; i < pr->added_count; i++) {
        const struct series *s = pr->added[i];
        ASSERT(s->number == shard->count);
        uint32_t *number = &shard->numbers[shard->count];
        if (s->key_len == SERIES_OTHER_LEN)
            *number = STORE_SERIES_OTHER;
        else if (!resolve(context, report, slice_of(s->key, s->key_len), number, e))
            return false;
        shard->count++;
    }
    return true;
}
