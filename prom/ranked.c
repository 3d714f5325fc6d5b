#include "prom/ranked.h"

#include "base/mem.h"

#include <stdlib.h>

#define K_MAX 1000 /* rankings are about as long */

/* The entries of a ranking, the greatest first. */
struct ranked {
    const struct measure *measure;
    size_t width; /* columns of the measure */
    uint32_t *series;
    int64_t *columns; /* [entry × width] */
    size_t count, room;
};

static bool may_be_ranked(const struct reading *rd, const struct series_set *set)
{
    const struct node *n = rd->around.aggregate;
    const struct measure *m = &rd->fetch->store->reports[rd->report].measures[rd->metric->measure];
    const enum function f = rd->function;
    return n != NULL && n->aggregate == AGGREGATE_TOPK && !n->grouping.excludes && n->grouping.count == 0 &&
           (m->kind == MEASURE_COUNT || m->kind == MEASURE_SUM) && set->kind == SERIES_ALL &&
           (f == FUNCTION_RATE || f == FUNCTION_INCREASE || f == FUNCTION_SUM) &&
           rd->windows.ask.count == 1 && rd->around.k[0] >= 1 && rd->around.k[0] <= K_MAX;
}

/* Is the window one period that has a ranking? */
static bool find_period(const struct reading *rd, const struct plan_tile **tile, bool *is, struct err *e)
{
    struct watermarks watermarks;
    *tile = &rd->windows.tiles[0];
    *is = rd->windows.tile_count == 1 && rd->windows.piece_count == 1 &&
          span_next((*tile)->resolution, (*tile)->from_ms) == (*tile)->to_ms;
    if (!*is)
        return true;
    if (!store_watermarks(rd->fetch->store, rd->report, &watermarks, e))
        return false;
    *is = (*tile)->from_ms >= watermarks.before_ms[(*tile)->resolution];
    return true;
}

/* A scan_fn. */
static void add_entry(void *context, uint32_t series, int64_t bucket_ms, const int64_t *values)
{
    struct ranked *r = context;
    (void)bucket_ms;
    if (r->count == r->room)
        return;
    r->series[r->count] = series;
    memcpy(&r->columns[r->count++ * r->width], values + r->measure->column, r->width * sizeof *values);
}

/* Does the ranking say which series are the first k? */
static bool tells(const struct ranked *r, size_t k)
{
    int128 before = 0, value;
    for (size_t i = 0; i < r->count; i++) {
        if (!measure_value(r->measure, &r->columns[i * r->width], &value) || value <= 0)
            return false;
        if (i == k && value == before)
            return false;
        before = value;
    }
    return r->count > k || r->measure->kind == MEASURE_COUNT;
}

static void add_rows(struct reading *rd, const struct ranked *r)
{
    for (size_t i = 0; i < r->count; i++) {
        size_t row;
        if (!reading_row(rd, r->series[i], &row))
            return;
        int64_t *columns = &rd->columns[row * rd->width];
        memcpy(columns, &r->columns[i * r->width], r->width * sizeof *columns);
        if (rd->presence != NULL) /* a sum that is not 0 has events */
            columns[rd->width - 1] = 1;
    }
}

bool ranked_read(struct reading *rd, const struct series_set *set, bool *found, struct err *e)
{
    const struct plan_tile *tile;
    *found = false;
    if (!may_be_ranked(rd, set))
        return true;
    bool is, good = find_period(rd, &tile, &is, e);
    if (!good || !is)
        return good;
    const size_t k = (size_t)rd->around.k[0];
    const struct store_top top = {rd->report,    rd->metric->measure, tile->resolution,
                                  tile->from_ms, tile->to_ms,         k + 1};
    struct ranked r = {.measure = rd->measure,
                       .width = measure_column_count(rd->measure),
                       .series = xmalloc((k + 1) * sizeof *r.series),
                       .columns = xmalloc((k + 1) * MEASURE_COLUMNS_MAX * sizeof *r.columns),
                       .room = k + 1};
    int64_t total[MEASURE_COLUMNS_MAX] = {0};
    struct scan_stats stats = {0};
    good = store_top(rd->fetch->store, &top, add_entry, &r, total, &stats, found, e) &&
           budget_take(rd->fetch->budget, BUDGET_ROWS, stats.rows, e);
    *found = *found && tells(&r, k);
    if (good && *found)
        add_rows(rd, &r);
    free(r.series);
    free(r.columns);
    return good;
}
