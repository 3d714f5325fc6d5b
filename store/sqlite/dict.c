/* The dictionary: a series' key ↔ its number in this store.
 *
 *   series_N   row n / 128 holds the keys of series n, one a line (settled text has no line feeds)
 *   lookup_N   row hash >> 52 holds (hash's low half, number) of 8 bytes each, in order of arrival
 *
 * Why packed: an import meets 100,000 new series within a second. As rows of their own with an index, they
 * took 10,000 instructions each, the greater part of the import. Packed, they take a few hundred. */
#include "base/mem.h"
#include "store/sqlite/internal.h"

#define XXH_INLINE_ALL
#include <stdlib.h>
#include <xxhash.h>

void sqlite_limit_dictionary(struct store *base, size_t key_bytes_max)
{
    sqlite_of(base)->dict_key_bytes_max = key_bytes_max;
}

void dict_init(struct dict *d)
{
    *d = (struct dict){0};
    arena_init(&d->keys, (size_t)256 << 10);
}

void dict_fini(struct dict *d)
{
    index_fini(&d->index);
    free(d->entries);
    arena_fini(&d->keys);
}

void dict_clear(struct dict *d)
{
    index_clear(&d->index);
    arena_reset(&d->keys);
    d->complete = false;
}

/* The number of a cached key. */
static bool dict_get(const struct dict *d, uint64_t hash, struct slice key, uint32_t *number)
{
    uint32_t place;
    for (size_t at = hash; (place = index_next(&d->index, hash, &at)) != 0;) {
        const struct dict_entry *en = &d->entries[place - 1];
        if (en->key_len == key.len && memcmp(en->key, key.ptr, key.len) == 0) {
            *number = en->number;
            return true;
        }
    }
    return false;
}

static void dict_put(struct dict *d, uint64_t hash, struct slice key, uint32_t number)
{
    uint32_t place = index_add(&d->index, hash);
    d->entries = xgrow(d->entries, &d->capacity, place, sizeof *d->entries);
    d->entries[place - 1] = (struct dict_entry){arena_copy(&d->keys, key).ptr, (uint32_t)key.len, number};
}

