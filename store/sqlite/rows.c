/* Writes sorted deltas into rows: one read-merge-write per (bucket, block) that the batch touches. */
#include "base/check.h"
#include "base/civil.h"
#include "base/mem.h"
#include "store/sqlite/internal.h"

#include <stdlib.h>

#define SKETCH_CHUNK_BYTES ((size_t)256 << 10)
#define AHEAD              8
#define BLOCK_BITS         (6 + BODY_SERIES_BITS) /* of a key: series of a block, and slot */

void items_reserve(struct items *it, size_t more, const struct report *r)
{
    const size_t count = it->count + more;
    ASSERT(count < UINT32_MAX);
    it->items = xgrow(it->items, &it->capacity, count, sizeof *it->items);
    it->values = xgrow(it->values, &it->values_capacity, count * r->column_count, sizeof *it->values);
    if (r->sketch_count > 0)
        it->sketches =
            xgrow(it->sketches, &it->sketches_capacity, count * r->sketch_count, sizeof *it->sketches);
}

static struct arena *memory_of(struct items *it)
{
    if (it->memory.chunk_bytes == 0)
        arena_init(&it->memory, SKETCH_CHUNK_BYTES);
    return &it->memory;
}

bool items_merge_packed(struct items *it, const struct report *r, size_t index, const struct slice *sketches)
{
    for (size_t i = 0; i < r->sketch_count; i++) {
        if (!sketch_merge(measure_sketch_kind(report_sketched(r, i)),
                          &it->sketches[index * r->sketch_count + i], memory_of(it), sketches[i]))
            return false;
    }
    return true;
}

void items_clear(struct items *it)
{
    it->count = 0;
    arena_reset(&it->memory);
}

void items_fini(struct items *it)
{
    free(it->items);
    free(it->scratch);
    free(it->values);
    free(it->sketches);
    free(it->united);
    arena_fini(&it->memory);
    *it = (struct items){0};
}

/* Merge the sketches of items [first, end) of one level into an item of the same or of another one, whose
 * time buckets have the resolution `span`. The sketches of several items make new ones: those of a part
 * must stay as they are, since the batch may be applied again. */
static void items_unite(const struct report *r, struct items *to, size_t index, const struct items *from,
                        size_t first, size_t end, enum span span)
{
    for (size_t k = 0; k < r->sketch_count; k++) {
        const struct measure *m = report_sketched(r, k);
        union sketch whole = {0};
        if (end - first == 1 && !measure_widens(m, span)) {
            whole = from->sketches[from->items[first].index * r->sketch_count + k];
        } else {
            to->united = xgrow(to->united, &to->united_capacity, end - first, sizeof *to->united);
            for (size_t i = first; i < end; i++)
                to->united[i - first] = &from->sketches[from->items[i].index * r->sketch_count + k];
            sketch_unite_all(measure_sketch_kind(m), &whole, memory_of(to), to->united, end - first,
                             measure_schema(m, span));
        }
        to->sketches[index * r->sketch_count + k] = whole;
    }
}

/* Sort by key and merge equal keys (several parts may hold the same cell). */
static void items_settle(struct items *it, const struct report *r)
{
    it->scratch = xgrow(it->scratch, &it->scratch_capacity, it->capacity, sizeof *it->scratch);
    if (radix_sort(it->items, it->scratch, it->count) == it->scratch) {
        struct radix_item *swap = it->items;
        it->items = it->scratch;
        it->scratch = swap;
        size_t capacity = it->capacity;
        it->capacity = it->scratch_capacity;
        it->scratch_capacity = capacity;
    }
    size_t kept = 0;
    for (size_t i = 0, end; i < it->count; i = end) {
        int64_t *values = &it->values[it->items[i].index * r->column_count];
        for (end = i + 1; end < it->count && it->items[end].key == it->items[i].key; end++)
            report_merge(r, values, &it->values[it->items[end].index * r->column_count]);
        if (r->sketch_count > 0 && end - i > 1)
            items_unite(r, it, it->items[i].index, it, i, end, report_cell(r));
        it->items[kept++] = it->items[i];
    }
    it->count = kept;
}

