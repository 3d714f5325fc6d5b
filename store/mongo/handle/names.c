#include "store/mongo/handle/names.h"

#include "base/check.h"
#include "base/mem.h"

#define XXH_INLINE_ALL
#include <stdlib.h>
#include <xxhash.h>

#define CHUNK_BYTES ((size_t)64 << 10)
#define SLOTS_MIN   256

void mongo_names_init(struct mongo_names *n)
{
    *n = (struct mongo_names){.slot_count = SLOTS_MIN, .slots = xcalloc(SLOTS_MIN, sizeof *n->slots)};
    arena_init(&n->keys, CHUNK_BYTES);
}

void mongo_names_fini(struct mongo_names *n)
{
    free(n->names);
    free(n->slots);
    arena_fini(&n->keys);
}

static uint32_t *slot_of(const struct mongo_names *n, uint64_t hash, struct slice key)
{
    size_t at = hash & (n->slot_count - 1);
    for (; n->slots[at] != 0; at = (at + 1) & (n->slot_count - 1)) {
        const struct mongo_name *name = mongo_names_at(n, n->slots[at]);
        if (name->hash == hash && slice_equal(name->key, key))
            break;
    }
    return &n->slots[at];
}

static void grow(struct mongo_names *n)
{
    free(n->slots);
    n->slot_count *= 2;
    n->slots = xcalloc(n->slot_count, sizeof *n->slots);
    for (uint32_t number = 1; number <= n->count; number++) {
        const struct mongo_name *name = mongo_names_at(n, number);
        *slot_of(n, name->hash, name->key) = number;
    }
}

uint32_t mongo_names_find(const struct mongo_names *n, struct slice key)
{
    return *slot_of(n, XXH3_64bits(key.ptr, key.len), key);
}

uint32_t mongo_names_add(struct mongo_names *n, struct slice key)
{
    uint64_t hash = XXH3_64bits(key.ptr, key.len);
    uint32_t *slot = slot_of(n, hash, key);
    if (*slot != 0)
        return *slot;
    ASSERT(n->count < UINT32_MAX);
    if ((n->count + 1) * 2 > n->slot_count) {
        grow(n);
        slot = slot_of(n, hash, key);
    }
    n->names = xgrow(n->names, &n->capacity, n->count + 1, sizeof *n->names);
    n->names[n->count++] = (struct mongo_name){.hash = hash, .key = arena_copy(&n->keys, key)};
    return *slot = (uint32_t)n->count;
}
