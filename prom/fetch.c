#include "prom/fetch.h"

#include "aggregate/dimension.h"
#include "base/check.h"
#include "base/mem.h"
#include "prom/fold.h"
#include "prom/functions.h"
#include "prom/over.h"
#include "prom/rank.h"
#include "prom/select.h"
#include "prom/slide.h"
#include "query/hint.h"

#include <stdlib.h>

/* Reading one metric's part of the answer. */
struct reading {
    struct fetch *fetch;
    const struct selector *selector;
    enum function function;
    struct fetch_around around;
    size_t report;
    const struct names *names;
    const struct measure *measure;
    const struct measure *presence; /* the report's count, which tells a sum of 0 from none; NULL: none */
    struct slice metric;            /* empty: the function drops the name */
    size_t width;                   /* columns of the measure and of `presence` */
    bool is_always;                 /* a total that is there without events, too */
    struct windows windows;
    bool folds;
    struct fold fold;
    uint32_t *rows; /* row + 1, by series, or if `folds` by row of the fold; 0: none yet */
    size_t row_slots, row_slot_capacity;
    uint32_t *series; /* by row: its series, or if `folds` its row of the fold */
    size_t row_count, series_capacity;
    int64_t *columns; /* [(row × pieces + piece) × width] */
    size_t column_capacity, columns_max;
    bool is_too_much;
};

bool fetch_room(struct fetch *fe, size_t series_count, struct vector *out, struct err *e)
{
    if (series_count > fe->budget->values_left / fe->step_count) {
        fe->budget->is_full = true;
        return err_set(e, EX_UNAVAILABLE,
                       "%zu series of %zu steps are more than %d values at once: select fewer series, a "
                       "shorter range or a longer step",
                       series_count, fe->step_count, BUDGET_VALUES_MAX);
    }
    if (!budget_take(fe->budget, BUDGET_POINTS, series_count * fe->step_count, e))
        return false;
    fe->budget->values_left -= series_count * fe->step_count;
    vector_init(out, series_count, fe->step_count);
    out->reserved = series_count * fe->step_count;
    return true;
}

void fetch_release(struct fetch *fe, struct vector *v)
{
    fe->budget->values_left += v->reserved;
    vector_fini(v);
}

void fetch_shrink(struct fetch *fe, struct vector *v)
{
    size_t needed = v->series_count * v->step_count;
    ASSERT(needed <= v->reserved);
    fe->budget->values_left += v->reserved - needed;
    v->reserved = needed;
}

/* Finds or adds the row of a series, or of its row of the fold. False: not in the fold, or no room. */
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
        rd->is_too_much |= start + per_row > rd->columns_max;
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

static void add_bucket(void *context, uint32_t series, int64_t bucket_ms, const int64_t *values)
{
    struct reading *rd = context;
    size_t piece, row;
    if (rd->is_too_much || !windows_find(&rd->windows, bucket_ms, &piece) || !take_row(rd, series, &row))
        return;
    int64_t *columns = &rd->columns[(row * rd->windows.piece_count + piece) * rd->width];
    measure_merge(rd->measure, columns, values + rd->measure->column);
    if (rd->presence != NULL)
        measure_merge(rd->presence, columns + rd->width - 1, values + rd->presence->column);
}

/* Fails: the time buckets that have not expired are longer, and a window begins or ends within one. */
static bool refuse_gone(const struct reading *rd, const struct plan_tile *tile,
                        const struct watermarks *watermarks, struct err *e)
{
    const struct report *r = &rd->fetch->store->reports[rd->report];
    char iso[CIVIL_ISO_BYTES];
    enum span kept = hint_kept_span(r, watermarks, tile->from_ms);
    bool is_any = kept < SPAN_COUNT && !rd->windows.ask.by_cell;
    return err_set(e, EX_UNAVAILABLE,
                   "report %s has its %ss from %s on, earlier ones have expired (reports.%s.keep): ask for a "
                   "later start%s%s%s",
                   r->name, span_name(tile->resolution),
                   civil_iso(watermarks->before_ms[tile->resolution], iso), r->name,
                   is_any ? ", or make start, step and ranges whole " : "", is_any ? span_name(kept) : "",
                   is_any ? "s of UTC" : "");
}

