#include "prom/ranked.h"

#include "base/check.h"
#include "base/mem.h"

#include <stdlib.h>

#define K_MAX    900 /* with TIES_MAX, rankings are about as long */
#define TIES_MAX 64  /* series that equal the k-th */

/* Pieces in a row that are one bucket of a resolution each, and the ranking that is being read of one. */
struct ranked {
    struct reading *reading;
    size_t k, room;
    size_t piece; /* of the entries */
    uint32_t *series;
    int64_t *columns; /* [entry × width] */
    size_t count, width;
};

static bool may_be_ranked(const struct reading *rd, const struct series_set *set)
{
    const struct node *n = rd->around.aggregate;
    const struct measure *m = &rd->fetch->store->reports[rd->report].measures[rd->metric->measure];
    const enum function f = rd->function;
    bool may = n != NULL && n->aggregate == AGGREGATE_TOPK && !n->grouping.excludes &&
               n->grouping.count == 0 && (m->kind == MEASURE_COUNT || m->kind == MEASURE_SUM) &&
               set->kind == SERIES_ALL && (f == FUNCTION_RATE || f == FUNCTION_INCREASE || f == FUNCTION_SUM);
    for (size_t i = 0; may && i < rd->windows.ask.count; i++)
        may = rd->windows.list[i].end - rd->windows.list[i].first <= 1;
    return may;
}

/* The greatest k of all steps; 0: it is too great. */
static size_t greatest_k(const struct reading *rd)
{
    double k = 0;
    for (size_t i = 0; i < rd->windows.ask.count; i++)
        k = rd->around.k[i] > k ? rd->around.k[i] : k;
    return k <= K_MAX ? (size_t)k : 0;
}

/* How many entries may be among the first k; 0: the ranking does not tell. */
static size_t told(const struct ranked *r)
{
    const struct measure *m = r->reading->measure;
    int128 kth = 0, value;
    for (size_t i = 0; i < r->count; i++) {
        if (!measure_value(m, &r->columns[i * r->width], &value) || value <= 0)
            return 0;
        if (i >= r->k && value < kth)
            return i;
        if (i < r->k)
            kth = value;
    }
    return r->count < r->room && m->kind == MEASURE_COUNT ? r->count : 0;
}

/* Makes rows of the entries that were read of one piece. */
static void end_piece(struct ranked *r)
{
    struct reading *rd = r->reading;
    const size_t count = told(r);
    r->count = 0;
    for (size_t i = 0; i < count; i++) {
        size_t row;
        if (!reading_row(rd, r->series[i], &row))
            return;
        int64_t *columns = &rd->columns[(row * rd->windows.piece_count + r->piece) * rd->width];
        memcpy(columns, &r->columns[i * r->width], r->width * sizeof *columns);
        if (rd->presence != NULL) /* a sum that is not 0 has events */
            columns[rd->width - 1] = 1;
    }
    if (count > 0)
        windows_leave_out(&rd->windows, r->piece);
}

/* A top_fn. */
static void add_entry(void *context, uint32_t series, int64_t bucket_ms, const int64_t *values, int128 value)
{
    (void)value;
    struct ranked *r = context;
    const struct reading *rd = r->reading;
    if (r->count > 0 && rd->windows.edges[r->piece] != bucket_ms)
        end_piece(r);
    if (r->count == 0 && !windows_find(&rd->windows, bucket_ms, &r->piece))
        return;
    ASSERT(r->count < r->room); /* the limit of the request */
    r->series[r->count] = series;
    memcpy(&r->columns[r->count++ * r->width], values + rd->measure->column, r->width * sizeof *values);
}

/* Reads the rankings of the pieces from `first`, which are of one span. */
static bool read_run(struct ranked *r, enum span span, size_t first, size_t end, struct err *e)
{
    struct reading *rd = r->reading;
    struct watermarks watermarks;
    struct scan_stats stats = {0};
    struct top_total total = {.memory = NULL}; /* of no sketch */
    bool found;
    if (!store_watermarks(rd->fetch->store, rd->report, &watermarks, e))
        return false;
    while (first < end && rd->windows.edges[first] < watermarks.before_ms[span])
        first++;
    if (first == end)
        return true;
    const struct store_top top = {.report = rd->report,
                                  .measure = rd->metric->measure,
                                  .by = RANK_BY_VALUE,
                                  .span = span,
                                  .from_ms = rd->windows.edges[first],
                                  .to_ms = rd->windows.edges[end],
                                  .end_ms = rd->windows.edges[end],
                                  .limit = r->room};
    if (!store_top(rd->fetch->store, &top, add_entry, r, &total, &stats, &found, e))
        return false;
    end_piece(r);
    return budget_take(rd->fetch->budget, BUDGET_ROWS, stats.rows, e);
}

static bool read_runs(struct ranked *r, struct err *e)
{
    const struct windows *w = &r->reading->windows;
    bool good = true;
    for (size_t first = 0, end; good && first < w->piece_count; first = end) {
        const enum span span = w->is_covered[first] ? windows_span(w, first) : SPAN_COUNT;
        end = first + 1;
        while (span < SPAN_COUNT && end < w->piece_count && w->is_covered[end] &&
               windows_span(w, end) == span)
            end++;
        good = span == SPAN_COUNT || read_run(r, span, first, end, e);
    }
    return good;
}

bool ranked_read(struct reading *rd, const struct series_set *set, struct err *e)
{
    const size_t k = may_be_ranked(rd, set) ? greatest_k(rd) : 0;
    if (k == 0)
        return true;
    struct ranked r = {.reading = rd,
                       .k = k,
                       .room = k + TIES_MAX,
                       .width = measure_column_count(rd->measure),
                       .series = xmalloc((k + TIES_MAX) * sizeof *r.series),
                       .columns = xmalloc((k + TIES_MAX) * MEASURE_COLUMNS_MAX * sizeof *r.columns)};
    bool good = read_runs(&r, e) && reading_fits(rd, e);
    windows_trim(&rd->windows);
    free(r.series);
    free(r.columns);
    return good;
}
