#include "query/cached_ranking.h"

#include "base/mem.h"

#include <stdlib.h>

static bool is_by(const struct figure *f, enum rank_by by)
{
    switch (f->kind) {
    case FIGURE_VALUE:
        return by == RANK_BY_VALUE;
    case FIGURE_COUNT:
        return by == RANK_BY_COUNT;
    case FIGURE_MEAN:
        return by == RANK_BY_MEAN;
    case FIGURE_MAX:
        return by == RANK_BY_MAX;
    case FIGURE_QUANTILE:
        return rank_by_quantile(by) == f->at;
    default:
        return false;
    }
}

/* Find the figure by which the store may rank; false: it ranks by none that is the answer's. */
static bool find_figure(const struct answer *a, enum rank_by *by)
{
    const struct measure *m = &a->report->measures[a->measures[0]];
    *by = RANK_BY_VALUE;
    while (*by < RANK_BY_END && !is_by(&a->figures[0], *by))
        ++*by;
    return a->measure_count == 1 && (a->figure_count == 1 || !measure_has_sketch(m)) && *by < RANK_BY_END &&
           rank_by_is_of(*by, m);
}

static struct store_top top_of(const struct bound *b, enum rank_by by, const struct plan_tile *tile,
                               uint64_t limit)
{
    return (struct store_top){.report = b->report,
                              .measure = b->answer.measures[0],
                              .by = by,
                              .span = tile->resolution,
                              .from_ms = tile->from_ms,
                              .to_ms = tile->to_ms,
                              .end_ms = tile->to_ms,
                              .limit = limit};
}

static void empty_total(struct top_total *t, struct arena *memory)
{
    memset(t, 0, sizeof *t); /* all of the sketch, too */
    t->memory = memory;
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

bool cached_ranking_series(const struct bound *b, const struct series_set *set, uint64_t limit,
                           struct top *top, struct top_total *total, struct query_stats *stats, bool *found,
                           struct err *e)
{
    const struct answer *a = &b->answer;
    struct top_total all;
    enum rank_by by;
    empty_total(&all, total->memory);
    *found = false;
    if (set->kind != SERIES_ALL || !find_figure(a, &by))
        return true;
    struct plan_tile tile;
    if (!find_period(a, &tile) || tile.from_ms < b->watermarks.before_ms[tile.resolution])
        return true;
    struct store_top what = top_of(b, by, &tile, limit);
    struct query_read read = {tile.resolution, tile.from_ms, a->to_ms, {0}};
    what.end_ms = a->to_ms;
    all.longest = tile.resolution;
    if (!store_top(b->store, &what, top_tell, top, &all, &read.stats, found, e))
        return false;
    if (*found) {
        *total = all;
        stats->reads[stats->scan_count++] = read;
        stats->total = read.stats;
    }
    return true;
}

void cached_ranking_learn(const struct bound *b, const struct series_set *set, const struct top *t)
{
    const int64_t now_ms = b->query->now_ms;
    struct plan_tile tile;
    enum rank_by by;
    if (!store_top_learns(b->store) || !find_period(&b->answer, &tile) || now_ms < tile.from_ms ||
        now_ms >= tile.to_ms)
        return; /* last year's largest series are not today's */
    if (set->kind != SERIES_ALL || !find_figure(&b->answer, &by) || by != RANK_BY_VALUE ||
        measure_has_sketch(&b->answer.report->measures[b->answer.measures[0]]))
        return;
    uint32_t *series = xmalloc(STORE_LEARN_MAX * sizeof *series);
    const size_t count = top_largest(t, series, STORE_LEARN_MAX);
    store_top_learn(b->store, b->report, b->answer.measures[0], series, count);
    free(series);
}

bool cached_ranking_total(const struct bound *b, int64_t from_ms, int64_t to_ms, struct top_total *total,
                          bool *found, struct err *e)
{
    const struct plan plan = plan_sum(report_cell(b->answer.report), from_ms, to_ms);
    struct scan_stats stats = {0};
    struct top_total all;
    enum rank_by by;
    empty_total(&all, total->memory);
    all.longest = total->longest;
    *found = find_figure(&b->answer, &by);
    for (size_t i = 0; *found && i < plan.tile_count; i++) {
        const struct store_top what = top_of(b, by, &plan.tiles[i], 0);
        if (!store_top(b->store, &what, NULL, NULL, &all, &stats, found, e))
            return false;
    }
    if (*found)
        *total = all;
    return true;
}
