#include "prom/fetch.h"

#include "aggregate/dimension.h"
#include "base/check.h"
#include "base/mem.h"
#include "prom/buckets.h"
#include "prom/different.h"
#include "prom/functions.h"
#include "prom/native.h"
#include "prom/native_slide.h"
#include "prom/rank.h"
#include "prom/ranked.h"
#include "prom/reading.h"
#include "prom/select.h"
#include "prom/slide.h"

#include <stdlib.h>

#define SKETCHES_CHUNK_BYTES ((size_t)64 << 10)

/* ---- windows */

int64_t fetch_base(const struct fetch *fe, const struct selector *s)
{
    switch (s->base) {
    case BASE_START:
        return fe->start_ms;
    case BASE_END:
        return fe->end_ms;
    case BASE_TIME:
        return s->base_ms;
    default:
        return fe->at_ms;
    }
}

/* A measure that is no total looks back for its last value. */
static bool looks_back(const struct reading *rd)
{
    return !function_takes_range(rd->function) && !slide_is_total(rd->measure);
}

static enum function function_of_windows(const struct reading *rd)
{
    return rd->function == FUNCTION_NONE && looks_back(rd) ? FUNCTION_LAST : rd->function;
}

/* Does the function look at each cell? */
static bool needs_cells(const struct reading *rd)
{
    return rd->metric->kind == METRIC_DISTINCT ? different_by_cell(rd->function)
                                               : slide_needs_cells(rd->measure, function_of_windows(rd));
}

static struct window_ask ask_of(const struct reading *rd)
{
    const struct fetch *fe = rd->fetch;
    const struct report *r = &fe->store->reports[rd->report];
    struct window_ask ask = {.cell = report_cell(r),
                             .at_ms = fetch_base(fe, rd->selector) - rd->selector->offset_ms,
                             .step_ms = rd->selector->base == BASE_STEP ? fe->step_ms : 0,
                             .count = fe->step_count,
                             .length_ms = rd->selector->range_ms,
                             .by_cell = needs_cells(rd)};
    if (!function_takes_range(rd->function))
        ask.length_ms = looks_back(rd) ? FETCH_LOOKBACK_MS : report_cell_ms(r);
    return ask;
}

/* ---- series */

/* The walk that reads each key once, before the scan. */
struct adding {
    struct reading *reading;
    const struct series_set *set;
    bool good;
    struct err *e;
};

static bool add_key(void *context, uint32_t series, struct slice key)
{
    struct adding *a = context;
    a->good = budget_take(a->reading->fetch->budget, BUDGET_NAMES, 1, a->e);
    if (a->good && series_set_has(a->set, series))
        fold_add(&a->reading->fold, series, key);
    return a->good;
}

static bool add_one_key(struct reading *rd, uint32_t series, struct err *e)
{
    struct text key = {0};
    bool good = store_series_key(rd->fetch->store, rd->report, series, &key, e);
    if (good)
        fold_add(&rd->fold, series, text_slice(&key));
    text_fini(&key);
    return good;
}

static bool prepare_fold(struct reading *rd, const struct series_set *set, struct err *e)
{
    struct adding a = {rd, set, true, e};
    const struct store *st = rd->fetch->store;
    rd->folds = true;
    fold_init(&rd->fold, &st->reports[rd->report], rd->names, &rd->around.aggregate->grouping,
              rd->fetch->arena);
    if (!rd->fold.keeps_any)
        return true;
    if (set->kind == SERIES_ONE)
        return add_one_key(rd, set->one, e);
    if (series_set_has(set, STORE_SERIES_OTHER))
        fold_add(&rd->fold, STORE_SERIES_OTHER, slice_text(STORE_OTHER_KEY));
    return store_series_each(rd->fetch->store, rd->report, add_key, &a, e) && a.good;
}

/* Can a fold replace the sum around? It groups by dimensions only: the metric's name is no dimension, and
 * neither is a bound. */
