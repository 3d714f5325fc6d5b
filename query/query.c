#include "query/query.h"

#include "base/mem.h"
#include "base/suggest.h"
#include "query/answer.h"
#include "query/match.h"
#include "query/top.h"
#include "query/unknown.h"

#include <inttypes.h>
#include <stdlib.h>

/* A query whose names were found in a store. */
struct bound {
    const struct query *query;
    struct store *store;
    size_t report;
    struct slice values[REPORT_DIMENSIONS_MAX]; /* wanted of each dimension; NULL: any */
    struct answer answer;
    struct top top; /* holds the keys of the answer */
};

static bool bind_report(struct bound *b, struct err *e)
{
    int found = store_find_report(b->store, b->query->report);
    if (found >= 0) {
        b->report = (size_t)found;
        b->answer.report = &b->store->reports[found];
        return true;
    }
    const char **names = xcalloc(b->store->report_count + 1, sizeof *names);
    for (size_t i = 0; i < b->store->report_count; i++)
        names[i] = b->store->reports[i].name;
    unknown_name(e, "report", b->query->report, names);
    free(names);
    return false;
}

static bool bind_measures(struct bound *b, struct err *e)
{
    const struct report *r = b->answer.report;
    struct answer *a = &b->answer;
    const char *names[REPORT_MEASURES_MAX + 2] = {0};
    int found = b->query->measure.len == 0 ? 0 : report_find_measure(r, b->query->measure);
    a->every_measure = found < 0 && slice_is(b->query->measure, "all");
    for (size_t m = 0; m < r->measure_count; m++) {
        names[m] = r->measures[m].name;
        if (a->every_measure || (int)m == found)
            answer_add_measure(a, m);
    }
    names[r->measure_count] = "all";
    return a->measure_count > 0 || unknown_name(e, "measure", b->query->measure, names);
}

static bool bind_filters(struct bound *b, struct err *e)
{
    const struct report *r = b->answer.report;
    const char *names[REPORT_DIMENSIONS_MAX + 1] = {0};
    for (size_t d = 0; d < r->dimension_count; d++)
        names[d] = r->dimensions[d].name;
    for (size_t i = 0; i < b->query->filter_count; i++) {
        const struct query_filter *f = &b->query->filters[i];
        int d = report_find_dimension(r, f->dimension);
        if (d < 0) {
            unknown_name(e, "dimension", f->dimension, names);
            return err_prefix(e, "report %s", r->name);
        }
        if (b->values[d].ptr != NULL)
            return err_set(e, EX_USAGE, "filter: %s is given twice", r->dimensions[d].name);
        b->values[d] = f->value;
    }
    return true;
}

static bool bind_range(struct bound *b, struct err *e)
{
    const struct query *q = b->query;
    char from[CIVIL_ISO_BYTES], to[CIVIL_ISO_BYTES];
    enum span finest = report_cell(b->answer.report), unit = q->has_step ? q->step : finest;
    int64_t to_ms = q->to_ms >= 0 ? q->to_ms : q->now_ms;
    int64_t from_ms = q->from_ms >= 0 ? q->from_ms : to_ms > HOUR_MS ? to_ms - HOUR_MS : 0;
    if (to_ms > CIVIL_END_MS || from_ms >= to_ms)
        return err_set(e, EX_USAGE, "the range is empty: from %s is not before to %s",
                       civil_iso(from_ms, from), civil_iso(to_ms, to));
    if (unit < finest)
        return err_set(
            e, EX_USAGE,
            "step: report %s has no seconds, as one of `layout: minute` has: ask it by minute, hour, "
            "day or month",
            b->answer.report->name);
    b->answer.has_step = q->has_step;
    b->answer.step = q->step;
    b->answer.from_ms = span_floor(unit, from_ms);
    b->answer.to_ms = plan_ceil(unit, to_ms);
    return true;
}

static bool make_rows(struct answer *a, const struct query *q, struct err *e)
{
    a->row_count = answer_row(a, a->to_ms - 1) + 1;
    if (a->row_count > q->limits.points_max)
        return err_set(e, EX_UNAVAILABLE,
                       "the answer has %zu steps, more than %" PRIu64
                       " (query.points_max): ask for a shorter range or a coarser step",
                       a->row_count, q->limits.points_max);
    a->columns = xcalloc(a->row_count * a->column_count, sizeof *a->columns);
    return true;
}