static bool check_watermarks(const struct reading *rd, struct err *e)
{
    struct watermarks watermarks;
    if (!store_watermarks(rd->fetch->store, rd->report, &watermarks, e))
        return false;
    for (size_t i = 0; i < rd->windows.tile_count; i++) {
        const struct plan_tile *tile = &rd->windows.tiles[i];
        if (tile->from_ms < watermarks.before_ms[tile->resolution])
            return refuse_gone(rd, tile, &watermarks, e);
    }
    return true;
}

/* `m` NULL: 0. */
static uint32_t bit_of(const struct report *r, const struct measure *m)
{
    return m != NULL ? (uint32_t)1 << (m - r->measures) : 0;
}

static bool scan(struct reading *rd, const struct series_set *set, struct err *e)
{
    struct budget *b = rd->fetch->budget;
    const struct report *r = &rd->fetch->store->reports[rd->report];
    if (!check_watermarks(rd, e))
        return false;
    for (size_t i = 0; i < rd->windows.tile_count; i++) {
        const struct plan_tile *tile = &rd->windows.tiles[i];
        struct scan_stats stats = {0};
        struct scan scan = {.report = rd->report,
                            .resolution = tile->resolution,
                            .from_ms = tile->from_ms,
                            .to_ms = tile->to_ms,
                            .series = *set,
                            .rows_max = b->left[BUDGET_ROWS],
                            .measures = bit_of(r, rd->measure) | bit_of(r, rd->presence)};
        if (!store_scan(rd->fetch->store, &scan, add_bucket, rd, &stats, e))
            return e->code == EX_UNAVAILABLE && !e->retryable ? budget_fail(b, BUDGET_ROWS, e) : false;
        if (!budget_take(b, BUDGET_ROWS, stats.rows, e))
            return false;
        if (rd->is_too_much) {
            b->is_full = true;
            return err_set(
                e, EX_UNAVAILABLE,
                "the question reads more than %zu values (series by stretches of time) at once: select fewer "
                "series, a shorter range or a longer step, or put sum by (…) right around the selector or "
                "its function",
                rd->columns_max / rd->width);
        }
    }
    return true;
}

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

