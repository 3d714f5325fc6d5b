#include "prom/remote_read.h"

#include "aggregate/number.h"
#include "base/check.h"
#include "base/mem.h"
#include "prom/remote_message.h"
#include "prom/select.h"
#include "prom/slide.h"
#include "query/plan.h"
#include "store/reader.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define ARENA_CHUNK_BYTES    ((size_t)16 << 10)
#define SKETCHES_CHUNK_BYTES ((size_t)64 << 10)
#define INCREASE_BYTES       (NAMES_METRIC_BYTES + sizeof ":increase1m")

/* A request under way. */
struct request {
    struct store *store;
    const struct remote_limits *limits;
    struct budget budget;
    struct arena arena;
    struct text *out;
};

/* The samples of a metric: a running total at the end of each cell, or the value of each cell. */
enum shape { SHAPE_COUNTER, SHAPE_CELLS };

/* Reading the samples of one metric. */
struct samples {
    struct request *request;
    const struct remote_query *query;
    size_t report;
    const struct metric *metric;
    const struct measure *measure; /* metric->value */
    enum shape shape;
    int64_t cell_ms, from_ms;     /* length of a cell; start of the first one */
    size_t cells;                 /* each has one sample of a series */
    size_t width;                 /* columns of the measure */
    bool is_past;                 /* the scan reads the time before the cells: it adds no series */
    bool is_too_much, is_refused; /* more values than there may be; more than the memory of the question */
    uint64_t held, sketches_held; /* bytes of the budget: rows; memory of sketches */
    uint32_t *rows;               /* by series: its row + 1; 0: none */
    size_t slots, slot_capacity;
    uint32_t *series; /* by row */
    size_t row_count, series_capacity;
    int64_t *columns; /* [(row × (1 + cells) + 1 + cell) × width]; place 0: all time before the cells */
    size_t column_capacity;
    enum span longest;          /* resolution of the longest time buckets read: histograms have its buckets */
    bool has_sketches;          /* METRIC_NATIVE: each place has a histogram, too */
    struct histogram *sketches; /* [row × (1 + cells) + 1 + cell] */
    size_t sketch_capacity;
    struct arena sketch_memory; /* of the sketches, if there are any */
};

static const struct report *report_of(const struct samples *s)
{
    return &s->request->store->reports[s->report];
}

/* ---- rows */

static size_t columns_per_row(const struct samples *s)
{
    return (1 + s->cells) * s->width;
}

/* Makes room for the next row. */
static void add_row(struct samples *s)
{
    const size_t per_row = columns_per_row(s), places = 1 + s->cells, start = s->row_count * per_row;
    s->columns = xgrow(s->columns, &s->column_capacity, start + per_row, sizeof *s->columns);
    memset(s->columns + start, 0, per_row * sizeof *s->columns);
    if (s->has_sketches) {
        const size_t known = s->row_count * places;
        s->sketches = xgrow(s->sketches, &s->sketch_capacity, known + places, sizeof *s->sketches);
        memset(s->sketches + known, 0, places * sizeof *s->sketches);
    }
    s->row_count++;
}

/* Finds or adds the row of a series. False: there is none, or no room for it. */
static bool take_row(struct samples *s, uint32_t series, size_t *row)
{
    size_t known = s->slots;
    if (series >= known) {
        if (s->is_past)
            return false;
        s->slots = (size_t)series + 1;
        s->rows = xgrow(s->rows, &s->slot_capacity, s->slots, sizeof *s->rows);
        memset(s->rows + known, 0, (s->slots - known) * sizeof *s->rows);
    }
    if (s->rows[series] == 0) {
        const size_t values = s->width + (s->has_sketches ? sizeof *s->sketches / sizeof *s->columns : 0);
        if (s->is_past)
            return false;
        const uint64_t bytes = (1 + s->cells) * values * sizeof *s->columns + sizeof *s->series;
        s->is_too_much |= (s->row_count + 1) * (1 + s->cells) * values > s->request->budget.values_left;
        s->is_refused |= !s->is_too_much && !share_take(s->request->budget.memory, bytes);
        s->is_too_much |= s->is_refused;
        if (s->is_too_much)
            return false;
        s->held += bytes;
        s->series = xgrow(s->series, &s->series_capacity, s->row_count + 1, sizeof *s->series);
        s->series[s->row_count] = series;
        add_row(s);
        s->rows[series] = (uint32_t)s->row_count;
    }
    *row = s->rows[series] - 1;
    return true;
}