static bool can_fold(const struct reading *rd)
{
    enum function f = rd->function;
    const struct node *n = rd->around.aggregate;
    if (n != NULL && rd->metric->kind == METRIC_BUCKET &&
        !grouping_keeps(&n->grouping, slice_text(BUCKET_LABEL)))
        return false;
    return n != NULL && n->aggregate == AGGREGATE_SUM && slide_is_total(rd->measure) &&
           !grouping_keeps(&n->grouping, slice_text(METRIC_LABEL)) &&
           (f == FUNCTION_NONE || f == FUNCTION_RATE || f == FUNCTION_INCREASE || f == FUNCTION_SUM);
}

/* Sets the key of the series that has these labels, besides the metric's name. False: none of the report
 * has. */
static bool key_of_labels(const struct reading *rd, const struct labels *l, struct text *key)
{
    const struct report *r = &rd->fetch->store->reports[rd->report];
    size_t found = 0;
    text_clear(key);
    for (size_t d = 0; d < r->dimension_count; d++) {
        struct slice value = labels_find(l, slice_text(rd->names->labels[d]));
        if (d > 0)
            text_putc(key, DIMENSION_SEPARATOR);
        text_add(key, value.ptr, value.len);
        found += value.len > 0;
    }
    size_t others = labels_find(l, slice_text(METRIC_LABEL)).len > 0;
    return found == r->dimension_count && l->count == found + others;
}

struct bits {
    uint64_t *words;
    size_t count, capacity;
};

static void set_bit(struct bits *b, uint32_t series)
{
    size_t known = b->count, needed = (size_t)series / 64 + 1;
    if (needed > known) {
        b->words = xgrow(b->words, &b->capacity, needed, sizeof *b->words);
        memset(b->words + known, 0, (needed - known) * sizeof *b->words);
        b->count = needed;
    }
    b->words[series / 64] |= (uint64_t)1 << series % 64;
}

/* Reduces the series to those of around.only, and maybe `other`; `and` drops what is too many. */
static bool keep_only(const struct reading *rd, struct match *m, struct bits *bits, struct err *e)
{
    const struct vector *only = rd->around.only;
    struct text key = {0};
    bool good = true;
    for (size_t i = 0; good && i < only->series_count; i++) {
        uint32_t series;
        bool is_known = key_of_labels(rd, &only->series[i], &key);
        if (!is_known)
            continue;
        if (slice_begins(text_slice(&key), slice_text(STORE_OTHER_KEY)) &&
            series_set_has(&m->set, STORE_SERIES_OTHER))
            set_bit(bits, STORE_SERIES_OTHER);
        good = store_series_find(rd->fetch->store, rd->report, text_slice(&key), &series, &is_known, e);
        if (good && is_known && series_set_has(&m->set, series))
            set_bit(bits, series);
    }
    text_fini(&key);
    m->count = bits->count; /* 0: none */
    m->set =
        (struct series_set){.kind = SERIES_SET, .bits = bits->words, .bits_max = (uint32_t)bits->count * 64};
    return good;
}

/* `m` borrows its bits from `s`. */
static bool find_series(const struct reading *rd, struct select *s, struct match *m, struct err *e)
{
    struct store *st = rd->fetch->store;
    const struct match *found = select_series(s, st, rd->report, rd->metric->kind == METRIC_BUCKET, e);
    bool is_there;
    if (found == NULL)
        return false;
    *m = *found;
    if (st->reports[rd->report].dimension_count > 0 || m->set.kind != SERIES_ALL)
        return true;
    /* The one series of a report without dimensions. */
    m->set.kind = SERIES_ONE;
    if (!store_series_find(st, rd->report, slice_of("", 0), &m->set.one, &is_there, e))
        return false;
    m->count = is_there;
    return true;
}

/* ---- answers */

