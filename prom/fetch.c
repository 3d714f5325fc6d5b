#include "prom/fetch.h"

#include "base/mem.h"
#include "prom/fold.h"
#include "prom/parse.h"
#include "prom/select.h"
#include "prom/slide.h"

#include <inttypes.h>
#include <stdlib.h>

/* One metric's part of the answer. */
struct reading {
    struct fetch *fetch;
    size_t report;
    const struct measure *measure;
    enum function function;
    size_t width; /* columns of the measure */
    struct windows windows;
    bool folds;
    struct fold fold;
    uint32_t *rows; /* by series: row + 1; 0: none yet. Where it folds, by row of the fold */
    size_t row_slots, row_slot_capacity;
    uint32_t *series; /* by row: the inverse */
    size_t row_count, series_capacity;
    int64_t *columns; /* [(row × pieces + piece) × width] */
    size_t column_capacity, columns_max;
    bool is_too_much;
};

bool fetch_room(struct fetch *fe, size_t series_count, struct vector *out, struct err *e)
{
    if (series_count > fe->values_left / fe->step_count)
        return err_set(e, EX_UNAVAILABLE,
                       "%zu series of %zu steps are more than %d values at once: ask for fewer series, a "
                       "shorter range or a longer step",
                       series_count, fe->step_count, FETCH_VALUES_MAX);
    fe->values_left -= series_count * fe->step_count;
    vector_init(out, series_count, fe->step_count);
    return true;
}

void fetch_release(struct fetch *fe, struct vector *v)
{
    fe->values_left += v->series_count * v->step_count;
    vector_fini(v);
}

/* The row of a series, or of what it is folded into; new or not. */
static bool take_row(struct reading *rd, uint32_t series, size_t *row)
{
    size_t slot = series;
    if (rd->folds && !fold_find(&rd->fold, series, &slot))
        return false;
    if (slot >= rd->row_slots) {
        size_t known = rd->row_slots;
        rd->row_slots = slot + 1;
        rd->rows = xgrow(rd->rows, &rd->row_slot_capacity, rd->row_slots, sizeof *rd->rows);
        memset(rd->rows + known, 0, (rd->row_slots - known) * sizeof *rd->rows);
    }
    if (rd->rows[slot] == 0) {
        size_t per_row = rd->windows.piece_count * rd->width, start = rd->row_count * per_row;
        rd->is_too_much |= start + per_row > rd->columns_max || rd->row_count == FETCH_SERIES_MAX;
        if (rd->is_too_much)
            return false;
        rd->columns = xgrow(rd->columns, &rd->column_capacity, start + per_row, sizeof *rd->columns);
        memset(rd->columns + start, 0, per_row * sizeof *rd->columns);
        rd->series = xgrow(rd->series, &rd->series_capacity, rd->row_count + 1, sizeof *rd->series);
        rd->series[rd->row_count++] = (uint32_t)slot;
        rd->rows[slot] = (uint32_t)rd->row_count;
    }
    *row = rd->rows[slot] - 1;
    return true;
}

static void add_slot(void *context, uint32_t series, int64_t slot_ms, const int64_t *values)
{
    struct reading *rd = context;
    size_t piece, row;
    if (!rd->is_too_much && windows_find(&rd->windows, slot_ms, &piece) && take_row(rd, series, &row))
        measure_merge(rd->measure, &rd->columns[(row * rd->windows.piece_count + piece) * rd->width],
                      values + rd->measure->column);
}

static bool scan(struct reading *rd, const struct series_set *set, struct err *e)
{
    for (size_t i = 0; i < rd->windows.tile_count; i++) {
        const struct plan_tile *tile = &rd->windows.tiles[i];
        struct scan_stats stats = {0};
        struct scan scan = {rd->report, tile->slot, tile->from_ms, tile->to_ms, *set, rd->fetch->rows_left};
        if (!store_scan(rd->fetch->store, &scan, add_slot, rd, &stats, e))
            return false;
        rd->fetch->rows_left -= stats.rows;
        if (rd->is_too_much)
            return err_set(
                e, EX_UNAVAILABLE,
                "the question reads more than %d series, or %zu values (series by stretches of time): "
                "ask for fewer series, a shorter range or a longer step, or put sum by (…) right "
                "around the selector or its function",
                FETCH_SERIES_MAX, rd->columns_max / rd->width);
    }
    return true;
}

/* ---- which windows */