/* Finds the place of a time bucket, as an index by row and cell. False: there is none. */
static bool take_place(struct samples *s, uint32_t series, int64_t bucket_ms, size_t *place)
{
    size_t row;
    if (s->is_too_much || !take_row(s, series, &row))
        return false;
    *place = row * (1 + s->cells) + (s->is_past ? 0 : 1 + (size_t)((bucket_ms - s->from_ms) / s->cell_ms));
    return true;
}

/* A scan_fn. */
static void add_bucket(void *context, uint32_t series, int64_t bucket_ms, const int64_t *values)
{
    struct samples *s = context;
    size_t place;
    if (take_place(s, series, bucket_ms, &place))
        measure_merge(s->measure, &s->columns[place * s->width], values + s->measure->column);
}

/* A sketch_fn, behind add_bucket() for the same bucket. */
static bool add_sketch(void *context, uint32_t series, int64_t bucket_ms, size_t sketch, struct slice packed,
                       struct err *e)
{
    struct samples *s = context;
    const uint64_t bytes_max = s->request->limits->sketches_max;
    size_t place;
    if (report_of(s)->sketched[sketch] != s->metric->measure || !take_place(s, series, bucket_ms, &place))
        return true;
    if (!histogram_merge(&s->sketches[place], &s->sketch_memory, packed,
                         s->measure->layouts[s->longest]->schema))
        return err_set(e, EX_DATAERR,
                       "the store is damaged: %s does not decode; check it by `tallyd verify --store-only`",
                       s->metric->name);
    if (!share_fit(s->request->budget.memory, &s->sketches_held, arena_bytes(&s->sketch_memory)))
        return share_fail(s->request->budget.memory, e);
    return bytes_max == 0 || arena_bytes(&s->sketch_memory) <= bytes_max ||
           err_set(e, EX_UNAVAILABLE,
                   "%s takes more than %" PRIu64
                   " bytes of histograms (query.sketches_max): select fewer series or a shorter range",
                   s->metric->name, bytes_max);
}

/* ---- scans */

static bool scan_tile(struct samples *s, const struct series_set *set, struct plan_tile tile, struct err *e)
{
    struct budget *b = &s->request->budget;
    struct scan_stats stats = {0};
    const struct scan scan = {.report = s->report,
                              .resolution = tile.resolution,
                              .from_ms = tile.from_ms,
                              .to_ms = tile.to_ms,
                              .series = *set,
                              .rows_max = b->left[BUDGET_ROWS],
                              .measures = (uint32_t)1 << s->metric->measure,
                              .sketch = s->has_sketches ? add_sketch : NULL};
    if (!store_scan(s->request->store, &scan, add_bucket, s, &stats, e))
        return e->code == EX_UNAVAILABLE && !e->retryable ? budget_fail(b, BUDGET_ROWS, e) : false;
    if (!budget_take(b, BUDGET_ROWS, stats.rows, e))
        return false;
    if (s->is_refused)
        return share_fail(b->memory, e);
    return !s->is_too_much ||
           err_set(e, EX_UNAVAILABLE,
                   "the selector takes more than %d samples at once: select fewer series or a shorter range, "
                   "or ask tallyd itself",
                   BUDGET_VALUES_MAX);
}