/* Keeps the rows that are among the k greatest at any step. */
static void keep_greatest(struct reading *rd, struct vector *v)
{
    bool bottom = rd->around.aggregate->aggregate == AGGREGATE_BOTTOMK;
    struct groups all = {.count = 1, .of = xcalloc(v->series_count, sizeof *all.of)};
    bool *is_kept = xcalloc(v->series_count, sizeof *is_kept);
    size_t kept = 0;
    for (size_t step = 0; step < v->step_count; step++) {
        double bound;
        rank_bounds(v, &all, step, rd->around.k[step], bottom, &bound);
        for (size_t row = 0; row < v->series_count; row++) {
            double value = vector_row(v, row)[step];
            is_kept[row] |= !vector_is_absent(value) && rank_of(value, bottom) >= bound;
        }
    }
    for (size_t row = 0; row < v->series_count; row++) {
        if (!is_kept[row])
            continue;
        rd->series[kept] = rd->series[row];
        memcpy(vector_row(v, kept++), vector_row(v, row), v->step_count * sizeof *v->values);
    }
    v->series_count = kept;
    fetch_shrink(rd->fetch, v);
    groups_fini(&all);
    free(is_kept);
}

/* The labels of a row, without its bound. */
static bool labels_of_series(const struct reading *rd, size_t row, struct labels *labels, struct err *e)
{
    const struct store *st = rd->fetch->store;
    struct text key = {0};
    if (rd->folds) {
        *labels = fold_labels(&rd->fold, rd->names, rd->series[row]);
        return true;
    }
    bool good = store_series_key(rd->fetch->store, rd->report, rd->series[row], &key, e);
    if (good)
        *labels =
            select_labels(&st->reports[rd->report], rd->names, rd->name, text_slice(&key), rd->fetch->arena);
    text_fini(&key);
    return good;
}

/* Each row has a row of values for each bound, if there are any. */
static bool label_series(const struct reading *rd, size_t row, struct vector *v, struct err *e)
{
    const bool has_le = rd->metric->kind == METRIC_BUCKET;
    const size_t count = has_le ? rd->bound_count : 1;
    struct labels labels;
    if (!budget_take(rd->fetch->budget, BUDGET_SERIES, count, e) || !labels_of_series(rd, row, &labels, e))
        return false;
    for (size_t i = 0; i < count; i++)
        v->series[row * count + i] =
            has_le ? labels_set(&labels, slice_text(BUCKET_LABEL), rd->bounds[i].text, rd->fetch->arena)
                   : labels;
    return true;
}

/* Keeps only the rows, and makes only the labels, that the aggregation around will look at. */
static bool label_rows(struct reading *rd, struct vector *v, struct err *e)
{
    const struct node *n = rd->around.aggregate;
    bool ranks = n != NULL && aggregate_ranks(n->aggregate);
    bool keeps_none = n != NULL && !n->grouping.excludes && n->grouping.count == 0; /* no labels */
    bool good = true;
    if (keeps_none && !ranks)
        return true;
    if (keeps_none && rd->metric->kind != METRIC_BUCKET) {
        keep_greatest(rd, v);
        rd->row_count = v->series_count;
    }
    for (size_t row = 0; good && row < rd->row_count; row++)
        good = label_series(rd, row, v, e);
    return good;
}

/* The number of points that a function looks at one by one, in all windows. */
static uint64_t points_of(const struct reading *rd)
{
    uint64_t count = 0;
    const bool is_needed = slide_needs_points(rd->measure, rd->function);
    for (size_t i = 0; is_needed && i < rd->windows.ask.count; i++)
        count += rd->windows.list[i].end - rd->windows.list[i].first;
    return count;
}

/* Are the samples of a running total those of several series, one behind the other? Each fall from one to the
 * next would be taken for a reset. */
static bool is_mixed(const struct reading *rd, size_t row)
{
    return slide_is_running(rd->measure, rd->function) && rd->series[row] == STORE_SERIES_OTHER;
}

static void leave_out(const struct vector *v, size_t row)
{
    for (size_t step = 0; step < v->step_count; step++)
        vector_row(v, row)[step] = vector_absent();
}

static bool set_values(struct reading *rd, const struct slide_ask *ask, const struct vector *v, struct err *e)
{
    const size_t per_row = rd->windows.piece_count * rd->width;
    if (rd->metric->kind == METRIC_BUCKET) {
        buckets_slide(rd, ask, v);
        return true;
    }
    if (rd->metric->kind == METRIC_DISTINCT && !rd->windows.ask.by_cell)
        return different_count_windows(rd, v, e);
    if (rd->metric->kind == METRIC_NATIVE)
        return native_slide(rd, ask, v, e);
    if (rd->metric->kind == METRIC_DISTINCT)
        different_count_pieces(rd);
    for (size_t row = 0; row < rd->row_count; row++) {
        if (is_mixed(rd, row))
            leave_out(v, row);
        else
            slide(ask, &rd->windows, &rd->columns[row * per_row], vector_row(v, row));
    }
    return true;
}