static bool fail_damaged(const struct sqlite_store *st, int64_t at, struct err *e)
{
    return err_set(e, EX_DATAERR, "%s is damaged: row %lld does not decode; restore it from a backup",
                   st->path, (long long)at);
}

/* Read the row's body into `old`. */
static bool read_row(struct sqlite_store *st, struct level_table *t, int64_t at, struct text *old,
                     struct err *e)
{
    text_clear(old);
    if (at > t->last_at)
        return true;
    sqlite3_bind_int64(t->get, 1, at);
    const int rc = sqlite3_step(t->get);
    if (rc == SQLITE_ROW)
        text_add(old, sqlite3_column_blob(t->get, 0), (size_t)sqlite3_column_bytes(t->get, 0));
    sqlite3_reset(t->get);
    return rc == SQLITE_ROW || rc == SQLITE_DONE || sqlite_fail(st, e, "reading counts");
}

/* Write the oldest row that is being merged. Pre: there is one. */
static bool write_oldest(struct sqlite_store *st, struct level_table *t, struct err *e)
{
    const struct row_job *job = row_jobs_oldest(&st->row_jobs);
    if (job->is_damaged)
        return fail_damaged(st, job->at, e);
    ASSERT(job->body.len <= INT32_MAX);
    sqlite3_bind_int64(t->put, 1, job->at);
    sqlite3_bind_blob(t->put, 2, job->body.data, (int)job->body.len, SQLITE_STATIC);
    if (!sqlite_run(st, t->put, e, "writing counts"))
        return false;
    if (job->at > t->last_at)
        t->last_at = job->at;
    row_jobs_release(&st->row_jobs);
    return true;
}

static bool delete_row(struct sqlite_store *st, size_t report, enum level level, int64_t at, struct err *e)
{
    struct level_table *t = &st->tables[report].levels[level];
    if (t->remove == NULL && !sqlite_prepare(st, &t->remove, e, "DELETE FROM %s_%lld WHERE at = ?",
                                             sqlite_level_names[level], (long long)st->tables[report].id))
        return false;
    sqlite3_bind_int64(t->remove, 1, at);
    return sqlite_run(st, t->remove, e, "deleting counts");
}

/* Take the block's items out of a row, and delete the row if nothing is left. */
static bool take_row(struct sqlite_store *st, size_t report, enum level level, int64_t at, size_t count,
                     struct err *e)
{
    const struct report *r = &st->reports[report];
    struct level_table *t = &st->tables[report].levels[level];
    sqlite3_bind_int64(t->get, 1, at);
    int rc = sqlite3_step(t->get);
    if (rc != SQLITE_ROW && rc != SQLITE_DONE) {
        sqlite3_reset(t->get);
        return sqlite_fail(st, e, "reading counts");
    }
    struct slice old = {NULL, 0};
    if (rc == SQLITE_ROW)
        old = slice_of(sqlite3_column_blob(t->get, 0), (size_t)sqlite3_column_bytes(t->get, 0));
    enum body_taken result = body_take(old, st->block_items, count, r, &st->body);
    sqlite3_reset(t->get);
    if (result == BODY_IS_DAMAGED)
        return fail_damaged(st, at, e);
    if (result == BODY_LACKS_ITEM)
        return err_set(
            e, EX_DATAERR,
            "report \"%s\" has less than is to be taken out of it, in the %s row %lld: the lines were "
            "counted in another way, or a sum is at its limit. Nothing was changed",
            r->name, sqlite_level_names[level], (long long)at);
    if (st->body.len == 0)
        return delete_row(st, report, level, at, e);
    sqlite3_bind_int64(t->put, 1, at);
    sqlite3_bind_blob(t->put, 2, st->body.data, (int)st->body.len, SQLITE_STATIC);
    return sqlite_run(st, t->put, e, "writing counts");
}

/* The first bucket to write: earlier rows would be deleted at once. Counts are always added to rows of years,
 * so that each admitted event is counted somewhere. */