static uint32_t get_le32(const unsigned char *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static void put_le32(unsigned char *p, uint32_t v)
{
    for (int i = 0; i < 4; i++)
        p[i] = (unsigned char)(v >> (8 * i));
}

/* Read the body of a row by its number; empty: there is no row. It is valid until the statement is reset. */
static bool read_row(struct sqlite_store *st, sqlite3_stmt *s, int64_t row, struct slice *body, struct err *e)
{
    sqlite3_bind_int64(s, 1, row);
    int rc = sqlite3_step(s);
    *body = slice_of(NULL, 0);
    if (rc == SQLITE_ROW)
        *body = slice_of(sqlite3_column_blob(s, 0), (size_t)sqlite3_column_bytes(s, 0));
    return rc == SQLITE_ROW || rc == SQLITE_DONE || sqlite_fail(st, e, "reading the dictionary of series");
}

bool dict_key(struct sqlite_store *st, size_t report, uint32_t number, struct slice *key, bool *found,
              struct err *e)
{
    struct slice keys;
    if (!read_row(st, st->tables[report].series_get, number / BODY_SERIES, &keys, e))
        return false;
    const char *p = keys.ptr, *end = slice_end(keys);
    for (uint32_t skip = number % BODY_SERIES; p != NULL && skip > 0; skip--) {
        p = memchr(p, '\n', (size_t)(end - p));
        p = p != NULL ? p + 1 : NULL;
    }
    const char *line_end = p != NULL ? memchr(p, '\n', (size_t)(end - p)) : NULL;
    *found = line_end != NULL;
    if (*found)
        *key = slice_of(p, (size_t)(line_end - p));
    return true;
}

static bool find_in_file(struct sqlite_store *st, size_t report, uint64_t hash, struct slice key,
                         uint32_t *number, bool *found, struct err *e)
{
    struct sqlite_report *t = &st->tables[report];
    struct slice entries, stored;
    *found = false;
    bool good = read_row(st, t->lookup_get, (int64_t)(hash >> LOOKUP_SHIFT), &entries, e);
    for (size_t i = 0; good && !*found && i + 8 <= entries.len; i += 8) {
        const unsigned char *entry = (const unsigned char *)entries.ptr + i;
        if (get_le32(entry) != (uint32_t)hash)
            continue;
        *number = get_le32(entry + 4);
        good = dict_key(st, report, *number, &stored, found, e);
        *found = good && *found && slice_equal(stored, key);
        sqlite3_reset(t->series_get);
    }
    sqlite3_reset(t->lookup_get);
    return good;
}

bool dict_find(struct sqlite_store *st, size_t report, struct slice key, uint32_t *number, bool *found,
               struct err *e)
{
    return find_in_file(st, report, XXH3_64bits(key.ptr, key.len), key, number, found, e);
}

/* Number a new series. dict_write_new() writes its key and its entry in the lookup. */
static uint32_t add_new(struct sqlite_report *t, uint64_t hash, struct slice key)
{
    t->new_series = xgrow(t->new_series, &t->new_capacity, t->new_count + 1, sizeof *t->new_series);
    t->new_series[t->new_count++] = (struct new_series){hash, ++t->series_count};
    text_add(&t->new_keys, key.ptr, key.len);
    text_putc(&t->new_keys, '\n');
    return t->series_count;
}

static bool write_row(struct sqlite_store *st, sqlite3_stmt *s, int64_t row, struct slice body, struct err *e)
{
    sqlite3_bind_int64(s, 1, row);
    sqlite3_bind_blob(s, 2, body.ptr, (int)body.len, SQLITE_STATIC);
    return sqlite_run(st, s, e, "adding series");
}

/* Append the new keys to the dictionary's last row, and to new rows after it. */
static bool write_keys(struct sqlite_store *st, struct sqlite_report *t, struct err *e)
{
    struct text row = {0};
    const char *p = t->new_keys.ptr, *end = p + t->new_keys.len;
    uint32_t number = t->new_series[0].number;
    bool good = true;
    while (good && number <= t->series_count) {
        struct slice old;
        uint32_t block = number / BODY_SERIES;
        text_clear(&row);
        if (number == 1)
            text_putc(&row, '\n'); /* number 0 is `other`, which has no key */
        else if (number % BODY_SERIES != 0) {
            good = read_row(st, t->series_get, block, &old, e);
            text_add(&row, old.ptr, old.len);
            sqlite3_reset(t->series_get);
        }
        for (; number <= t->series_count && number / BODY_SERIES == block; number++) {
            const char *next = (const char *)memchr(p, '\n', (size_t)(end - p)) + 1;
            text_add(&row, p, (size_t)(next - p));
            p = next;
        }
        good = good && write_row(st, t->series_put, block, text_slice(&row), e);
    }
    text_fini(&row);
    return good;
}

static bool write_lookup(struct sqlite_store *st, struct sqlite_report *t, struct err *e)
{
    struct text row = {0};
    struct radix_item *both = xmalloc(2 * t->new_count * sizeof *both), *sorted;
    bool good = true;
    for (size_t i = 0; i < t->new_count; i++)
        both[i] = (struct radix_item){t->new_series[i].hash >> LOOKUP_SHIFT, (uint32_t)i};
    sorted = radix_sort(both, both + t->new_count, t->new_count);
    for (size_t i = 0; good && i < t->new_count;) {
        uint64_t bucket = sorted[i].key;
        struct slice old;
        text_clear(&row);
        good = read_row(st, t->lookup_get, (int64_t)bucket, &old, e);
        text_add(&row, old.ptr, old.len);
        sqlite3_reset(t->lookup_get);
        for (; i < t->new_count && sorted[i].key == bucket; i++) {
            const struct new_series *s = &t->new_series[sorted[i].index];
            unsigned char entry[8];
            put_le32(entry, (uint32_t)s->hash);
            put_le32(entry + 4, s->number);
            text_add(&row, (const char *)entry, sizeof entry);
        }
        good = good && write_row(st, t->lookup_put, (int64_t)bucket, text_slice(&row), e);
    }
    text_fini(&row);
    free(both);
    return good;
}

bool dict_write_new(struct sqlite_store *st, size_t report, struct err *e)
{
    struct sqlite_report *t = &st->tables[report];
    bool good = t->new_count == 0 || (write_keys(st, t, e) && write_lookup(st, t, e));
    t->new_count = 0;
    text_clear(&t->new_keys);
    /* Not earlier: until the new series are written, only the cache has them. */
    if (arena_bytes(&t->dict.keys) > st->dict_key_bytes_max)
        dict_clear(&t->dict);
    return good;
}

/* Other stores hold what others may have written: a copy may bring such a key. */
static bool check_key(struct sqlite_store *st, size_t report, struct slice key, struct err *e)
{
    return key.len == 0 ||
           (memchr(key.ptr, '\n', key.len) == NULL && memchr(key.ptr, '\0', key.len) == NULL) ||
           err_set(e, EX_DATAERR, "a series of report %s has a line feed or a NUL in its name",
                   st->reports[report].name);
}

/* Set *number to the number of a key: cached, from the file, new, or `other` if the report is full. */
static bool resolve(void *context, size_t report, struct slice key, uint32_t *number, struct err *e)
{
    struct sqlite_store *st = context;
    struct sqlite_report *t = &st->tables[report];
    uint64_t hash = XXH3_64bits(key.ptr, key.len);
    bool found = false;
    if (dict_get(&t->dict, hash, key, number))
        return true;
    if (!t->dict.complete && !find_in_file(st, report, hash, key, number, &found, e))
        return false;
    if (!found && t->series_count >= st->reports[report].series_max) {
        *number = STORE_SERIES_OTHER;
        return true;
    }
    if (!found && !check_key(st, report, key, e))
        return false;
    if (!found)
        *number = add_new(t, hash, key);
    dict_put(&t->dict, hash, key, *number);
    return true;
}

bool dict_resolve_added(struct sqlite_store *st, size_t report, const struct part *part, struct err *e)
{
    return series_map_add(&st->tables[report].map, part, report, resolve, st, e);
}

size_t sqlite_bytes_max(const struct report *reports, size_t report_count)
{
    size_t bytes = (size_t)SQLITE_WRITER_CACHE_KIB << 10, rows = 0;
    for (size_t i = 0; i < report_count; i++) {
        size_t entries = 1, of_report = row_jobs_bytes_max(&reports[i]);
        rows = of_report > rows ? of_report : rows; /* reports take turns */
        if (reports[i].dimension_count == 0)
            continue;
        while (entries < reports[i].series_max)
            entries *= 2;
        bytes += DICT_KEY_BYTES_MAX + entries * (sizeof(struct dict_entry) + 2 * sizeof(struct index_slot));
    }
    return bytes + rows;
}