/* Of a measure that is no total, alone: as many steps before the first one are looked at. */
static size_t steps_back(int64_t length_ms)
{
    return length_ms < FETCH_LOOKBACK_MS ? (size_t)(FETCH_LOOKBACK_MS / length_ms) - 1 : 0;
}

static int64_t max_ms(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Alone, a total has the windows of the steps; another measure has those from `steps_back` before the first.
 */
static struct window_ask ask_of(const struct reading *rd, const struct selector *s)
{
    const struct fetch *fe = rd->fetch;
    const struct report *r = &fe->store->reports[rd->report];
    struct window_ask ask = {.cell = report_cell(r),
                             .at_ms = fe->at_ms - s->offset_ms,
                             .step_ms = fe->step_ms,
                             .count = fe->step_count,
                             .length_ms = s->range_ms,
                             .by_cell = slide_needs_cells(rd->measure, rd->function)};
    if (rd->function != FUNCTION_NONE)
        return ask;
    ask.length_ms = max_ms(fe->step_ms > 0 ? fe->step_ms : MINUTE_MS, report_cell_ms(r));
    if (slide_is_total(rd->measure))
        return ask;
    int64_t last_ms = ask.at_ms + (int64_t)(ask.count - 1) * ask.step_ms;
    if (fe->step_ms > 0 && fe->step_ms < ask.length_ms) /* windows of a cell each, at every cell */
        ask.at_ms -= ask.at_ms % ask.length_ms;
    ask.at_ms -= (int64_t)steps_back(ask.length_ms) * ask.length_ms;
    ask.step_ms = ask.length_ms;
    ask.count = (size_t)((last_ms - ask.at_ms) / ask.step_ms) + 1;
    return ask;
}

/* From values by window to values by step: the last that is there, not too far back. */
static void look_back(const struct reading *rd, const struct selector *s, const double *values, double *row)
{
    const struct fetch *fe = rd->fetch;
    const struct window_ask *ask = &rd->windows.ask;
    const size_t back = steps_back(ask->length_ms);
    size_t seen = 0, found = SIZE_MAX; /* windows looked at; the last with something in it */
    for (size_t i = 0; i < fe->step_count; i++) {
        int64_t at_ms = fe->at_ms - s->offset_ms + (int64_t)i * fe->step_ms;
        size_t window = (size_t)((at_ms - ask->at_ms) / ask->step_ms);
        for (; seen <= window; seen++)
            found = vector_is_absent(values[seen]) ? found : seen;
        row[i] = found != SIZE_MAX && window - found <= back ? values[found] : vector_absent();
    }
}

/* ---- which series */

/* Read each key once, before the scan. */
struct adding {
    struct fold *fold;
    const struct series_set *set;
};

static bool add_key(void *context, uint32_t series, struct slice key)
{
    const struct adding *a = context;
    if (series_set_has(a->set, series))
        fold_add(a->fold, series, key);
    return true;
}

static bool prepare_fold(struct reading *rd, const struct names *names, const struct grouping *g,
                         const struct series_set *set, struct err *e)
{
    struct adding a = {&rd->fold, set};
    rd->folds = true;
    fold_init(&rd->fold, &rd->fetch->store->reports[rd->report], names, g, rd->fetch->arena);
    if (!rd->fold.keeps_any)
        return true;
    if (series_set_has(set, STORE_SERIES_OTHER))
        fold_add(&rd->fold, STORE_SERIES_OTHER, slice_text(STORE_OTHER_KEY));
    return store_series_each(rd->fetch->store, rd->report, add_key, &a, e);
}

/* Into groups by dimensions alone: the metric's name is none. */
static bool can_fold(const struct reading *rd, const struct grouping *fold)
{
    enum function f = rd->function;
    for (size_t i = 0; fold != NULL && !fold->excludes && i < fold->count; i++) {
        if (slice_is(fold->labels[i], METRIC_LABEL))
            return false;
    }
    return fold != NULL && slide_is_total(rd->measure) &&
           (f == FUNCTION_NONE || f == FUNCTION_RATE || f == FUNCTION_INCREASE || f == FUNCTION_SUM);
}

/* The one series of a report without dimensions. */
static bool match_only(const struct reading *rd, struct match *m, struct err *e)
{
    bool found;
    if (rd->fetch->store->reports[rd->report].dimension_count > 0 || m->set.kind != SERIES_ALL)
        return true;
    m->set.kind = SERIES_ONE;
    if (!store_series_find(rd->fetch->store, rd->report, slice_of("", 0), &m->set.one, &found, e))
        return false;
    m->count = found;
    return true;
}

/* ---- answers */

static bool labels_of_row(const struct reading *rd, const struct names *names, struct slice metric,
                          size_t row, struct labels *labels, struct err *e)
{
    const struct report *r = &rd->fetch->store->reports[rd->report];
    struct text key = {0};
    if (rd->folds) {
        *labels = fold_labels(&rd->fold, names, rd->series[row]);
        return true;
    }
    bool good = store_series_key(rd->fetch->store, rd->report, rd->series[row], &key, e);
    if (good)
        *labels = select_labels(r, names, metric, text_slice(&key), rd->fetch->arena);
    text_fini(&key);
    return good;
}

static bool append(struct reading *rd, const struct selector *s, const struct names *names,
                   struct slice metric, struct vector *out, struct err *e)
{
    struct vector more;
    const struct windows *w = &rd->windows;
    bool alone = rd->function == FUNCTION_NONE && !slide_is_total(rd->measure);
    if (!fetch_room(rd->fetch, rd->row_count, &more, e))
        return false;
    double *values = xmalloc(w->ask.count * sizeof *values);
    bool good = true;
    for (size_t row = 0; good && row < rd->row_count; row++) {
        slide(rd->measure, rd->function, w, &rd->columns[row * w->piece_count * rd->width], values);
        if (alone)
            look_back(rd, s, values, vector_row(&more, row));
        else
            memcpy(vector_row(&more, row), values, w->ask.count * sizeof *values);
        good = labels_of_row(rd, names, metric, row, &more.series[row], e);
    }
    free(values);
    vector_append(out, &more);
    return good;
}

static bool read_series(struct reading *rd, const struct selector *s, const struct names *names,
                        struct slice metric, const struct match *match, struct vector *out, struct err *e)
{
    struct window_ask ask = ask_of(rd, s);
    size_t row;
    if (match->set.kind == SERIES_ONE && match->count == 0)
        return true;
    if (!windows_init(&rd->windows, &ask, e))
        return false;
    if (match->set.kind == SERIES_ONE && slide_is_total(rd->measure))
        (void)take_row(rd, match->set.one, &row);
    return scan(rd, &match->set, e) && append(rd, s, names, metric, out, e);
}

static bool read_metric(struct fetch *fe, const struct select *select, size_t report, size_t measure,
                        enum function f, const struct grouping *fold, struct vector *out, struct err *e)
{
    const struct report *r = &fe->store->reports[report];
    char metric[NAMES_METRIC_BYTES];
    struct match match;
    struct reading rd = {.fetch = fe, .report = report, .measure = &r->measures[measure], .function = f};
    struct names *names = arena_add(fe->arena, sizeof *names);
    names_of(r, names);
    names_metric(r, measure, metric);
    if ((f == FUNCTION_RATE || f == FUNCTION_INCREASE) && !slide_is_total(rd.measure))
        return err_set(e, EX_USAGE,
                       "%s() counts, and %s does not: it is %s; ask it by itself, or for min_over_time, "
                       "max_over_time, avg_over_time or last_over_time",
                       parse_function_name(f), metric, rd.measure->expression);
    bool keeps_name = f == FUNCTION_NONE || f == FUNCTION_LAST;
    struct slice name = keeps_name ? arena_copy(fe->arena, slice_text(metric)) : slice_of("", 0);
    rd.width = measure_column_count(rd.measure);
    rd.columns_max = fe->values_left;
    bool good = select_series(select, fe->store, report, &match, e) && match_only(&rd, &match, e);
    if (good && can_fold(&rd, fold))
        good = prepare_fold(&rd, names, fold, &match.set, e);
    good = good && read_series(&rd, select->selector, names, name, &match, out, e);
    match_fini(&match);
    windows_fini(&rd.windows);
    fold_fini(&rd.fold);
    free(rd.rows);
    free(rd.series);
    free(rd.columns);
    return good;
}

bool fetch_run(struct fetch *fe, const struct selector *selector, enum function f,
               const struct grouping *fold, struct vector *out, struct err *e)
{
    struct select select;
    vector_init(out, 0, fe->step_count);
    bool good = select_init(&select, selector, e);
    for (size_t i = 0; good && i < fe->store->report_count; i++) {
        const struct report *r = &fe->store->reports[i];
        for (size_t m = 0; good && m < r->measure_count; m++) {
            bool matches;
            good = select_metric(&select, r, m, &matches, e) &&
                   (!matches || read_metric(fe, &select, i, m, f, fold, out, e));
        }
    }
    select_fini(&select);
    if (!good)
        fetch_release(fe, out);
    return good;
}
