#include "query/top.h"

#include "base/heap.h"
#include "base/mem.h"

#include <stdlib.h>

#define KEYS_CHUNK_BYTES ((size_t)64 << 10)

/* Rank of an absent value, below every value; and rank of a series that is left out, below that. */
#define RANK_ABSENT (-((int128)1 << 100))
#define RANK_NONE   (RANK_ABSENT - 1)

struct ranked {
    int128 rank;
    uint32_t series;
    struct slice key;
};

void top_init(struct top *t, const struct answer *a, uint64_t sketches_max, struct share *memory)
{
    const struct measure *m = &a->report->measures[a->measures[0]];
    *t = (struct top){.answer = a, .sketches_max = sketches_max, .memory = memory};
    t->is_plain = a->measure_count == 1 && measure_column_count(m) == 1 && measure_is_additive(m) &&
                  a->sketch_count == 0;
    arena_init(&t->keys, KEYS_CHUNK_BYTES);
    arena_init(&t->sketch_memory, KEYS_CHUNK_BYTES);
}

void top_fini(struct top *t)
{
    free(t->rows);
    free(t->sketches);
    free(t->told);
    arena_fini(&t->sketch_memory);
    free(t->places);
    free(t->shown);
    arena_fini(&t->keys);
}

static int64_t *row_at(const struct top *t, size_t row)
{
    return &t->rows[row * (1 + t->answer->column_count)];
}

static union sketch *sketches_at(const struct top *t, size_t row)
{
    return t->answer->sketch_count > 0 ? &t->sketches[row * t->answer->sketch_count] : NULL;
}

/* Grow `places` in large steps, since series mostly come one after the other. */
static bool make_places(struct top *t, uint32_t series)
{
    size_t known = t->place_count;
    if (!share_fit(t->memory, &t->places_counted, 2 * ((size_t)series + 1) * sizeof *t->places))
        return false;
    t->places = xgrow(t->places, &t->place_count, (size_t)series + 1, sizeof *t->places);
    memset(t->places + known, 0, (t->place_count - known) * sizeof *t->places);
    return true;
}

/* NULL: there is no memory for it. */
static int64_t *add_row(struct top *t, uint32_t series)
{
    size_t width = 1 + t->answer->column_count;
    if (!share_take(t->memory, width * sizeof *t->rows + t->answer->sketch_count * sizeof *t->sketches))
        return NULL;
    if ((t->count + 1) * width > t->capacity)
        t->rows = xgrow(t->rows, &t->capacity, (t->count + 1) * width, sizeof *t->rows);
    const size_t sketches = t->answer->sketch_count;
    if (sketches > 0) {
        t->sketches = xgrow(t->sketches, &t->sketch_capacity, (t->count + 1) * sketches, sizeof *t->sketches);
        memset(&t->sketches[t->count * sketches], 0, sketches * sizeof *t->sketches);
    }
    int64_t *row = row_at(t, t->count++);
    row[0] = series;
    for (size_t i = 1; i < width; i++)
        row[i] = 0;
    t->places[series] = (uint32_t)t->count;
    return row;
}

static void merge(const struct top *t, int64_t *row, const int64_t *columns)
{
    const struct answer *a = t->answer;
    if (t->is_plain)
        row[0] = value_add(row[0], columns[a->report->measures[a->measures[0]].column]);
    else
        answer_merge(a, row, columns);
}

void top_scan(void *top, uint32_t series, int64_t bucket_ms, const int64_t *columns)
{
    struct top *t = top;
    (void)bucket_ms;
    t->is_refused = t->is_refused || (series >= t->place_count && !make_places(t, series));
    if (t->is_refused)
        return;
    uint32_t place = t->places[series];
    int64_t *row = place > 0 ? row_at(t, place - 1) : add_row(t, series);
    t->is_refused = row == NULL;
    if (row != NULL)
        merge(t, row + 1, columns);
}

bool top_scan_sketch(void *top, uint32_t series, int64_t bucket_ms, size_t sketch, struct slice packed,
                     struct err *e)
{
    struct top *t = top;
    (void)bucket_ms;
    if (!top_check(t, e))
        return false;
    ASSERT(series < t->place_count && t->places[series] > 0); /* its columns came before */
    if (!answer_merge_sketch(t->answer, sketches_at(t, t->places[series] - 1), &t->sketch_memory, sketch,
                             packed, t->sketches_max, e))
        return false;
    t->is_refused = !share_fit(t->memory, &t->sketches_counted, arena_bytes(&t->sketch_memory));
    return top_check(t, e);
}

