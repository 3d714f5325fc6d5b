#include "store/reader.h"

static const struct report *report_of(const struct store *st, size_t report)
{
    ASSERT(report < st->report_count);
    return &st->reports[report];
}

static void check_scan(const struct store *st, const struct scan *scan)
{
    const struct report *r = report_of(st, scan->report);
    ASSERT(scan->resolution >= report_cell(r) && scan->resolution < SPAN_COUNT &&
           scan->measures >> r->measure_count == 0);
    ASSERT(scan->from_ms >= 0 && scan->from_ms <= scan->to_ms && scan->to_ms <= CIVIL_END_MS);
    ASSERT(span_floor(scan->resolution, scan->from_ms) == scan->from_ms);
    ASSERT(span_floor(scan->resolution, scan->to_ms) == scan->to_ms);
    ASSERT(scan->series.kind != SERIES_SET || scan->series.bits != NULL || scan->series.bits_max == 0);
}

bool store_watermarks(struct store *st, size_t report, struct watermarks *watermarks, struct err *e)
{
    ASSERT(report < st->report_count);
    return st->reader->watermarks(st, report, watermarks, e);
}

bool store_newest(struct store *st, size_t report, int64_t before_ms, struct newest *newest, struct err *e)
{
    ASSERT(report < st->report_count && before_ms >= 0 && before_ms <= CIVIL_END_MS);
    *newest = (struct newest){.span = SPAN_HOUR, .start_ms = -1, .before_ms = -1};
    return st->reader->newest(st, report, before_ms, newest, e);
}

bool store_hold(struct store *st, struct err *e)
{
    return st->reader->hold(st, e);
}

bool store_moment(struct store *st, struct text *moment, struct text *left_out, struct err *e)
{
    return st->reader->moment == NULL || st->reader->moment(st, moment, left_out, e);
}

bool store_scan(struct store *st, const struct scan *scan, scan_fn *fn, void *context,
                struct scan_stats *stats, struct err *e)
{
    check_scan(st, scan);
    return deadline_check(st->deadline, e) && st->reader->scan(st, scan, fn, context, stats, e);
}

bool store_recent(struct store *st, const struct scan *scan, void *context, struct scan_stats *stats,
                  struct err *e)
{
    check_scan(st, scan);
    ASSERT(scan->resolution == SPAN_DAY && scan->sketch != NULL && st->reports[scan->report].newest > 0);
    if (st->reader->recent == NULL)
        return err_set(e, EX_UNAVAILABLE, "this kind of store keeps no newest events");
    return scan->from_ms == scan->to_ms ||
           (deadline_check(st->deadline, e) && st->reader->recent(st, scan, context, stats, e));
}

enum span store_copy(const struct store *st, size_t report, enum span resolution, size_t n)
{
    ASSERT(resolution >= report_cell(report_of(st, report)) && resolution < SPAN_COUNT);
    return st->reader->copy == NULL ? SPAN_COUNT : st->reader->copy(st, report, resolution, n);
}

bool store_scan_copy(struct store *st, const struct scan *scan, size_t n, scan_fn *fn, void *context,
                     struct scan_stats *stats, struct err *e)
{
    check_scan(st, scan);
    ASSERT(store_copy(st, scan->report, scan->resolution, n) != SPAN_COUNT); /* there is an n-th place */
    ASSERT(scan->sketch == NULL && scan->measures != 0);
    return st->reader->scan_copy(st, scan, n, fn, context, stats, e);
}

bool store_top(struct store *st, const struct store_top *what, top_fn *fn, void *context,
               struct top_total *total, struct scan_stats *stats, bool *found, struct err *e)
{
    const struct report *r = report_of(st, what->report);
    ASSERT(what->measure < r->measure_count && (fn != NULL || what->limit == 0));
    ASSERT(rank_by_is_of(what->by, &r->measures[what->measure]));
    ASSERT(what->from_ms >= 0 && what->from_ms < what->to_ms && what->to_ms <= CIVIL_END_MS);
    ASSERT(span_floor(what->span, what->from_ms) == what->from_ms);
    ASSERT(what->end_ms > what->from_ms && what->end_ms <= what->to_ms);
    *found = false;
    return st->reader->top == NULL || st->reader->top(st, what, fn, context, total, stats, found, e);
}

void store_top_learn(struct store *st, size_t report, size_t measure, const uint32_t *series, size_t count)
{
    ASSERT(count <= STORE_LEARN_MAX && measure < report_of(st, report)->measure_count);
    if (st->reader->learn != NULL)
        st->reader->learn(st, report, measure, series, count);
}

bool store_top_learns(const struct store *st)
{
    return st->reader->learn != NULL;
}

bool store_series_find(struct store *st, size_t report, struct slice key, uint32_t *series, bool *found,
                       struct err *e)
{
    ASSERT(report < st->report_count);
    return st->reader->series_find(st, report, key, series, found, e);
}

bool store_series_key(struct store *st, size_t report, uint32_t series, struct text *key, struct err *e)
{
    ASSERT(report < st->report_count);
    return st->reader->series_key(st, report, series, key, e);
}

/* A walk that ends with the deadline of its handle. */
struct guarded {
    struct deadline *deadline;
    series_fn *fn;
    value_fn *value_fn;
    void *context;
};

static bool guard_series(void *context, uint32_t series, struct slice key)
{
    const struct guarded *g = context;
    return !deadline_is_over(g->deadline) && g->fn(g->context, series, key);
}

static bool guard_value(void *context, struct slice value)
{
    const struct guarded *g = context;
    return !deadline_is_over(g->deadline) && g->value_fn(g->context, value);
}

bool store_series_each(struct store *st, size_t report, series_fn *fn, void *context, struct err *e)
{
    struct guarded g = {.deadline = st->deadline, .fn = fn, .context = context};
    ASSERT(report < st->report_count);
    return st->reader->series_each(st, report, guard_series, &g, e) && deadline_check(st->deadline, e);
}

bool store_series_like(struct store *st, size_t report, const struct slice *values, series_fn *fn,
                       void *context, struct err *e)
{
    struct guarded g = {.deadline = st->deadline, .fn = fn, .context = context};
    ASSERT(report < st->report_count);
    if (st->reader->series_like == NULL)
        return store_series_each(st, report, fn, context, e);
    return st->reader->series_like(st, report, values, guard_series, &g, e) &&
           deadline_check(st->deadline, e);
}

bool store_values(struct store *st, size_t report, size_t dimension, struct slice prefix, size_t limit,
                  value_fn *fn, void *context, struct err *e)
{
    struct guarded g = {.deadline = st->deadline, .value_fn = fn, .context = context};
    ASSERT(dimension < report_of(st, report)->dimension_count && limit > 0);
    return st->reader->values(st, report, dimension, prefix, limit, guard_value, &g, e) &&
           deadline_check(st->deadline, e);
}

bool store_positions(struct store *st, position_fn *fn, void *context, struct err *e)
{
    return st->reader->positions(st, fn, context, e);
}

bool store_books(struct store *st, book_fn *fn, void *context, struct err *e)
{
    return st->reader->books(st, fn, context, e);
}

bool store_check(struct store *st, check_fn *problem, void *context, struct err *e)
{
    return st->reader->check == NULL || st->reader->check(st, problem, context, e);
}