/* Adds up what the series with rows had before the cells, from the first month that has not expired. */
static bool scan_past(struct samples *s, const struct watermarks *watermarks, struct err *e)
{
    int64_t first_ms = watermarks->before_ms[SPAN_MONTH];
    struct series_set set = {.kind = SERIES_SET};
    struct plan plan = {.tile_count = 0};
    bool good = true;
    if (s->row_count > 0 && first_ms < s->from_ms)
        plan = plan_sum(report_cell(report_of(s)), first_ms, s->from_ms);
    uint64_t *bits = xcalloc(s->slots / 64 + 1, sizeof *bits);
    for (size_t row = 0; row < s->row_count; row++)
        bits[s->series[row] / 64] |= (uint64_t)1 << s->series[row] % 64;
    set.bits = bits;
    set.bits_max = (uint32_t)s->slots;
    s->is_past = true;
    for (size_t i = 0; good && i < plan.tile_count; i++)
        good = scan_tile(s, &set, plan.tiles[i], e);
    free(bits);
    return good;
}

static bool scan(struct samples *s, const struct series_set *set, struct err *e)
{
    struct watermarks watermarks;
    char iso[CIVIL_ISO_BYTES];
    enum span cell = report_cell(report_of(s));
    if (!store_watermarks(s->request->store, s->report, &watermarks, e))
        return false;
    if (s->from_ms < watermarks.before_ms[cell])
        return err_set(
            e, EX_UNAVAILABLE,
            "report %s has its %ss from %s on, earlier ones have expired (reports.%s.keep): ask for a "
            "later start, or ask tallyd itself for whole hours or days of UTC",
            report_of(s)->name, span_name(cell), civil_iso(watermarks.before_ms[cell], iso),
            report_of(s)->name);
    const struct plan_tile all = {cell, s->from_ms, s->from_ms + (int64_t)s->cells * s->cell_ms};
    if (!scan_tile(s, set, all, e))
        return false;
    return s->shape != SHAPE_COUNTER || s->query->names_only || scan_past(s, &watermarks, e);
}

/* ---- answers */

/* Is the answer within its limit? */
static bool is_short(const struct request *rq)
{
    return rq->out->len <= rq->limits->bytes_max;
}

static int64_t time_of(const struct samples *s, size_t cell)
{
    return s->from_ms + (int64_t)cell * s->cell_ms - (s->shape == SHAPE_CELLS);
}

static void write_samples(const struct samples *s, int64_t *columns)
{
    for (size_t i = 1; i <= s->cells && is_short(s->request); i++) {
        int64_t *place = columns + i * s->width;
        int128 value;
        if (s->shape == SHAPE_COUNTER)
            measure_merge(s->measure, place, place - s->width);
        if (measure_value(s->measure, place, &value))
            remote_add_sample(s->request->out, number_double(value), time_of(s, i));
    }
}

/* A histogram for each cell; of a counter a running total. */
static bool write_histograms(const struct samples *s, size_t row, struct err *e)
{
    struct histogram_bucket *buckets = xmalloc((size_t)2 * HISTOGRAM_NTHS_MAX * sizeof *buckets);
    const size_t first = row * (1 + s->cells);
    const bool is_counter = s->shape == SHAPE_COUNTER;
    struct histogram total = {0};
    struct arena arena;
    bool good = true;
    arena_init(&arena, ARENA_CHUNK_BYTES);
    for (size_t i = 0; good && i <= s->cells && is_short(s->request); i++) {
        int64_t *columns = &s->columns[(first + i) * s->width];
        struct remote_histogram h = {
            .buckets = buckets, .layout = s->measure->layouts[s->longest], .is_gauge = !is_counter};
        int128 sum;
        if (is_counter && i > 0)
            measure_merge(s->measure, columns, columns - s->width);
        if (is_counter)
            histogram_unite(&total, &arena, &s->sketches[first + i], HISTOGRAM_SCHEMA_MAX);
        struct histogram_walk w = histogram_walk(is_counter ? &total : &s->sketches[first + i]);
        while (i > 0 && histogram_next(&w, &buckets[h.bucket_count]))
            h.bucket_count++;
        if (i == 0 || !measure_value(s->measure, columns, &sum))
            continue;
        h.sum = number_double(sum);
        good = budget_take(&s->request->budget, BUDGET_POINTS, h.bucket_count, e) &&
               (remote_add_histogram(s->request->out, &h, time_of(s, i)) ||
                err_set(e, EX_UNAVAILABLE, "the answer is too long"));
    }
    arena_fini(&arena);
    free(buckets);
    return good;
}

