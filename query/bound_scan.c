#include "query/bound.h"
#include "query/hint.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* One of several scans. */
struct scanning {
    const struct tiles_scan *scan;
    size_t columns; /* columns of a report without sums and counts, else 0 */
    scan_fn *fn;
    sketch_fn *sketch;
    void *context;
};

static size_t columns_without_sums(const struct report *r)
{
    for (size_t i = 0; i < r->measure_count; i++) {
        if (measure_is_sum(&r->measures[i]))
            return 0;
    }
    return r->column_count;
}

/* Does a time bucket hold no value? Without sums, its events may have none of the measured numbers; some
 * stores leave such buckets out. */
static bool is_nothing(const struct scanning *g, const int64_t *values)
{
    size_t i = 0;
    while (i < g->columns && values[i] == 0)
        i++;
    return g->columns > 0 && i == g->columns;
}

static void pass_bucket(void *context, uint32_t series, int64_t bucket_ms, const int64_t *values)
{
    const struct scanning *g = context;
    if (is_nothing(g, values))
        return;
    if (g->scan->tile_count == 1 || tiles_has(g->scan, bucket_ms))
        g->fn(g->context, series, bucket_ms, values);
}

static bool pass_sketch(void *context, uint32_t series, int64_t bucket_ms, size_t sketch, struct slice packed,
                        struct err *e)
{
    const struct scanning *g = context;
    return (g->scan->tile_count > 1 && !tiles_has(g->scan, bucket_ms)) ||
           g->sketch(g->context, series, bucket_ms, sketch, packed, e);
}

/* A step longer than the answer's, which reads longer time buckets than `resolution`; NULL: none. */
static const char *coarser_step(const struct answer *a, enum span resolution)
{
    /* first row: UTC; second row: other zones, which read the edges of days as hours or minutes */
    static const char *const names[2][SPAN_COUNT] = {{"minute", "hour", "day", "month", NULL},
                                                     {"hour", "day", "week", "year", NULL}};
    const char *name = names[a->zone != &zone_utc][resolution];
    struct step step;
    if (!a->has_step || name == NULL || !step_parse(slice_text(name), &step))
        return NULL;
    return step_ms(&step) > step_ms(&a->step) ? name : NULL;
}

/* Refuse an answer because a scan passed the limit of rows. */
static bool refuse_rows(const struct bound *b, enum span resolution, struct err *e)
{
    const struct answer *a = &b->answer;
    const char *step = coarser_step(a, resolution);
    const char *report = a->of_series ? NULL : hint_report(b->store, a, &b->wanted);
    return err_set(e, EX_UNAVAILABLE,
                   "the answer takes more than %" PRIu64
                   " rows of the store (query.rows_max): ask for a shorter range%s%s%s%s",
                   b->query->limits.rows_max, step != NULL ? ", or by " : "", step != NULL ? step : "",
                   report != NULL ? ", or of report " : "", report != NULL ? report : "");
}

/* Refuse an answer whose first time buckets of a resolution have expired. */
static bool refuse_gone(const struct bound *b, const struct plan_tile *tile, struct err *e)
{
    const struct answer *a = &b->answer;
    char iso[CIVIL_ISO_BYTES], other[96] = "";
    uint64_t most = b->query->limits.points_max;
    const char *step = hint_kept_step(a, &b->watermarks, most);
    enum span kept = hint_kept_span(a->report, &b->watermarks, a->from_ms);
    if (step != NULL)
        snprintf(other, sizeof other, ", or by %s", step);
    else if (hint_is_kept_in_utc(a, &b->watermarks, most))
        snprintf(other, sizeof other, ", or in UTC");
    else if (!a->has_step && kept < SPAN_COUNT)
        snprintf(other, sizeof other, ", or for a range of whole %ss of UTC", span_name(kept));
    return err_set(e, EX_UNAVAILABLE,
                   "report %s has its %ss from %s on, earlier ones have expired (reports.%s.keep): ask for a "
                   "later start%s",
                   a->report->name, span_name(tile->resolution),
                   civil_iso(b->watermarks.before_ms[tile->resolution], iso), a->report->name, other);
}

static bool run(const struct bound *b, const struct series_set *set, struct scanning *g, uint64_t rows_max,
                struct query_read *read, struct err *e)
{
    const struct tiles_scan *ts = g->scan;
    struct scan scan = {b->report, ts->resolution, ts->from_ms, ts->to_ms, *set, rows_max, 0, NULL};
    for (size_t i = 0; i < b->answer.measure_count; i++)
        scan.measures |= (uint32_t)1 << b->answer.measures[i];
    if (b->answer.sketch_count > 0)
        scan.sketch = pass_sketch;
    *read = (struct query_read){ts->resolution, ts->from_ms, ts->to_ms, {0}};
    if (store_scan(b->store, &scan, pass_bucket, g, &read->stats, e))
        return true;
    return e->code == EX_UNAVAILABLE && !e->retryable && read->stats.rows >= rows_max
               ? refuse_rows(b, ts->resolution, e)
               : false;
}

bool bound_scan(const struct bound *b, const struct series_set *set, const struct tiles *tiles, scan_fn *fn,
                sketch_fn *sketch, void *context, struct query_stats *stats, struct err *e)
{
    size_t count;
    const struct plan_tile *gone = tiles_find_gone(tiles, b->watermarks.before_ms);
    if (gone != NULL)
        return refuse_gone(b, gone, e);
    struct tiles_scan *scans = tiles_scans(tiles, &count);
    bool good = true;
    for (size_t i = 0; good && i < count; i++) {
        struct scanning g = {&scans[i], columns_without_sums(b->answer.report), fn, sketch, context};
        struct query_read read;
        good = run(b, set, &g, b->query->limits.rows_max - stats->total.rows, &read, e);
        stats->total.rows += read.stats.rows;
        stats->total.bytes += read.stats.bytes;
        if (i < QUERY_READS_MAX)
            stats->reads[i] = read;
        stats->scan_count++;
    }
    free(scans);
    return good;
}