static struct window_ask ask_of(const struct reading *rd)
{
    const struct fetch *fe = rd->fetch;
    const struct report *r = &fe->store->reports[rd->report];
    struct window_ask ask = {.cell = report_cell(r),
                             .at_ms = fetch_base(fe, rd->selector) - rd->selector->offset_ms,
                             .step_ms = rd->selector->base == BASE_STEP ? fe->step_ms : 0,
                             .count = fe->step_count,
                             .length_ms = rd->selector->range_ms,
                             .by_cell = slide_needs_cells(rd->measure, function_of_windows(rd))};
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

/* Can a fold replace the sum around? It groups by dimensions only, and the metric's name is no dimension. */
static bool can_fold(const struct reading *rd)
{
    enum function f = rd->function;
    const struct node *n = rd->around.aggregate;
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
    const struct match *found = select_series(s, st, rd->report, e);
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

static bool labels_of_row(const struct reading *rd, size_t row, struct labels *labels, struct err *e)
{
    const struct store *st = rd->fetch->store;
    struct text key = {0};
    if (!budget_take(rd->fetch->budget, BUDGET_SERIES, 1, e))
        return false;
    if (rd->folds) {
        *labels = fold_labels(&rd->fold, rd->names, rd->series[row]);
        return true;
    }
    bool good = store_series_key(rd->fetch->store, rd->report, rd->series[row], &key, e);
    if (good)
        *labels = select_labels(&st->reports[rd->report], rd->names, rd->metric, text_slice(&key),
                                rd->fetch->arena);
    text_fini(&key);
    return good;
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
    if (keeps_none)
        keep_greatest(rd, v);
    for (size_t row = 0; good && row < v->series_count; row++)
        good = labels_of_row(rd, row, &v->series[row], e);
    return good;
}

/* The number of points that a function looks at one by one, in all windows. */
static uint64_t points_of(const struct reading *rd)
{
    uint64_t count = 0;
    for (size_t i = 0; over_is_needed(rd->function) && i < rd->windows.ask.count; i++)
        count += rd->windows.list[i].end - rd->windows.list[i].first;
    return count;
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
    uint64_t looked_at = (rd->row_count + 1) * (w->piece_count + w->ask.count + points_of(rd));
    if (!budget_take(rd->fetch->budget, BUDGET_POINTS, looked_at, e) ||
        !fetch_room(rd->fetch, rd->row_count, &more, e))
        return false;
    for (size_t row = 0; row < rd->row_count; row++)
        slide(&ask, w, &rd->columns[row * w->piece_count * rd->width], vector_row(&more, row));
    bool good = label_rows(rd, &more, e);
    vector_append(out, &more);
    return good;
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
        (void)take_row(rd, match->set.one, &row);
    return scan(rd, &match->set, e) && append(rd, out, e);
}

/* A count needs none, and no other measure but a sum has values without events. */
static const struct measure *presence_of(const struct report *r, const struct measure *measure)
{
    for (size_t i = 0; measure->kind == MEASURE_SUM && i < r->measure_count; i++) {
        if (r->measures[i].kind == MEASURE_COUNT)
            return &r->measures[i];
    }
    return NULL;
}

static bool check_function(const struct reading *rd, const char *metric, struct err *e)
{
    enum function f = rd->function;
    bool is_total = slide_is_total(rd->measure);
    if ((f == FUNCTION_RATE || f == FUNCTION_INCREASE) && !is_total)
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

/* `rd`: the part of the question that is the same for every metric. */
static bool read_metric(struct reading rd, struct select *select, size_t report, size_t measure,
                        struct vector *out, struct err *e)
{
    const struct report *r = &rd.fetch->store->reports[report];
    struct names *names = arena_add(rd.fetch->arena, sizeof *names);
    enum function f = rd.function;
    char metric[NAMES_METRIC_BYTES];
    struct match match;
    struct bits bits = {0};
    names_of(r, names);
    names_metric(r, measure, metric);
    rd.report = report;
    rd.names = names;
    rd.measure = &r->measures[measure];
    if (!check_function(&rd, metric, e))
        return false;
    if (f == FUNCTION_NONE || f == FUNCTION_LAST)
        rd.metric = arena_copy(rd.fetch->arena, slice_text(metric));
    rd.presence = presence_of(r, rd.measure);
    rd.width = measure_column_count(rd.measure) + (rd.presence != NULL);
    rd.columns_max = rd.fetch->budget->values_left;
    if (!find_series(&rd, select, &match, e))
        return false;
    bool good = rd.around.only == NULL || match.set.kind == SERIES_ONE || keep_only(&rd, &match, &bits, e);
    bool is_none = match.set.kind != SERIES_ALL && match.count == 0;
    good = good && (is_none || read_series(&rd, &match, out, e));
    free(bits.words);
    windows_fini(&rd.windows);
    fold_fini(&rd.fold);
    free(rd.rows);
    free(rd.series);
    free(rd.columns);
    return good;
}

/* Have the series from `first` on no events at the first step? */
static bool begins_empty(const struct vector *v, size_t first)
{
    bool is = true;
    for (size_t i = first; i < v->series_count && is; i++) {
        double value = v->step_count > 0 ? vector_row(v, i)[0] : 0;
        is = vector_is_absent(value) || value == 0;
    }
    return is;
}

bool fetch_run(struct fetch *fe, const struct selector *selector, enum function f,
               const struct fetch_around *around, struct vector *out, struct err *e)
{
    struct select select;
    struct reading rd = {.fetch = fe, .selector = selector, .function = f, .around = *around};
    vector_init(out, 0, fe->step_count);
    bool good = select_init(&select, selector, fe->budget, e);
    for (size_t i = 0; good && i < fe->store->report_count; i++) {
        const struct report *r = &fe->store->reports[i];
        for (size_t m = 0; good && m < r->measure_count; m++) {
            size_t first = out->series_count;
            bool matches;
            good = select_metric(&select, r, m, &matches, e) &&
                   (!matches || read_metric(rd, &select, i, m, out, e));
            fe->begins_empty[i] |= good && matches && begins_empty(out, first);
        }
    }
    select_fini(&select);
    if (!good)
        fetch_release(fe, out);
    return good;
}