static bool write_row(const struct samples *s, const struct names *names, struct slice metric, size_t row,
                      struct err *e)
{
    struct request *rq = s->request;
    struct text key = {0};
    if (!budget_take(&rq->budget, BUDGET_SERIES, 1, e) ||
        !store_series_key(rq->store, s->report, s->series[row], &key, e))
        return false;
    struct labels labels = select_labels(report_of(s), names, metric, text_slice(&key), &rq->arena);
    size_t begun = remote_begin_series(rq->out);
    for (size_t i = 0; i < labels.count; i++)
        remote_add_label(rq->out, labels.list[i].name, labels.list[i].value);
    text_fini(&key);
    if (s->has_sketches && !write_histograms(s, row, e))
        return false;
    if (!s->query->names_only && !s->has_sketches)
        write_samples(s, s->columns + row * columns_per_row(s));
    if (remote_end(rq->out, begun) && is_short(rq))
        return true;
    return err_set(
        e, EX_UNAVAILABLE,
        "the samples are more than %" PRIu64
        " bytes (half of query.response_max): select fewer series or a shorter range, or ask tallyd "
        "itself",
        rq->limits->bytes_max);
}

static bool write_rows(const struct samples *s, struct slice metric, struct err *e)
{
    struct names *names = arena_add(&s->request->arena, sizeof *names); /* labels borrow from it */
    bool good = budget_take(&s->request->budget, BUDGET_POINTS, s->row_count * (1 + s->cells), e);
    names_of(report_of(s), names);
    for (size_t row = 0; good && row < s->row_count; row++)
        good = write_row(s, names, metric, row, e);
    return good;
}

/* ---- metrics */