static bool append(struct reading *rd, struct vector *out, struct err *e)
{
    struct vector more;
    const struct windows *w = &rd->windows;
    const struct slide_ask ask = {.measure = rd->measure,
                                  .presence = rd->presence,
                                  .function = function_of_windows(rd),
                                  .parameter = rd->around.parameter,
                                  .at_ms = rd->fetch->at_ms,
                                  .step_ms = rd->fetch->step_ms,
                                  .is_always = rd->is_always};
    const bool has_le = rd->metric->kind == METRIC_BUCKET;
    if (has_le && !buckets_find(rd, e))
        return false;
    const size_t rows = rd->row_count * (has_le ? rd->bound_count : 1);
    const uint64_t looked_at = (rows + 1) * (w->piece_count + w->ask.count + points_of(rd));
    if (!budget_take(rd->fetch->budget, BUDGET_POINTS, looked_at, e) ||
        !fetch_room(rd->fetch, rows, &more, e))
        return false;
    bool good = set_values(rd, &ask, &more, e) && label_rows(rd, &more, e);
    if (good)
        return fetch_append(rd->fetch, out, &more, e);
    fetch_release(rd->fetch, &more);
    return false;
}

static bool read_series(struct reading *rd, const struct match *match, struct vector *out, struct err *e)
{
    struct window_ask ask = ask_of(rd);
    size_t row;
    if (can_fold(rd) && !prepare_fold(rd, &match->set, e))
        return false;
    if (!windows_init(&rd->windows, &ask, e))
        return false;
    rd->is_always = match->set.kind == SERIES_ONE && slide_is_total(rd->measure);
    if (rd->is_always)
        (void)reading_row(rd, match->set.one, &row);
    return ranked_read(rd, &match->set, e) && reading_scan(rd, &match->set, e) && append(rd, out, e);
}

static bool check_function(const struct reading *rd, struct err *e)
{
    enum function f = rd->function;
    const char *metric = rd->metric->name;
    if (rd->metric->kind == METRIC_DISTINCT)
        return different_check(rd, e);
    if (rd->metric->kind == METRIC_NATIVE)
        return native_slide_check(rd, e);
    bool is_total = slide_is_total(rd->measure);
    if ((f == FUNCTION_RATE || f == FUNCTION_INCREASE) && !is_total && rd->measure->kind != MEASURE_LAST)
        return err_set(e, EX_USAGE,
                       "%s() counts, and %s does not: it is %s; ask it by itself, or for min_over_time, "
                       "max_over_time, avg_over_time or last_over_time",
                       functions_name(f), metric, rd->measure->expression);
    bool is_of_gauge = f >= FUNCTION_CHANGES && f <= FUNCTION_PREDICT;
    return !is_of_gauge || !is_total ||
           err_set(e, EX_USAGE,
                   "%s() is of gauges, and %s is a counter: ask for its rate or increase, or for %s of a "
                   "subquery, as (rate(%s[5m]))[1h:]",
                   functions_name(f), metric, functions_name(f), metric);
}

/* A sketch in memory takes as much as several columns. */
static void begin_sketches(struct reading *rd)
{
    const enum metric_kind kind = rd->metric->kind;
    rd->has_sketches = kind == METRIC_DISTINCT || kind == METRIC_BUCKET ||
                       (kind == METRIC_NATIVE && native_slide_is_needed(rd->function));
    if (!rd->has_sketches)
        return;
    rd->columns_max /= 1 + sizeof(union sketch) / sizeof(int64_t);
    arena_init(&rd->sketch_memory, SKETCHES_CHUNK_BYTES);
}

