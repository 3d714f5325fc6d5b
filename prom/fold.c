#include "prom/fold.h"

#include "aggregate/dimension.h"
#include "base/mem.h"
#include "base/text.h"

#define XXH_INLINE_ALL
#include <stdlib.h>
#include <xxhash.h>

void fold_init(struct fold *f, const struct report *r, const struct names *names, const struct grouping *g,
               struct arena *arena)
{
    *f = (struct fold){.report = r, .arena = arena};
    for (size_t d = 0; d < r->dimension_count; d++) {
        f->keeps[d] = grouping_keeps(g, slice_text(names->labels[d]));
        f->keeps_any |= f->keeps[d];
    }
    f->row_count = !f->keeps_any;
}

void fold_fini(struct fold *f)
{
    free(f->keys);
    index_fini(&f->index);
    free(f->rows);
    *f = (struct fold){0};
}

/* Finds or adds the row with these kept texts; returns the row + 1. */
static uint32_t number_of(struct fold *f, struct slice kept)
{
    uint64_t hash = XXH3_64bits(kept.ptr, kept.len);
    uint32_t number;
    for (size_t at = hash; (number = index_next(&f->index, hash, &at)) != 0;) {
        if (slice_equal(f->keys[number - 1], kept))
            return number;
    }
    f->keys = xgrow(f->keys, &f->key_capacity, f->row_count + 1, sizeof *f->keys);
    f->keys[f->row_count++] = arena_copy(f->arena, kept);
    return index_add(&f->index, hash);
}

void fold_add(struct fold *f, uint32_t series, struct slice key)
{
    struct text kept = {0};
    bool is_other = series == STORE_SERIES_OTHER;
    for (size_t d = 0; d < f->report->dimension_count; d++) {
        struct slice text = is_other ? slice_text(STORE_OTHER_KEY) : dimension_next(&key);
        if (!f->keeps[d])
            continue;
        text_add(&kept, text.ptr, text.len);
        text_putc(&kept, DIMENSION_SEPARATOR);
    }
    if (series >= f->series_count) {
        size_t known = f->series_count;
        f->series_count = (size_t)series + 1;
        f->rows = xgrow(f->rows, &f->series_capacity, f->series_count, sizeof *f->rows);
        memset(f->rows + known, 0, (f->series_count - known) * sizeof *f->rows);
    }
    f->rows[series] = number_of(f, text_slice(&kept));
    text_fini(&kept);
}

bool fold_find(const struct fold *f, uint32_t series, size_t *row)
{
    if (!f->keeps_any) {
        *row = 0;
        return true;
    }
    if (series >= f->series_count || f->rows[series] == 0)
        return false;
    *row = f->rows[series] - 1;
    return true;
}

struct labels fold_labels(const struct fold *f, const struct names *names, size_t row)
{
    struct label *list = arena_add(f->arena, f->report->dimension_count * sizeof *list);
    struct slice key = f->keeps_any ? f->keys[row] : slice_of("", 0);
    size_t count = 0;
    for (size_t d = 0; d < f->report->dimension_count; d++) {
        if (f->keeps[d])
            list[count++] = (struct label){slice_text(names->labels[d]), dimension_next(&key)};
    }
    return labels_sorted(list, count);
}