static int64_t least_ms(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Sets the cells for the samples in the query's range. False: no sample is in it. */
static bool place_cells(struct samples *s)
{
    const struct remote_query *q = s->query;
    int64_t cell_ms = report_cell_ms(report_of(s)), early_ms = s->shape == SHAPE_CELLS; /* of a sample */
    const int64_t latest_ms = least_ms(s->request->limits->now_ms, CIVIL_END_MS);
    int64_t begin_ms = q->from_ms < 1 ? 1 : q->from_ms, end_ms = least_ms(q->to_ms, latest_ms - early_ms);
    if (begin_ms > end_ms)
        return false;
    /* The first and the last end of a cell whose samples are in the range. */
    int64_t first_ms = plan_ceil(report_cell(report_of(s)), begin_ms + early_ms);
    int64_t last_ms = (end_ms + early_ms) / cell_ms * cell_ms;
    s->cell_ms = cell_ms;
    s->from_ms = first_ms - cell_ms;
    s->cells = first_ms <= last_ms ? (size_t)((last_ms - s->from_ms) / cell_ms) : 0;
    return s->cells > 0;
}

static bool read_metric(struct samples *s, const struct series_set *set, struct slice metric, struct err *e)
{
    size_t row;
    s->width = measure_column_count(s->measure);
    if (!place_cells(s))
        return true;
    if (s->has_sketches)
        arena_init(&s->sketch_memory, SKETCHES_CHUNK_BYTES);
    if (set->kind == SERIES_ONE && slide_is_total(s->measure))
        (void)take_row(s, set->one, &row);
    bool good = scan(s, set, e) && write_rows(s, metric, e);
    budget_drop(&s->request->budget, s->held + s->sketches_held);
    free(s->rows);
    free(s->series);
    free(s->columns);
    free(s->sketches);
    if (s->has_sketches)
        arena_fini(&s->sketch_memory);
    return good;
}

/* Sets the series that match; `is_any` false: there are none. */
static bool find_series(struct select *select, struct store *st, size_t report, struct series_set *set,
                        bool *is_any, struct err *e)
{
    const struct match *match = select_series(select, st, report, false, e);
    if (match == NULL)
        return false;
    *set = match->set;
    *is_any = match->set.kind == SERIES_ALL || match->count > 0;
    if (st->reports[report].dimension_count > 0 || match->set.kind != SERIES_ALL)
        return true;
    set->kind = SERIES_ONE; /* the one series of a report without dimensions */
    return store_series_find(st, report, slice_of("", 0), &set->one, is_any, e);
}

/* Reads a metric if the selector matches its name. */
static bool read_named(struct samples s, struct select *select, const char *name, struct err *e)
{
    struct series_set set;
    bool matches, is_any;
    if (!select_label(select, METRIC_LABEL, slice_text(name), &matches, e))
        return false;
    if (!matches)
        return true;
    return find_series(select, s.request->store, s.report, &set, &is_any, e) &&
           (!is_any || read_metric(&s, &set, arena_copy(&s.request->arena, slice_text(name)), e));
}

/* Buckets and distinct counts have no samples. A selector of many metrics goes without; one that names them
 * has to know. */
static bool check_sketch(const struct select *select, const struct metric *m, struct err *e)
{
    for (size_t i = 0; i < select->selector->matcher_count; i++) {
        const struct matcher *by = &select->selector->matchers[i];
        if (by->kind == MATCHER_EQUAL && slice_is(by->name, METRIC_LABEL) && slice_is(by->value, m->name))
            return err_set(e, EX_USAGE, "%s has no samples to read remotely: ask tallyd itself", m->name);
    }
    return true;
}

static bool read_metric_of(struct request *rq, struct select *select, const struct remote_query *q,
                           size_t report, const struct metric *m, struct err *e)
{
    const struct report *r = &rq->store->reports[report];
    struct samples s = {.request = rq, .query = q, .report = report, .metric = m, .measure = &m->value};
    char increase[INCREASE_BYTES];
    if (m->kind == METRIC_DISTINCT || m->kind == METRIC_BUCKET)
        return check_sketch(select, m, e);
    s.has_sketches = m->kind == METRIC_NATIVE && !q->names_only;
    s.shape = m->kind == METRIC_GAUGE ? SHAPE_CELLS : SHAPE_COUNTER;
    s.longest = SPAN_MONTH; /* a counter begins in the past, which is read by months */
    if (!read_named(s, select, m->name, e))
        return false;
    if (s.shape == SHAPE_CELLS)
        return true;
    snprintf(increase, sizeof increase, "%s:increase1%s", m->name, report_cell(r) == SPAN_SECOND ? "s" : "m");
    s.shape = SHAPE_CELLS;
    s.longest = report_cell(r);
    return read_named(s, select, increase, e);
}

static bool answer_query(struct request *rq, const struct remote_query *q, struct err *e)
{
    struct select select;
    size_t begun = remote_begin_result(rq->out);
    bool good = select_init(&select, &q->selector, &rq->budget, e);
    for (size_t i = 0; good && i < rq->store->report_count; i++) {
        struct metric metric;
        bool matches;
        for (size_t m = 0; good && names_metric(&rq->store->reports[i], m, &metric); m++)
            good = select_metric(&select, &rq->store->reports[i], &metric, &matches, e) &&
                   read_metric_of(rq, &select, q, i, &metric, e);
    }
    select_fini(&select);
    /* write_row() has compared the length with bytes_max. */
    return good && (remote_end(rq->out, begun) || err_set(e, EX_UNAVAILABLE, "the answer is too long"));
}

bool remote_read(struct store *st, struct slice request, const struct remote_limits *limits, struct text *out,
                 struct err *e)
{
    struct request rq = {.store = st, .limits = limits, .out = out};
    struct remote_request *asked = xmalloc(sizeof *asked);
    bool good = remote_parse(request, asked, e);
    arena_init(&rq.arena, ARENA_CHUNK_BYTES);
    budget_init(&rq.budget, limits->rows_max, st, &rq.arena);
    for (size_t i = 0; good && i < asked->query_count; i++)
        good = answer_query(&rq, &asked->queries[i], e);
    arena_fini(&rq.arena);
    free(asked);
    return good;
}
