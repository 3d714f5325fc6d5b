#include "ingest/derive/memo.h"

#include "base/mem.h"

#define XXH_INLINE_ALL
#include <stdlib.h>
#include <xxhash.h>

#define CHUNK_BYTES 65536

void memo_init(struct memo *m)
{
    *m = (struct memo){0};
    arena_init(&m->memory, CHUNK_BYTES);
}

void memo_fini(struct memo *m)
{
    index_fini(&m->index);
    free(m->entries);
    arena_fini(&m->memory);
}

struct memo_entry *memo_find(const struct memo *m, struct slice key, uint64_t number, uint64_t *hash)
{
    size_t at = *hash = XXH3_64bits_withSeed(key.ptr, key.len, number);
    for (uint32_t n; (n = index_next(&m->index, *hash, &at)) != 0;) {
        struct memo_entry *entry = m->entries[n];
        if (entry->number == number && slice_equal(entry->key, key))
            return entry;
    }
    return NULL;
}

struct memo_entry *memo_add(struct memo *m, struct slice key, uint64_t number, uint64_t hash)
{
    struct memo_entry *entry = arena_add(&m->memory, sizeof *entry);
    uint32_t n = index_add(&m->index, hash);
    *entry = (struct memo_entry){.key = arena_copy(&m->memory, key), .number = number};
    m->entries = xgrow(m->entries, &m->capacity, n + 1, sizeof(struct memo_entry *));
    m->entries[n] = entry;
    return entry;
}

void memo_flush(struct memo *m)
{
    if (m->index.count <= MEMO_ENTRIES_MAX && arena_bytes(&m->memory) <= MEMO_BYTES_MAX)
        return;
    index_clear(&m->index);
    arena_reset(&m->memory);
}