static void add_to_row(void *context, uint32_t series, int64_t slot_ms, const int64_t *values)
{
    struct answer *a = context;
    (void)series;
    answer_merge(a, &a->columns[answer_row(a, slot_ms) * a->column_count], values);
}

static void add_to_top(void *context, uint32_t series, int64_t slot_ms, const int64_t *values)
{
    (void)slot_ms;
    top_add(context, series, values);
}

static bool scan_tiles(const struct bound *b, const struct series_set *set, scan_fn *fn, void *context,
                       struct query_stats *stats, struct err *e)
{
    uint64_t rows_left = b->query->limits.rows_max;
    for (size_t i = 0; i < stats->plan.tile_count; i++) {
        const struct plan_tile *tile = &stats->plan.tiles[i];
        struct scan scan = {b->report, tile->slot, tile->from_ms, tile->to_ms, *set, rows_left};
        if (!store_scan(b->store, &scan, fn, context, &stats->reads[i], e))
            return false;
        rows_left -= stats->reads[i].rows;
    }
    return true;
}

/* Scan what matches into the rows of the answer. */
static bool find_rows(struct bound *b, const struct series_set *set, struct query_stats *stats, struct err *e)
{
    struct answer *a = &b->answer;
    if (!a->of_series)
        return make_rows(a, b->query, e) && scan_tiles(b, set, add_to_row, a, stats, e);
    return scan_tiles(b, set, add_to_top, &b->top, stats, e) &&
           top_finish(&b->top, b->store, b->report, b->query->top, a, e);
}

static bool bind_all(struct bound *b, struct err *e)
{
    const struct query *q = b->query;
    if (q->top > 0 && q->has_step)
        return err_set(e, EX_USAGE, "top ranks series over the whole range: it does not go with a step");
    b->answer.of_series = q->top > 0;
    return bind_report(b, e) && bind_measures(b, e) && bind_filters(b, e) && bind_range(b, e);
}

bool query_run(struct store *st, const struct query *q, struct text *out, struct query_stats *stats,
               struct err *e)
{
    struct bound b = {.query = q, .store = st};
    struct answer *a = &b.answer;
    struct match match;
    *stats = (struct query_stats){0};
    if (!bind_all(&b, e))
        return false;
    if (!match_series(&match, st, b.report, b.values, e)) {
        match_fini(&match);
        return false;
    }
    stats->every_series = match.set.kind == SERIES_ALL;
    stats->series_matched = match.count;
    if (stats->every_series || match.count > 0)
        stats->plan = q->has_step ? plan_steps(a->step, a->from_ms, a->to_ms)
                                  : plan_sum(report_cell(a->report), a->from_ms, a->to_ms);
    top_init(&b.top, a);
    bool good = find_rows(&b, &match.set, stats, e);
    if (good)
        answer_write(a, q->format, q->bars, out);
    match_fini(&match);
    top_fini(&b.top);
    free(a->columns);
    free(a->keys);
    return good;
}

void query_explain(const struct query *q, const struct query_stats *stats, struct text *out)
{
    char from[CIVIL_ISO_BYTES], to[CIVIL_ISO_BYTES];
    struct scan_stats total = {0};
    text_printf(out, "report %.*s, ", SLICE_ARGS(q->report));
    if (stats->every_series)
        text_puts(out, "every series\n");
    else
        text_printf(out, "%" PRIu64 " series matched\n", stats->series_matched);
    for (size_t i = 0; i < stats->plan.tile_count; i++) {
        const struct plan_tile *tile = &stats->plan.tiles[i];
        const struct scan_stats *read = &stats->reads[i];
        text_printf(out, "  %-6s slots %s to %s: %" PRIu64 " rows, %" PRIu64 " bytes\n",
                    span_name(tile->slot), civil_iso(tile->from_ms, from), civil_iso(tile->to_ms, to),
                    read->rows, read->bytes);
        total.rows += read->rows;
        total.bytes += read->bytes;
    }
    text_printf(out, "read %" PRIu64 " rows, %" PRIu64 " bytes\n", total.rows, total.bytes);
}
