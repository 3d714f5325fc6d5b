#include "query/ranking.h"

#include "base/mem.h"
#include "query/bound.h"
#include "query/cached_ranking.h"
#include "query/hint.h"
#include "query/match.h"
#include "query/top.h"
#include "query/unknown.h"

#include <stdlib.h>

/* Significant digits of a share: more than a chart can show. */
#define SHARE_DIGITS 6

struct ranking {
    struct bound bound;
    struct match match;
    struct top now, before;
    bool has_before;
    bool has_error;            /* the value is a count of a sample, and the second figure its error */
    int64_t before_ms;         /* start of the period before */
    struct tiles tiles_before; /* of it; none: it has expired */
    struct top_total total, total_before; /* of all series */
};

bool ranking_set(struct query *q, struct slice name, struct slice value, struct err *e)
{
    static const char *const names[] = {"report", "measure", "filter", "where",  "from", "to",
                                        "tz",     "limit",   "format", "median", NULL};
    static const char *const formats[] = {"json", "csv", "csv-raw", NULL}, *const yes[] = {"true", NULL};
    if (slice_find(name, names) < 0)
        return unknown_name(e, "parameter", name, names);
    if (slice_is(name, "format") && slice_find(value, formats) < 0)
        return unknown_name(e, "format", value, formats);
    if (slice_is(name, "median")) {
        q->with_median = true;
        return slice_find(value, yes) >= 0 || unknown_name(e, "median", value, yes);
    }
    return slice_is(name, "limit") ? query_set_limit(q, value, e) : query_set(q, name, value, e);
}

/* Merge a time bucket into the period that it belongs to. */
static void scan_period(void *context, uint32_t series, int64_t bucket_ms, const int64_t *values)
{
    struct ranking *r = context;
    top_scan(bucket_ms < r->bound.answer.from_ms ? &r->before : &r->now, series, bucket_ms, values);
}

static bool scan_period_sketch(void *context, uint32_t series, int64_t bucket_ms, size_t sketch,
                               struct slice packed, struct err *e)
{
    struct ranking *r = context;
    return top_scan_sketch(bucket_ms < r->bound.answer.from_ms ? &r->before : &r->now, series, bucket_ms,
                           sketch, packed, e);
}

/* Make the tiles of the period before; false: it has expired. If only longer buckets are left at its start,
 * it starts at the start of such a bucket. A chart by day that ends now needs that: the period before would
 * start at a minute, where only days are left. */
static bool make_before(struct ranking *r)
{
    const struct bound *b = &r->bound;
    const struct answer *a = &b->answer;
    enum span kept = hint_kept_span(a->report, &b->watermarks, r->before_ms);
    if (kept == SPAN_COUNT)
        return false;
    r->before_ms = span_floor(kept, r->before_ms);
    tiles_add(&r->tiles_before, report_cell(a->report), r->before_ms, a->from_ms);
    if (tiles_find_gone(&r->tiles_before, b->watermarks.before_ms) == NULL)
        return true;
    tiles_fini(&r->tiles_before);
    return false;
}

/* Scan both periods. The tiles of this one are added behind those of the one before, so that tiles which
 * touch become one scan: rows may hold time buckets of both. */
static bool scan_both(struct ranking *r, struct err *e)
{
    struct bound *b = &r->bound;
    struct answer *a = &b->answer;
    struct query_stats stats = {0};
    struct tiles *both = &r->tiles_before;
    if (r->match.set.kind != SERIES_ALL && r->match.count == 0)
        return true;
    tiles_add(both, report_cell(a->report), a->from_ms, a->to_ms);
    a->longest = tiles_longest(both);
    bool good = bound_scan(b, &r->match.set, both, scan_period, scan_period_sketch, r, &stats, e);
    good = good && top_check(&r->now, e) && top_check(&r->before, e);
    top_total(&r->now, r->total.columns, &r->total.sketch);
    top_total(&r->before, r->total_before.columns, &r->total_before.sketch);
    return good;
}

static bool finish(struct ranking *r, struct err *e)
{
    struct bound *b = &r->bound;
    return top_finish(&r->now, b->store, b->report, b->query->top, &b->answer, e);
}

/* Scan the period before for the series shown; `all`: for every series. */
static bool scan_before(struct ranking *r, bool all, struct err *e)
{
    const struct answer *a = &r->bound.answer;
    struct series_set set = {.kind = all ? SERIES_ALL : SERIES_SET};
    struct query_stats stats = {0};
    uint64_t *bits = NULL;
    for (size_t row = 0; row < a->row_count; row++) {
        if (r->now.shown[row] >= set.bits_max)
            set.bits_max = r->now.shown[row] + 1;
    }
    bits = xcalloc(set.bits_max / 64 + 1, sizeof *bits);
    for (size_t row = 0; row < a->row_count; row++)
        bits[r->now.shown[row] / 64] |= (uint64_t)1 << r->now.shown[row] % 64;
    set.bits = bits;
    bool good = (!all && a->row_count == 0) || bound_scan(&r->bound, &set, &r->tiles_before, top_scan,
                                                          top_scan_sketch, &r->before, &stats, e);
    free(bits);
    return good;
}

