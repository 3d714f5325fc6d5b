#include "query/top.h"

#include "base/mem.h"

#include <stdlib.h>

#define KEYS_CHUNK_BYTES ((size_t)64 << 10)

/* Below every value; and below that. */
#define RANK_ABSENT (-((int128)1 << 100))
#define RANK_NONE   (RANK_ABSENT - 1)

struct ranked {
    int128 rank;
    uint32_t series;
    struct slice key;
};

void top_init(struct top *t, const struct answer *a)
{
    *t = (struct top){.answer = a};
    arena_init(&t->keys, KEYS_CHUNK_BYTES);
}

void top_fini(struct top *t)
{
    free(t->rows);
    free(t->shown);
    arena_fini(&t->keys);
}

static int64_t *row_of(const struct top *t, uint32_t series)
{
    return &t->rows[series * (1 + t->answer->column_count)];
}

/* By leaps, since series mostly come one after the other. */
static void make_room(struct top *t, uint32_t series)
{
    size_t width = 1 + t->answer->column_count, known = t->capacity;
    t->rows = xgrow(t->rows, &t->capacity, ((size_t)series + 1) * width, sizeof *t->rows);
    memset(t->rows + known, 0, (t->capacity - known) * sizeof *t->rows);
}

void top_scan(void *top, uint32_t series, int64_t slot_ms, const int64_t *columns)
{
    struct top *t = top;
    (void)slot_ms;
    if (series >= t->series_count) {
        if (((size_t)series + 1) * (1 + t->answer->column_count) > t->capacity)
            make_room(t, series);
        t->series_count = (size_t)series + 1;
    }
    int64_t *row = row_of(t, series);
    row[0] = 1;
    answer_merge(t->answer, row + 1, columns);
}

const int64_t *top_columns(const struct top *t, uint32_t series)
{
    const int64_t *row = series < t->series_count ? row_of(t, series) : NULL;
    return row != NULL && row[0] != 0 ? row + 1 : NULL;
}

void top_total(const struct top *t, int64_t *columns)
{
    const struct answer *a = t->answer;
    for (uint32_t series = 0; series < t->series_count; series++) {
        const int64_t *row = row_of(t, series);
        for (size_t i = 0; row[0] != 0 && i < a->measure_count; i++)
            measure_merge(&a->report->measures[a->measures[i]], columns + a->first[i], row + 1 + a->first[i]);
    }
}

/* By which a series is ranked; RANK_NONE: it is not there. */
static int128 rank_of(const struct top *t, uint32_t series)
{
    const struct measure *m = &t->answer->report->measures[t->answer->measures[0]];
    const int64_t *row = row_of(t, series);
    int128 value;
    if (row[0] == 0)
        return RANK_NONE;
    if (!measure_value(m, row + 1, &value))
        return RANK_ABSENT;
    return value == 0 && (m->kind == MEASURE_COUNT || m->kind == MEASURE_SUM) ? RANK_NONE : value;
}

static void heap_push(int128 *heap, size_t count, int128 rank)
{
    size_t at = count;
    for (; at > 0 && heap[(at - 1) / 2] > rank; at = (at - 1) / 2)
        heap[at] = heap[(at - 1) / 2];
    heap[at] = rank;
}

/* Instead of the least. */
static void heap_replace(int128 *heap, size_t count, int128 rank)
{
    size_t at = 0;
    for (size_t child; (child = 2 * at + 1) < count; at = child) {
        child += child + 1 < count && heap[child + 1] < heap[child];
        if (heap[child] >= rank)
            break;
        heap[at] = heap[child];
    }
    heap[at] = rank;
}

/* The least of the greatest `rows_max` ranks: what is below it is not shown. */
static int128 least_shown(const int128 *ranks, size_t series_count, uint64_t rows_max)
{
    size_t room = rows_max < series_count ? (size_t)rows_max : series_count, count = 0;
    int128 *heap = xmalloc(room * sizeof *heap); /* the least first */
    for (size_t series = 0; series < series_count; series++) {
        if (ranks[series] == RANK_NONE)
            continue;
        if (count < room)
            heap_push(heap, count++, ranks[series]);
        else if (ranks[series] > heap[0])
            heap_replace(heap, count, ranks[series]);
    }
    int128 least = count < room || count == 0 ? RANK_ABSENT : heap[0];
    free(heap);
    return least;
}

/* Those that may be shown: who shares the last place is settled by key, so all of them are taken. */
static size_t take_candidates(const struct top *t, uint64_t rows_max, struct ranked **candidates)
{
    size_t count = 0, capacity = 0;
    int128 *ranks = xmalloc(t->series_count * sizeof *ranks);
    for (uint32_t series = 0; series < t->series_count; series++)
        ranks[series] = rank_of(t, series);
    int128 least = least_shown(ranks, t->series_count, rows_max);
    for (uint32_t series = 0; series < t->series_count; series++) {
        if (ranks[series] < least)
            continue;
        *candidates = xgrow(*candidates, &capacity, count + 1, sizeof **candidates);
        (*candidates)[count++] = (struct ranked){.rank = ranks[series], .series = series};
    }
    free(ranks);
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
    }
    text_fini(&key);
    return good;
}

static void fill_rows(struct top *t, const struct ranked *ranked, size_t count, struct answer *a)
{
    size_t row_bytes = a->column_count * sizeof *a->columns;
    a->row_count = count;
    a->columns = xmalloc(count * row_bytes);
    a->keys = xmalloc(count * sizeof *a->keys);
    t->shown = xmalloc(count * sizeof *t->shown);
    for (size_t row = 0; row < count; row++) {
        memcpy(a->columns + row * a->column_count, row_of(t, ranked[row].series) + 1, row_bytes);
        a->keys[row] = ranked[row].key;
        t->shown[row] = ranked[row].series;
    }
}

bool top_finish(struct top *t, struct store *st, size_t report, uint64_t rows_max, struct answer *a,
                struct err *e)
{
    struct ranked *ranked = NULL;
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