/* `rd`: the part of the question that is the same for every metric. */
static bool read_metric(struct reading rd, struct select *select, size_t report, const struct metric *metric,
                        struct vector *out, struct err *e)
{
    const struct report *r = &rd.fetch->store->reports[report];
    struct names *names = arena_add(rd.fetch->arena, sizeof *names);
    enum function f = rd.function;
    struct match match;
    struct bits bits = {0};
    struct measure presence = {.kind = MEASURE_COUNT};
    names_of(r, names);
    rd.report = report;
    rd.names = names;
    rd.select = select;
    rd.metric = metric;
    rd.measure = &metric->value;
    if (!check_function(&rd, e))
        return false;
    if (f == FUNCTION_NONE || f == FUNCTION_LAST)
        rd.name = arena_copy(rd.fetch->arena, slice_text(metric->name));
    if (metric->has_presence) {
        const struct measure *counting = &r->measures[metric->presence];
        presence.column = counting->column + measure_column_count(counting) - 1;
        rd.presence = &presence;
    }
    rd.width = measure_column_count(rd.measure) + (rd.presence != NULL);
    rd.columns_max = rd.fetch->budget->values_left;
    if (!find_series(&rd, select, &match, e))
        return false;
    begin_sketches(&rd);
    /* The series of `only` have no bounds, or others. */
    const bool is_reduced = rd.around.only != NULL && metric->kind != METRIC_BUCKET;
    bool good = !is_reduced || match.set.kind == SERIES_ONE || keep_only(&rd, &match, &bits, e);
    bool is_none = match.set.kind != SERIES_ALL && match.count == 0;
    good = good && (is_none || read_series(&rd, &match, out, e));
    free(bits.words);
    reading_fini(&rd);
    return good;
}

/* Have the series from `first` on no events at a step? */
static bool step_is_empty(const struct natives *all, const struct vector *v, size_t first, size_t step)
{
    bool is = true;
    for (size_t i = first; i < v->series_count && is; i++) {
        double value = vector_row(v, i)[step];
        is = vector_is_absent(value) || value == 0 || (native_is(value) && native_of(all, value)->count == 0);
    }
    return is;
}

/* Before: the series from `first` on have no events at the first step, or before a step with events. */
static enum missed_where find_hole(const struct natives *all, const struct vector *v, size_t first)
{
    bool was_empty = false;
    if (v->step_count == 0 || step_is_empty(all, v, first, 0))
        return MISSED_BEFORE;
    for (size_t step = 1; step < v->step_count; step++) {
        bool is_empty = step_is_empty(all, v, first, step);
        if (was_empty && !is_empty)
            return MISSED_BEFORE;
        was_empty = is_empty;
    }
    return was_empty ? MISSED_AT_END : MISSED_NOWHERE;
}

static bool read_report(const struct reading *rd, struct select *select, size_t report, struct vector *out,
                        struct err *e)
{
    const struct report *r = &rd->fetch->store->reports[report];
    struct metric metric;
    bool good = true;
    for (size_t i = 0; good && names_metric(r, i, &metric); i++) {
        size_t first = out->series_count;
        bool matches;
        good = select_metric(select, r, &metric, &matches, e) &&
               (!matches || read_metric(*rd, select, report, &metric, out, e));
        rd->fetch->is_read[report] |= matches;
        if (good && matches && rd->fetch->step_ms > 0 && rd->fetch->holes[report] < MISSED_BEFORE) {
            enum missed_where where = find_hole(rd->fetch->natives, out, first);
            rd->fetch->holes[report] = where > rd->fetch->holes[report] ? where : rd->fetch->holes[report];
        }
    }
    return good;
}

bool fetch_run(struct fetch *fe, const struct selector *selector, enum function f,
               const struct fetch_around *around, struct vector *out, struct err *e)
{
    struct select select;
    struct reading rd = {.fetch = fe, .selector = selector, .function = f, .around = *around};
    vector_init(out, 0, fe->step_count);
    bool good = select_init(&select, selector, fe->budget, e);
    for (size_t i = 0; good && i < fe->store->report_count; i++)
        good = read_report(&rd, &select, i, out, e);
    select_fini(&select);
    if (!good)
        fetch_release(fe, out);
    return good;
}
