#include "store/mongo/handle/names.h"

#include "base/mem.h"

#define XXH_INLINE_ALL
#include <stdlib.h>
#include <xxhash.h>

#define CHUNK_BYTES ((size_t)64 << 10)

void mongo_names_init(struct mongo_names *n)
{
    *n = (struct mongo_names){0};
    arena_init(&n->keys, CHUNK_BYTES);
}

void mongo_names_fini(struct mongo_names *n)
{
    free(n->names);
    index_fini(&n->index);
    arena_fini(&n->keys);
}

static uint32_t find(const struct mongo_names *n, uint64_t hash, struct slice key)
{
    uint32_t number;
    size_t at = hash;
    while ((number = index_next(&n->index, hash, &at)) != 0 &&
           !slice_equal(mongo_names_at(n, number)->key, key))
        ;
    return number;
}

uint32_t mongo_names_find(const struct mongo_names *n, struct slice key)
{
    return find(n, XXH3_64bits(key.ptr, key.len), key);
}

uint32_t mongo_names_add(struct mongo_names *n, struct slice key)
{
    uint64_t hash = XXH3_64bits(key.ptr, key.len);
    uint32_t number = find(n, hash, key);
    if (number != 0)
        return number;
    n->names = xgrow(n->names, &n->capacity, n->count + 1, sizeof *n->names);
    n->names[n->count++] = (struct mongo_name){.hash = hash, .key = arena_copy(&n->keys, key)};
    return index_add(&n->index, hash);
}