/* Would the period before be read in wider buckets than this one? Then both have those: both are scanned. */
static bool before_is_wider(const struct ranking *r)
{
    const struct answer *a = &r->bound.answer;
    const struct measure *m = &a->report->measures[a->measures[0]];
    struct tiles now = {0};
    tiles_add(&now, report_cell(a->report), a->from_ms, a->to_ms);
    const enum span longest = tiles_longest(&now);
    tiles_fini(&now);
    return r->has_before && measure_schema(m, tiles_longest(&r->tiles_before)) < measure_schema(m, longest);
}

/* Find the values of the period before. If its total is cached, only the series shown are scanned. */
static bool find_before(struct ranking *r, struct err *e)
{
    bool is_cached;
    if (!r->has_before)
        return true;
    r->total_before.longest = r->bound.answer.longest;
    bool good = cached_ranking_total(&r->bound, r->before_ms, r->bound.answer.from_ms, &r->total_before,
                                     &is_cached, e) &&
                scan_before(r, !is_cached, e) && top_check(&r->before, e);
    if (good && !is_cached)
        top_total(&r->before, r->total_before.columns, &r->total_before.sketch);
    return good;
}

/* Rank by the store's cached ranking, or by scans of all matching series. */
static bool rank(struct ranking *r, struct err *e)
{
    const struct bound *b = &r->bound;
    struct query_stats stats = {0};
    bool is_cached = false;
    r->has_before = r->has_before && make_before(r);
    if (!b->query->with_median && !before_is_wider(r) &&
        !cached_ranking_series(b, &r->match.set, b->query->top, &r->now, &r->total, &stats, &is_cached, e))
        return false;
    if (is_cached) {
        r->bound.answer.longest = r->total.longest;
        return finish(r, e) && find_before(r, e);
    }
    if (!scan_both(r, e))
        return false;
    cached_ranking_learn(b, &r->match.set, &r->now);
    return finish(r, e);
}

static const struct measure *measure_of(const struct ranking *r)
{
    const struct answer *a = &r->bound.answer;
    return &a->report->measures[a->measures[0]];
}

static void write_value(bool is_there, int128 value, const char *absent, struct text *out)
{
    char number[NUMBER_BYTES];
    text_puts(out, is_there ? number_text(value, number) : absent);
}

static void write_share(const struct ranking *r, size_t row, const char *absent, struct text *out)
{
    enum measure_kind kind = measure_of(r)->kind;
    int128 value, whole;
    if ((kind != MEASURE_COUNT && kind != MEASURE_SUM) || !answer_value(&r->bound.answer, row, 0, &value) ||
        !measure_value(measure_of(r), r->total.columns, &whole) || whole == 0)
        text_puts(out, absent);
    else
        text_printf(out, "%.*g", SHARE_DIGITS, (double)value / (double)whole);
}

/* Is the period before as long as this one? */
static bool is_as_long(const struct ranking *r)
{
    const struct answer *a = &r->bound.answer;
    return a->from_ms - r->before_ms == a->to_ms - a->from_ms;
}

/* Write a row's value, its share of the total, and its value before, unless `has_before` is false; each
 * behind its `lead`. */
static void write_figures(const struct ranking *r, size_t row, bool has_before, const char *const leads[3],
                          const char *absent, struct text *out)
{
    const struct answer *a = &r->bound.answer;
    int128 value = 0;
    bool is_there = answer_value(a, row, 0, &value);
    text_puts(out, leads[0]);
    write_value(is_there, value, absent, out);
    text_puts(out, leads[1]);
    write_share(r, row, absent, out);
    text_puts(out, leads[2]);
    is_there = has_before && top_value(&r->before, r->now.shown[row], &value);
    write_value(is_there, value, absent, out);
}

/* Write the standard error of a row's value, behind its `lead`, if the value is an estimate that has one. */
static void write_error(const struct ranking *r, size_t row, const char *lead, struct text *out)
{
    int128 value = 0;
    if (!r->has_error)
        return;
    bool is_there = answer_value(&r->bound.answer, row, 1, &value);
    text_puts(out, lead);
    write_value(is_there, value, "", out);
}

/* Write the median of a row that is ranked by another quantile: both are of one sketch. */
static void write_median(const struct ranking *r, size_t row, struct text *out)
{
    const struct answer *a = &r->bound.answer;
    struct figure median = a->figures[0];
    int128 value = 0;
    if (!r->bound.query->with_median || median.kind != FIGURE_QUANTILE)
        return;
    median.at = EVENT_SCALE / 2;
    const bool is_there =
        figure_value(&median, measure_of(r), a->longest, &a->columns[row * a->column_count + a->first[0]],
                     &a->sketches[row * a->sketch_count], &value);
    text_puts(out, ",\"p50\":");
    write_value(is_there, value, "null", out);
}