void top_tell(void *top, uint32_t series, int64_t period_ms, const int64_t *columns, int128 value)
{
    struct top *t = top;
    top_scan(t, series, period_ms, columns);
    if (t->answer->sketch_count == 0 || t->is_refused)
        return;
    t->is_refused = !share_take(t->memory, sizeof *t->told);
    if (t->is_refused)
        return;
    t->told = xgrow(t->told, &t->told_capacity, t->count, sizeof *t->told);
    t->told[t->places[series] - 1] = value;
}

bool top_check(const struct top *t, struct err *e)
{
    return !t->is_refused || share_fail(t->memory, e);
}

/* The row of a series; SIZE_MAX: no scan named it. */
static size_t row_of(const struct top *t, uint32_t series)
{
    uint32_t place = series < t->place_count ? t->places[series] : 0;
    return place > 0 ? place - 1 : SIZE_MAX;
}

/* The answer's first figure of a row; false: it is absent. */
static bool value_at(const struct top *t, size_t row, int128 *value)
{
    if (t->told == NULL)
        return answer_figure(t->answer, row_at(t, row) + 1, sketches_at(t, row), 0, value);
    *value = t->told[row];
    return true;
}

bool top_value(const struct top *t, uint32_t series, int128 *value)
{
    size_t row = row_of(t, series);
    return row != SIZE_MAX && value_at(t, row, value);
}

/* Merge the sketches of all rows. */
static void total_sketches(struct top *t, union sketch *sketches)
{
    const struct answer *a = t->answer;
    for (size_t i = 0, sketch = 0; i < a->measure_count; i++) {
        const struct measure *m = &a->report->measures[a->measures[i]];
        if (!measure_has_sketch(m))
            continue;
        for (size_t row = 0; row < t->count; row++)
            sketch_unite(measure_sketch_kind(m), &sketches[sketch], &t->sketch_memory,
                         &sketches_at(t, row)[sketch], HISTOGRAM_SCHEMA_MAX);
        sketch++;
    }
}

void top_total(struct top *t, int64_t *columns, union sketch *sketches)
{
    const struct answer *a = t->answer;
    total_sketches(t, sketches);
    for (size_t row = 0; row < t->count; row++) {
        if (t->is_plain) {
            columns[0] = value_add(columns[0], row_at(t, row)[1]);
            continue;
        }
        for (size_t i = 0; i < a->measure_count; i++)
            measure_merge(&a->report->measures[a->measures[i]], columns + a->first[i],
                          row_at(t, row) + 1 + a->first[i]);
    }
}

/* The rank of a series; RANK_NONE: it is left out. */
static int128 rank_of(const struct top *t, size_t row)
{
    const struct answer *a = t->answer;
    int128 value = row_at(t, row)[1];
    if (t->is_plain)
        return value == 0 ? RANK_NONE : value;
    if (!value_at(t, row, &value))
        return RANK_ABSENT;
    return value == 0 && figure_is_amount(&a->figures[0], &a->report->measures[a->measures[0]]) ? RANK_NONE
                                                                                                : value;
}

static bool is_less(const void *a, const void *b)
{
    return *(const int128 *)a < *(const int128 *)b;
}

/* The least of the greatest `rows_max` ranks: series below it are not shown. */
static int128 least_shown(const int128 *ranks, size_t row_count, uint64_t rows_max)
{
    size_t room = rows_max < row_count ? (size_t)rows_max : row_count, count = 0;
    int128 *heap = xmalloc(room * sizeof *heap);
    for (size_t row = 0; row < row_count; row++) {
        if (ranks[row] != RANK_NONE)
            heap_offer(heap, &count, room, &ranks[row], sizeof *heap, is_less);
    }
    int128 least = count < room || count == 0 ? RANK_ABSENT : heap[0];
    free(heap);
    return least;
}