static uint64_t first_kept(const struct sqlite_report *t, enum level level, enum rows_how how)
{
    if (level == LEVEL_FRESH || (level == LEVEL_YEAR && how == ROWS_ADD))
        return 0;
    return (uint64_t)sqlite_bucket(level, t->watermarks.before_ms[sqlite_span(level)]);
}

/* Gather the items of the row that begins with item *i, into an array of *capacity; move *i behind them.
 * Returns how many there are: items of zeros are not taken. */
static size_t gather_row(const struct items *it, size_t *i, const struct report *r, enum rows_how how,
                         struct body_item **row, size_t *capacity)
{
    const uint64_t group = it->items[*i].key >> BLOCK_BITS;
    size_t n = 0;
    for (; *i < it->count && it->items[*i].key >> BLOCK_BITS == group; ++*i) {
        const uint64_t key = it->items[*i].key;
        const int64_t *value = &it->values[it->items[*i].index * r->column_count];
        if (how == ROWS_TAKE && report_is_zero(r, value))
            continue;
        *row = xgrow(*row, capacity, n + 1, sizeof **row);
        const union sketch *sketches =
            r->sketch_count == 0 ? NULL : &it->sketches[it->items[*i].index * r->sketch_count];
        __builtin_prefetch(value);
        __builtin_prefetch(sketches);
        (*row)[n++] = (struct body_item){.series = (uint32_t)(key >> 6) & (BODY_SERIES - 1),
                                         .slot = (uint32_t)key & 63,
                                         .value = value,
                                         .sketches = sketches};
    }
    return n;
}

/* The rowid of the row that item `i` belongs to; -1: its bucket is before `kept`. */
static int64_t row_of(const struct items *it, size_t i, uint64_t kept)
{
    const uint64_t group = it->items[i].key >> BLOCK_BITS, bucket = group >> (SERIES_BITS - BODY_SERIES_BITS),
                   block = group & ((1u << (SERIES_BITS - BODY_SERIES_BITS)) - 1);
    return bucket < kept ? -1 : (int64_t)(bucket << BLOCK_SHIFT | block);
}

static bool take_level(struct sqlite_store *st, size_t report, enum level level, struct err *e)
{
    const struct report *r = &st->reports[report];
    struct items *it = &st->items[level];
    const uint64_t kept = first_kept(&st->tables[report], level, ROWS_TAKE);
    items_settle(it, r);
    for (size_t i = 0; i < it->count;) {
        const int64_t at = row_of(it, i, kept);
        const size_t n = gather_row(it, &i, r, ROWS_TAKE, &st->block_items, &st->block_capacity);
        if (at >= 0 && n > 0 && !take_row(st, report, level, at, n, e))
            return false;
    }
    return true;
}

static bool add_level(struct sqlite_store *st, size_t report, enum level level, struct err *e)
{
    const struct report *r = &st->reports[report];
    struct level_table *t = &st->tables[report].levels[level];
    struct items *it = &st->items[level];
    const uint64_t kept = first_kept(&st->tables[report], level, ROWS_ADD);
    items_settle(it, r);
    for (size_t i = 0; i < it->count;) {
        struct row_job *job = row_jobs_free(&st->row_jobs);
        if (job == NULL) {
            if (!write_oldest(st, t, e))
                return false;
            continue;
        }
        job->at = row_of(it, i, kept);
        job->item_count = gather_row(it, &i, r, ROWS_ADD, &job->items, &job->capacity);
        if (job->at < 0)
            continue;
        if (!read_row(st, t, job->at, &job->old, e))
            return false;
        row_jobs_submit(&st->row_jobs);
    }
    while (row_jobs_oldest(&st->row_jobs) != NULL) {
        if (!write_oldest(st, t, e))
            return false;
    }
    return true;
}

static void parent_of(enum level level, uint64_t bucket, uint64_t *parent, uint32_t *slot)
{
    if (level == LEVEL_DAY) {
        int64_t ms = (int64_t)bucket * DAY_MS;
        *parent = (uint64_t)civil_month_index(ms);
        *slot = (uint32_t)civil_from_ms(ms).day - 1;
        return;
    }
    ASSERT(level == LEVEL_HOUR || level == LEVEL_MONTH);
    const unsigned slots = level == LEVEL_HOUR ? 24 : 12;
    *parent = bucket / slots;
    *slot = (uint32_t)(bucket % slots);
}