/* Is the answer longer than it may be? bound_check_bytes() says so then. */
static bool is_long(const struct ranking *r, size_t before, const struct text *out)
{
    const uint64_t most = r->bound.query->limits.bytes_max;
    return most > 0 && out->len - before > most;
}

static void write_csv(const struct ranking *r, struct text *out)
{
    const size_t before = out->len;
    bool is_raw = r->bound.query->format == QUERY_CSV_RAW;
    const struct answer *a = &r->bound.answer;
    for (size_t d = 0; d < a->report->dimension_count; d++)
        text_printf(out, "%s,", a->report->dimensions[d].name);
    text_printf(out, "value,share,before%s\n", r->has_error ? ",error" : "");
    for (size_t row = 0; row < a->row_count && !is_long(r, before, out); row++) {
        for (size_t d = 0; d < a->report->dimension_count; d++) {
            (is_raw ? text_csv : text_csv_cell)(out, answer_dimension(a, row, d));
            text_putc(out, ',');
        }
        /* Nothing in CSV says how long the period before is. */
        write_figures(r, row, is_as_long(r), (const char *const[]){"", ",", ","}, "", out);
        write_error(r, row, ",", out);
        text_putc(out, '\n');
    }
}

static void write_series(const struct ranking *r, size_t row, struct text *out)
{
    const struct answer *a = &r->bound.answer;
    text_puts(out, "{\"series\":");
    answer_series(a, row, out);
    write_figures(r, row, true, (const char *const[]){",\"value\":", ",\"share\":", ",\"before\":"}, "null",
                  out);
    write_error(r, row, ",\"error\":", out);
    write_median(r, row, out);
    text_putc(out, '}');
}

static void write_period(const struct ranking *r, int64_t from_ms, int64_t to_ms,
                         const struct top_total *total, struct text *out)
{
    int128 value = 0;
    bool is_there = answer_figure(&r->bound.answer, total->columns, &total->sketch, 0, &value);
    const struct zone *zone = r->bound.answer.zone;
    char from[ZONE_ISO_BYTES], to[ZONE_ISO_BYTES];
    text_printf(out, "\"from\":\"%s\",\"to\":\"%s\",\"total\":", zone_iso(zone, from_ms, from),
                zone_iso(zone, to_ms, to));
    write_value(is_there, value, "null", out);
}

static void write_json(const struct ranking *r, struct text *out)
{
    const struct answer *a = &r->bound.answer;
    const size_t before = out->len;
    text_puts(out, "{\"report\":");
    text_json(out, slice_text(a->report->name));
    text_puts(out, ",\"measure\":");
    text_json(out, slice_text(a->figures[0].name));
    text_putc(out, ',');
    write_period(r, a->from_ms, a->to_ms, &r->total, out);
    text_puts(out, ",\"before\":");
    if (r->has_before) {
        text_putc(out, '{');
        write_period(r, r->before_ms, a->from_ms, &r->total_before, out);
        text_putc(out, '}');
    } else {
        text_puts(out, "null");
    }
    answer_notes(a, out);
    text_puts(out, ",\"series\":[");
    for (size_t row = 0; row < a->row_count && !is_long(r, before, out); row++) {
        text_puts(out, row > 0 ? "," : "");
        write_series(r, row, out);
    }
    text_puts(out, "]}\n");
}

static bool bind(struct ranking *r, struct err *e)
{
    struct answer *a = &r->bound.answer;
    ASSERT(r->bound.query->top > 0);
    if (!bound_fill(&r->bound, e))
        return false;
    r->has_error = a->figure_count == 2 && a->figures[1].kind == FIGURE_ERROR;
    if (a->figure_count > 1 && !r->has_error)
        return err_set(e, EX_USAGE, "measure: found all, expected one: series are ranked by one measure");
    bound_widen(&r->bound);
    r->before_ms = a->from_ms - (a->to_ms - a->from_ms);
    r->has_before = r->before_ms >= 0;
    return true;
}

bool ranking_run(struct store *st, const struct query *q, struct text *out, struct err *e)
{
    struct ranking r = {.bound = {.query = q, .store = st}};
    struct answer *a = &r.bound.answer;
    size_t before = out->len;
    if (!bind(&r, e))
        return false;
    top_init(&r.now, a, q->limits.sketches_max, st->memory);
    top_init(&r.before, a, q->limits.sketches_max, st->memory);
    r.total.memory = &r.now.sketch_memory;
    r.total_before.memory = &r.before.sketch_memory;
    bool good = match_series(&r.match, st, r.bound.report, &r.bound.wanted, e) && rank(&r, e);
    if (good) {
        if (q->format == QUERY_CSV || q->format == QUERY_CSV_RAW)
            write_csv(&r, out);
        else
            write_json(&r, out);
        good = bound_check_bytes(q, out, before, e);
    }
    match_fini(&r.match);
    tiles_fini(&r.tiles_before);
    top_fini(&r.now);
    top_fini(&r.before);
    free(a->columns);
    free(a->sketches);
    free(a->told);
    free(a->keys);
    return good;
}