/* Take the series that may be shown: also all that share the last place, since their keys decide later. */
static size_t take_candidates(const struct top *t, uint64_t rows_max, struct ranked **candidates)
{
    size_t count = 0, capacity = 0;
    int128 *ranks = xmalloc(t->count * sizeof *ranks);
    for (size_t row = 0; row < t->count; row++)
        ranks[row] = rank_of(t, row);
    int128 least = least_shown(ranks, t->count, rows_max);
    for (size_t row = 0; row < t->count; row++) {
        if (ranks[row] < least)
            continue;
        *candidates = xgrow(*candidates, &capacity, count + 1, sizeof **candidates);
        (*candidates)[count++] = (struct ranked){.rank = ranks[row], .series = (uint32_t)row_at(t, row)[0]};
    }
    free(ranks);
    return count;
}

static bool is_lower(const void *a, const void *b)
{
    return ((const struct ranked *)a)->rank < ((const struct ranked *)b)->rank;
}

static int compare_ranks(const void *left, const void *right)
{
    return is_lower(left, right) - is_lower(right, left);
}

size_t top_largest(const struct top *t, uint32_t *series, size_t room)
{
    struct ranked *heap = xmalloc(room * sizeof *heap);
    size_t count = 0;
    for (size_t row = 0; row < t->count; row++) {
        const struct ranked one = {.rank = rank_of(t, row), .series = (uint32_t)row_at(t, row)[0]};
        if (one.rank > 0)
            heap_offer(heap, &count, room, &one, sizeof one, is_lower);
    }
    if (count > 0)
        qsort(heap, count, sizeof *heap, compare_ranks);
    for (size_t i = 0; i < count; i++)
        series[i] = heap[i].series;
    free(heap);
    return count;
}

static int compare_ranked(const void *left, const void *right)
{
    const struct ranked *a = left, *b = right;
    if (a->rank != b->rank)
        return a->rank > b->rank ? -1 : 1;
    return slice_compare(a->key, b->key);
}

static bool read_keys(struct top *t, struct store *st, size_t report, struct ranked *ranked, size_t count,
                      struct err *e)
{
    struct text key = {0};
    bool good = true;
    for (size_t i = 0; good && i < count; i++) {
        text_clear(&key);
        good = store_series_key(st, report, ranked[i].series, &key, e);
        if (good)
            ranked[i].key = arena_copy(&t->keys, text_slice(&key));
        if (good && !share_fit(t->memory, &t->keys_counted, arena_bytes(&t->keys)))
            good = share_fail(t->memory, e);
    }
    text_fini(&key);
    return good;
}

static void fill_rows(struct top *t, const struct ranked *ranked, size_t count, struct answer *a)
{
    const size_t row_bytes = a->column_count * sizeof *a->columns,
                 sketches_bytes = a->sketch_count * sizeof *a->sketches;
    a->row_count = count;
    a->columns = xmalloc(count * row_bytes);
    a->sketches = a->sketch_count > 0 ? xmalloc(count * sketches_bytes) : NULL;
    a->told = t->told != NULL ? xmalloc(count * sizeof *a->told) : NULL;
    a->keys = xmalloc(count * sizeof *a->keys);
    t->shown = xmalloc(count * sizeof *t->shown);
    for (size_t row = 0; row < count; row++) {
        const size_t from = row_of(t, ranked[row].series);
        memcpy(a->columns + row * a->column_count, row_at(t, from) + 1, row_bytes);
        if (a->sketch_count > 0)
            memcpy(a->sketches + row * a->sketch_count, sketches_at(t, from), sketches_bytes);
        if (a->told != NULL)
            a->told[row] = t->told[from];
        a->keys[row] = ranked[row].key;
        t->shown[row] = ranked[row].series;
    }
}

bool top_finish(struct top *t, struct store *st, size_t report, uint64_t rows_max, struct answer *a,
                struct err *e)
{
    struct ranked *ranked = NULL;
    const uint64_t shown_bytes = a->column_count * sizeof *a->columns +
                                 a->sketch_count * sizeof *a->sketches + sizeof *a->told + sizeof *a->keys +
                                 sizeof *t->shown;
    if (!top_check(t, e))
        return false;
    if (!share_take(t->memory, t->count * (sizeof(int128) + sizeof *ranked + shown_bytes)))
        return share_fail(t->memory, e);
    size_t count = take_candidates(t, rows_max, &ranked);
    bool good = read_keys(t, st, report, ranked, count, e);
    if (good) {
        if (count > 0)
            qsort(ranked, count, sizeof *ranked, compare_ranked);
        fill_rows(t, ranked, count < rows_max ? count : (size_t)rows_max, a);
    }
    free(ranked);
    return good;
}