/* Fetch what is read AHEAD items later: their values and sketches lie in the order of arrival. */
static inline void prefetch_ahead(const struct items *it, size_t i, const struct report *r)
{
    if (i + AHEAD >= it->count)
        return;
    const size_t index = it->items[i + AHEAD].index;
    __builtin_prefetch(&it->values[index * r->column_count]);
    if (r->sketch_count > 0)
        __builtin_prefetch(&it->sketches[index * r->sketch_count]);
}

/* Total each (bucket, series) of a settled level into one slot of the next level. */
static void total_into_parent(struct sqlite_store *st, enum level level, const struct report *r)
{
    ASSERT(level >= LEVEL_HOUR && level < LEVEL_YEAR);
    struct items *from = &st->items[level], *to = &st->items[level + 1];
    items_clear(to);
    items_reserve(to, from->count, r);
    uint64_t parent = 0, known = UINT64_MAX;
    uint32_t slot = 0;
    for (size_t i = 0, end; i < from->count; i = end) {
        uint64_t owner = from->items[i].key >> 6;
        uint64_t bucket = owner >> SERIES_BITS;
        if (bucket != known) {
            parent_of(level, bucket, &parent, &slot);
            known = bucket;
        }
        int64_t *total = items_add(to, items_key(parent, (uint32_t)owner & (SERIES_MAX - 1), slot), r);
        prefetch_ahead(from, i, r);
        for (size_t c = 0; c < r->column_count; c++)
            total[c] = from->values[from->items[i].index * r->column_count + c];
        for (end = i + 1; end < from->count && from->items[end].key >> 6 == owner; end++) {
            prefetch_ahead(from, end, r);
            report_merge(r, total, &from->values[from->items[end].index * r->column_count]);
        }
        if (r->sketch_count > 0)
            items_unite(r, to, to->count - 1, from, i, end, sqlite_span(level + 1));
    }
}

void rows_gather(struct sqlite_store *st, size_t report, const struct part *part, enum level level)
{
    const struct sqlite_report *t = &st->tables[report];
    const struct report *r = &st->reports[report];
    const struct cells *cells = &part->reports[report].cells;
    struct items *it = &st->items[level];
    items_reserve(it, cells->count, r);
    for (size_t i = 0; i < cells->count; i++) {
        struct cell *c = cells_at(cells, i);
        uint32_t number = series_map_number(&t->map, part, c->series);
        uint64_t key = level == LEVEL_FRESH ? items_key(c->time, number, 0)
                                            : items_key(c->time / 60, number, c->time % 60);
        int64_t *values = items_add(it, key, r);
        for (size_t k = 0; k < r->column_count; k++)
            values[k] = c->value[k];
        for (size_t k = 0; k < r->sketch_count; k++)
            it->sketches[(it->count - 1) * r->sketch_count + k] = *report_sketch(r, c, k);
    }
}

bool rows_write_fresh(struct sqlite_store *st, size_t report, struct err *e)
{
    row_jobs_start(&st->row_jobs, &st->reports[report], st->body.packs_tight, st->items[LEVEL_FRESH].count);
    const bool good = add_level(st, report, LEVEL_FRESH, e);
    row_jobs_stop(&st->row_jobs);
    return good;
}

bool rows_write_folded(struct sqlite_store *st, size_t report, enum rows_how how, struct err *e)
{
    bool good = true;
    row_jobs_start(&st->row_jobs, &st->reports[report], st->body.packs_tight,
                   how == ROWS_ADD ? st->items[LEVEL_HOUR].count : 0);
    for (enum level level = LEVEL_HOUR; good && level <= LEVEL_YEAR; level++) {
        good = how == ROWS_ADD ? add_level(st, report, level, e) : take_level(st, report, level, e);
        if (good && level < LEVEL_YEAR)
            total_into_parent(st, level, &st->reports[report]);
    }
    row_jobs_stop(&st->row_jobs);
    return good;
}
