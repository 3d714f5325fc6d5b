/* The dictionary: a series' key ↔ its number in this store. */
#include "base/check.h"
#include "base/mem.h"
#include "store/sqlite_internal.h"

#define XXH_INLINE_ALL
#include <stdlib.h>
#include <xxhash.h>

#define DICT_SLOTS_MIN     1024
/* Keys kept in memory; beyond, the cache starts anew and misses ask the file. */
#define DICT_KEY_BYTES_MAX ((size_t)48 << 20)

void dict_init(struct dict *d)
{
    *d = (struct dict){.mask = DICT_SLOTS_MIN - 1};
    d->slots = xcalloc(DICT_SLOTS_MIN, sizeof *d->slots);
    arena_init(&d->keys, (size_t)256 << 10);
}

void dict_fini(struct dict *d)
{
    if (d->slots == NULL)
        return;
    free(d->slots);
    arena_fini(&d->keys);
}

void dict_clear(struct dict *d)
{
    memset(d->slots, 0, (d->mask + 1) * sizeof *d->slots);
    arena_reset(&d->keys);
    d->count = 0;
    d->complete = false;
}

static struct dict_slot *dict_slot_of(const struct dict *d, uint64_t hash, struct slice key)
{
    size_t at = hash & d->mask;
    while (d->slots[at].key != NULL) {
        struct dict_slot *s = &d->slots[at];
        if (s->hash == hash && s->key_len == key.len && memcmp(s->key, key.ptr, key.len) == 0)
            return s;
        at = (at + 1) & d->mask;
    }
    return &d->slots[at];
}

static void dict_grow(struct dict *d)
{
    struct dict_slot *old = d->slots;
    size_t old_mask = d->mask;
    d->mask = (d->mask + 1) * 2 - 1;
    d->slots = xcalloc(d->mask + 1, sizeof *d->slots);
    for (size_t i = 0; i <= old_mask; i++) {
        if (old[i].key == NULL)
            continue;
        size_t at = old[i].hash & d->mask;
        while (d->slots[at].key != NULL)
            at = (at + 1) & d->mask;
        d->slots[at] = old[i];
    }
    free(old);
}

static void dict_put(struct dict *d, uint64_t hash, struct slice key, uint32_t number)
{
    if (arena_bytes(&d->keys) > DICT_KEY_BYTES_MAX)
        dict_clear(d);
    if ((d->count + 1) * 4 > (d->mask + 1) * 3)
        dict_grow(d);
    struct slice copy = arena_copy(&d->keys, key);
    *dict_slot_of(d, hash, key) = (struct dict_slot){hash, copy.ptr, (uint32_t)key.len, number};
    d->count++;
}

static bool find_in_file(struct sqlite_store *st, struct sqlite_report *t, uint64_t hash, struct slice key,
                         uint32_t *number, bool *found, struct err *e)
{
    int rc;
    *found = false;
    sqlite3_bind_int64(t->series_by_hash, 1, (int64_t)hash);
    while (!*found && (rc = sqlite3_step(t->series_by_hash)) == SQLITE_ROW) {
        const char *text = sqlite3_column_blob(t->series_by_hash, 1);
        struct slice stored = slice_of(text, (size_t)sqlite3_column_bytes(t->series_by_hash, 1));
        if (slice_equal(stored, key)) {
            *number = (uint32_t)sqlite3_column_int64(t->series_by_hash, 0);
            *found = true;
        }
    }
    bool good = *found || rc == SQLITE_DONE;
    sqlite3_reset(t->series_by_hash);
    return good || sqlite_fail(st, e, "reading the dictionary of series");
}

bool dict_find(struct sqlite_store *st, size_t report, struct slice key, uint32_t *number, bool *found,
               struct err *e)
{
    return find_in_file(st, &st->tables[report], XXH3_64bits(key.ptr, key.len), key, number, found, e);
}

static bool insert_series(struct sqlite_store *st, struct sqlite_report *t, uint64_t hash, struct slice key,
                          uint32_t *number, struct err *e)
{
    sqlite3_bind_int64(t->series_insert, 1, (int64_t)t->series_count + 1);
    sqlite3_bind_int64(t->series_insert, 2, (int64_t)hash);
    sqlite3_bind_text(t->series_insert, 3, key.len > 0 ? key.ptr : "", (int)key.len, SQLITE_STATIC);
    if (!sqlite_run(st, t->series_insert, e, "adding a series"))
        return false;
    *number = ++t->series_count;
    return true;
}

/* Its number: known, in the file, new, or - where the report is full - `other`. */
static bool resolve(struct sqlite_store *st, size_t report, struct slice key, uint32_t *number, struct err *e)
{
    struct sqlite_report *t = &st->tables[report];
    uint64_t hash = XXH3_64bits(key.ptr, key.len);
    struct dict_slot *slot = dict_slot_of(&t->dict, hash, key);
    if (slot->key != NULL) {
        *number = slot->number;
        return true;
    }
    bool found = false;
    if (!t->dict.complete && !find_in_file(st, t, hash, key, number, &found, e))
        return false;
    if (!found && t->series_count >= st->reports[report].series_max) {
        *number = STORE_SERIES_OTHER;
        return true;
    }
    if (!found && !insert_series(st, t, hash, key, number, e))
        return false;
    dict_put(&t->dict, hash, key, *number);
    return true;
}

static struct series_map *map_of(struct sqlite_report *t, const struct part *part)
{
    if (part->shard >= t->map_count) {
        t->maps = xrealloc(t->maps, (part->shard + 1) * sizeof *t->maps);
        for (; t->map_count <= part->shard; t->map_count++)
            t->maps[t->map_count] = (struct series_map){.epoch = part->epoch};
    }
    struct series_map *map = &t->maps[part->shard];
    if (map->epoch != part->epoch) {
        map->epoch = part->epoch;
        map->count = 0;
    }
    return map;
}

bool dict_resolve_added(struct sqlite_store *st, size_t report, const struct part *part, struct err *e)
{
    const struct part_report *pr = &part->reports[report];
    struct series_map *map = map_of(&st->tables[report], part);
    if (pr->added_count == 0)
        return true;
    /* Less than `count` where a batch that failed is applied again. */
    ASSERT(pr->first_added <= map->count);
    map->count = pr->first_added;
    map->numbers = xgrow(map->numbers, &map->capacity, map->count + pr->added_count, sizeof *map->numbers);
    for (size_t i = 0; i < pr->added_count; i++) {
        const struct series *s = pr->added[i];
        ASSERT(s->number == map->count);
        if (!resolve(st, report, slice_of(s->key, s->key_len), &map->numbers[map->count], e))
            return false;
        map->count++;
    }
    return true;
}

uint32_t dict_number(const struct sqlite_report *t, const struct part *part, uint32_t series)
{
    const struct series_map *map = &t->maps[part->shard];
    ASSERT(series < map->count);
    return map->numbers[series];
}
