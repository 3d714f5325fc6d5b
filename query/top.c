#include "query/top.h"

#include "base/mem.h"
#include "base/radix.h"

#include <stdlib.h>

#define KEYS_CHUNK_BYTES ((size_t)64 << 10)

struct ranked {
    int64_t rank;
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
    free(t->values);
    arena_fini(&t->keys);
}

void top_add(struct top *t, uint32_t series, const int64_t *values)
{
    size_t measures = t->answer->measure_count;
    if (series >= t->series_count) {
        size_t known = t->series_count;
        t->series_count = (size_t)series + 1;
        t->values = xgrow(t->values, &t->capacity, t->series_count * measures, sizeof *t->values);
        memset(t->values + known * measures, 0, (t->series_count - known) * measures * sizeof *t->values);
    }
    for (size_t m = 0; m < measures; m++) {
        int64_t *sum = &t->values[series * measures + m];
        *sum = value_add(*sum, values[t->answer->measures[m]]);
    }
}

static int64_t rank_of(const struct top *t, uint32_t series)
{
    return t->values[series * t->answer->measure_count];
}

/* The series that counted anything, greatest first. Returns the sorted items, in one array or the other. */
static struct radix_item *sort_ranks(const struct top *t, struct radix_item *items,
                                     struct radix_item *scratch, size_t *count)
{
    *count = 0;
    for (uint32_t series = 0; series < t->series_count; series++) {
        uint64_t ascending = (uint64_t)rank_of(t, series) ^ (uint64_t)INT64_MIN;
        if (rank_of(t, series) != 0)
            items[(*count)++] = (struct radix_item){~ascending, series};
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
    size_t row_bytes = a->measure_count * sizeof *a->values;
    a->row_count = count;
    a->values = xmalloc(count * row_bytes);
    a->keys = xmalloc(count * sizeof *a->keys);
    for (size_t row = 0; row < count; row++) {
        memcpy(a->values + row * a->measure_count, t->values + ranked[row].series * a->measure_count,
               row_bytes);
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
    /* Who shares the last place is settled by key, so all of them must be looked at. */
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
