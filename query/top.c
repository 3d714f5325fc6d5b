#include "query/top.h"

#include "base/mem.h"
#include "base/radix.h"

#include <stdlib.h>

#define KEYS_CHUNK_BYTES ((size_t)64 << 10)

/* Below every value. */
#define RANK_ABSENT (-((int128)1 << 100))

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
    arena_fini(&t->keys);
}

static int64_t *row_of(const struct top *t, uint32_t series)
{
    return &t->rows[series * (1 + t->answer->column_count)];
}

void top_add(struct top *t, uint32_t series, const int64_t *columns)
{
    size_t width = 1 + t->answer->column_count;
    if (series >= t->series_count) {
        size_t known = t->series_count;
        t->series_count = (size_t)series + 1;
        t->rows = xgrow(t->rows, &t->capacity, t->series_count * width, sizeof *t->rows);
        memset(t->rows + known * width, 0, (t->series_count - known) * width * sizeof *t->rows);
    }
    int64_t *row = row_of(t, series);
    row[0] = 1;
    answer_merge(t->answer, row + 1, columns);
}

static int128 rank_of(const struct top *t, uint32_t series)
{
    const struct measure *m = &t->answer->report->measures[t->answer->measures[0]];
    int128 value;
    return measure_value(m, row_of(t, series) + 1, &value) ? value : RANK_ABSENT;
}

static bool is_ranked(const struct top *t, uint32_t series)
{
    enum measure_kind kind = t->answer->report->measures[t->answer->measures[0]].kind;
    bool is_total = kind == MEASURE_COUNT || kind == MEASURE_SUM;
    return row_of(t, series)[0] != 0 && (!is_total || rank_of(t, series) != 0);
}

/* A key that sorts as the ranks do, but for ranks beyond 64 bits, which share the first or the last key. */
static uint64_t descending(int128 rank)
{
    int64_t cut = rank > INT64_MAX ? INT64_MAX : rank < INT64_MIN ? INT64_MIN : (int64_t)rank;
    return ~((uint64_t)cut ^ (uint64_t)INT64_MIN);
}

/* Greatest first. Returns the sorted items, in one array or the other. */
static struct radix_item *sort_ranks(const struct top *t, struct radix_item *items,
                                     struct radix_item *scratch, size_t *count)
{
    *count = 0;
    for (uint32_t series = 0; series < t->series_count; series++) {
        if (is_ranked(t, series))
            items[(*count)++] = (struct radix_item){descending(rank_of(t, series)), series};
    }
    return radix_sort(items, scratch, *count);
}

static int compare_ranked(const void *left, const void *right)
{
    const struct ranked *a = left, *b = right;
    if (a->rank != b->rank)
        return a->rank > b->rank ? -1 : 1;
    size_t shorter = a->key.len < b->key.len ? a->key.len : b->key.len;
    int order = shorter > 0 ? memcmp(a->key.ptr, b->key.ptr, shorter) : 0;
    return order != 0 ? order : (a->key.len > b->key.len) - (a->key.len < b->key.len);
}

static bool read_keys(struct top *t, struct store *st, size_t report, const struct radix_item *items,
                      size_t count, struct ranked *ranked, struct err *e)
{
    struct text key = {0};
    bool good = true;
    for (size_t i = 0; good && i < count; i++) {
        text_clear(&key);
        good = store_series_key(st, report, items[i].index, &key, e);
        if (good)
            ranked[i] = (struct ranked){rank_of(t, items[i].index), items[i].index,
                                        arena_copy(&t->keys, text_slice(&key))};
    }
    text_fini(&key);
    return good;
}

static void fill_rows(const struct top *t, const struct ranked *ranked, size_t count, struct answer *a)
{
    size_t row_bytes = a->column_count * sizeof *a->columns;
    a->row_count = count;
    a->columns = xmalloc(count * row_bytes);
    a->keys = xmalloc(count * sizeof *a->keys);
    for (size_t row = 0; row < count; row++) {
        memcpy(a->columns + row * a->column_count, row_of(t, ranked[row].series) + 1, row_bytes);
        a->keys[row] = ranked[row].key;
    }
}

bool top_finish(struct top *t, struct store *st, size_t report, uint64_t rows_max, struct answer *a,
                struct err *e)
{
    struct radix_item *items = xmalloc(t->series_count * sizeof *items);
    struct radix_item *scratch = xmalloc(t->series_count * sizeof *scratch);
    size_t counted, candidates;
    struct radix_item *sorted = sort_ranks(t, items, scratch, &counted);
    candidates = counted < rows_max ? counted : (size_t)rows_max;
    /* Who shares the last place is settled by value and key, so all of them must be looked at. */
    while (candidates > 0 && candidates < counted && sorted[candidates].key == sorted[candidates - 1].key)
        candidates++;
    struct ranked *ranked = xmalloc(candidates * sizeof *ranked);
    bool good = read_keys(t, st, report, sorted, candidates, ranked, e);
    if (good) {
        qsort(ranked, candidates, sizeof *ranked, compare_ranked);
        fill_rows(t, ranked, candidates < rows_max ? candidates : (size_t)rows_max, a);
    }
    free(ranked);
    free(items);
    free(scratch);
    return good;
}
