#include "query/cached_ranking.h"

#include "base/mem.h"

#include <stdlib.h>

/* Counts and sums only: other measures cannot be totalled over the series that are not listed. */
static bool is_cached(const struct answer *a)
{
    const struct measure *m = &a->report->measures[a->measures[0]];
    return a->measure_count == 1 && (m->kind == MEASURE_COUNT || m->kind == MEASURE_SUM);
}

static struct store_top top_of(const struct bound *b, const struct plan_tile *tile, uint64_t limit)
{
    return (struct store_top){.report = b->report,
                              .measure = b->answer.measures[0],
                              .span = tile->resolution,
                              .from_ms = tile->from_ms,
                              .to_ms = tile->to_ms,
                              .end_ms = tile->to_ms,
                              .limit = limit};
}

/* The hour, day or month that the range is, or with which it begins. False: there is none. */
static bool find_period(const struct answer *a, struct plan_tile *tile)
{
    static const enum span spans[] = {SPAN_HOUR, SPAN_DAY, SPAN_MONTH};
    for (size_t i = 0; i < COUNT_OF(spans); i++) {
        *tile = (struct plan_tile){spans[i], a->from_ms, span_next(spans[i], a->from_ms)};
        if (span_floor(spans[i], a->from_ms) == a->from_ms && a->to_ms <= tile->to_ms)
            return true;
    }
    return false;
}

bool cached_ranking_series(const struct bound *b, const struct series_set *set, uint64_t limit, scan_fn *fn,
                           void *context, int64_t *total, struct query_stats *stats, bool *found,
                           struct err *e)
{
    const struct answer *a = &b->answer;
    *found = false;
    if (set->kind != SERIES_ALL || !is_cached(a))
        return true;
    struct plan_tile tile;
    if (!find_period(a, &tile) || tile.from_ms < b->watermarks.before_ms[tile.resolution])
        return true;
    struct store_top top = top_of(b, &tile, limit);
    top.end_ms = a->to_ms;
    struct query_read read = {tile.resolution, tile.from_ms, a->to_ms, {0}};
    if (!store_top(b->store, &top, fn, context, total, &read.stats, found, e))
        return false;
    if (*found) {
        stats->reads[stats->scan_count++] = read;
        stats->total = read.stats;
    }
    return true;
}

void cached_ranking_learn(const struct bound *b, const struct series_set *set, const struct top *t)
{
    if (set->kind != SERIES_ALL || !is_cached(&b->answer))
        return;
    uint32_t *series = xmalloc(STORE_LEARN_MAX * sizeof *series);
    const size_t count = top_largest(t, series, STORE_LEARN_MAX);
    store_top_learn(b->store, b->report, b->answer.measures[0], series, count);
    free(series);
}

bool cached_ranking_total(const struct bound *b, int64_t from_ms, int64_t to_ms, int64_t *total, bool *found,
                          struct err *e)
{
    const struct plan plan = plan_sum(report_cell(b->answer.report), from_ms, to_ms);
    struct scan_stats stats = {0};
    *found = is_cached(&b->answer);
    for (size_t i = 0; *found && i < plan.tile_count; i++) {
        const struct store_top top = top_of(b, &plan.tiles[i], 0);
        if (!store_top(b->store, &top, NULL, NULL, total, &stats, found, e))
            return false;
    }
    return true;
}
