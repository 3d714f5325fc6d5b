#include "ingest/derive/memo.h"

#include "base/mem.h"

#define XXH_INLINE_ALL
#include <stdlib.h>
#include <xxhash.h>

#define CHUNK_BYTES 65536

void memo_init(struct memo *m)
{
    *m = (struct memo){.recent = xtable(MEMO_RECENT, sizeof(struct memo_entry *))};
    arena_init(&m->memory, CHUNK_BYTES);
}

void memo_fini(struct memo *m)
{
    index_fini(&m->index);
    free(m->entries);
    free(m->recent);
    arena_fini(&m->memory);
}

static uint64_t hash_key(struct slice key, uint64_t number)
{
    return XXH3_64bits_withSeed(key.ptr, key.len, number);
}

static void make_recent(struct memo *m, struct memo_entry *entry)
{
    if (entry->key.len >= MEMO_WORD)
        m->recent[memo_sample(entry->key, entry->number)] = entry;
}

struct memo_entry *memo_search(struct memo *m, struct slice key, uint64_t number)
{
    uint64_t hash = hash_key(key, number);
    size_t at = hash;
    for (uint32_t n; (n = index_next(&m->index, hash, &at)) != 0;) {
        struct memo_entry *entry = m->entries[n];
        if (entry->number != number || !slice_equal(entry->key, key))
            continue;
        make_recent(m, entry);
        return entry;
    }
    return NULL;
}

struct memo_entry *memo_add(struct memo *m, struct slice key, uint64_t number)
{
    struct memo_entry *entry = arena_add(&m->memory, sizeof *entry);
    uint32_t n = index_add(&m->index, hash_key(key, number));
    *entry = (struct memo_entry){.key = arena_copy(&m->memory, key), .number = number};
    m->entries = xgrow(m->entries, &m->capacity, n + 1, sizeof(struct memo_entry *));
    m->entries[n] = entry;
    make_recent(m, entry);
    return entry;
}

void memo_flush(struct memo *m)
{
    if (m->index.count <= MEMO_ENTRIES_MAX && arena_bytes(&m->memory) <= MEMO_BYTES_MAX)
        return;
    index_clear(&m->index);
    memset(m->recent, 0, MEMO_RECENT * sizeof(struct memo_entry *));
    arena_reset(&m->memory);
}
