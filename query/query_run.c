/* Runs a query, from its names to its answer's text. */
#include "base/mem.h"
#include "query/bound.h"
#include "query/cached_ranking.h"
#include "query/estimate.h"
#include "query/hint.h"
#include "query/match.h"
#include "query/recent.h"
#include "query/top.h"

#include <inttypes.h>
#include <stdlib.h>

#define SKETCHES_CHUNK_BYTES ((size_t)16 << 10)
#define ROW_BYTES            64 /* a row's start and tiles */

static bool is_of_cells(const struct answer *a, int64_t ms, struct err *e)
{
    char iso[ZONE_ISO_BYTES];
    return ms % report_cell_ms(a->report) == 0 ||
           err_set(e, EX_UNAVAILABLE,
                   "a step would begin at %s, within a minute, but report %s counts whole minutes of UTC: "
                   "ask for another range, or in UTC",
                   zone_iso(a->zone, ms, iso), a->report->name);
}

/* Refuse an answer that has too many steps. */
static bool refuse_steps(const struct bound *b, struct err *e)
{
    const struct answer *a = &b->answer;
    uint64_t most = b->query->limits.points_max;
    const char *step = hint_step(a, step_ms(&a->step), most);
    return err_set(e, EX_UNAVAILABLE,
                   "the answer has %" PRId64 " steps, more than %" PRIu64
                   " (query.points_max): ask for a shorter range%s%s",
                   (a->to_ms - a->from_ms) / step_ms(&a->step), most, step != NULL ? ", or by " : "",
                   step != NULL ? step : "");
}

/* Make the rows of steps. The range becomes that from the first step's start to the last one's end. */
static bool make_steps(struct bound *b, struct err *e)
{
    struct answer *a = &b->answer;
    size_t capacity = 0;
    int64_t at_ms = step_floor(&a->step, a->zone, a->from_ms);
    while (at_ms < a->to_ms) {
        if (!is_of_cells(a, at_ms, e))
            return false;
        if (a->row_count == b->query->limits.points_max)
            return refuse_steps(b, e);
        if (!share_take(b->store->memory, ROW_BYTES))
            return share_fail(b->store->memory, e);
        a->starts = xgrow(a->starts, &capacity, a->row_count + 1, sizeof *a->starts);
        a->starts[a->row_count++] = at_ms;
        at_ms = step_next(&a->step, a->zone, at_ms);
    }
    a->from_ms = a->starts[0];
    a->to_ms = at_ms < CIVIL_END_MS ? at_ms : CIVIL_END_MS;
    return is_of_cells(a, a->to_ms, e);
}

/* Make one row of whole cells. */
static void make_one(struct bound *b)
{
    struct answer *a = &b->answer;
    bound_widen(b);
    a->starts = xmalloc(sizeof *a->starts);
    a->starts[0] = a->from_ms;
    a->row_count = 1;
}

static bool make_rows(struct bound *b, struct err *e)
{
    struct answer *a = &b->answer;
    if (!a->has_step)
        make_one(b);
    else if (!make_steps(b, e))
        return false;
    if (!a->of_series) {
        if (!share_take(b->store->memory, a->row_count * (a->column_count * sizeof *a->columns +
                                                          a->sketch_count * sizeof *a->sketches)))
            return share_fail(b->store->memory, e);
        a->columns = xcalloc(a->row_count * a->column_count, sizeof *a->columns);
        a->sketches = xcalloc(a->row_count * a->sketch_count + 1, sizeof *a->sketches);
    }
    return true;
}

/* Rows of time that a scan fills. */
struct filling {
    struct answer *a;
    struct arena sketch_memory;
    uint64_t sketches_max;
    struct share *memory; /* of the question */
    uint64_t counted;     /* bytes of it that sketch_memory has */
};

static void add_to_row(void *context, uint32_t series, int64_t bucket_ms, const int64_t *values)
{
    const struct answer *a = ((struct filling *)context)->a;
    (void)series;
    answer_merge(a, &a->columns[answer_row(a, bucket_ms) * a->column_count], values);
}

static bool add_sketch_to_row(void *context, uint32_t series, int64_t bucket_ms, size_t sketch,
                              struct slice packed, struct err *e)
{
    struct filling *f = context;
    (void)series;
    return answer_merge_sketch(f->a, &f->a->sketches[answer_row(f->a, bucket_ms) * f->a->sketch_count],
                               &f->sketch_memory, sketch, packed, f->sketches_max, e) &&
           (share_fit(f->memory, &f->counted, arena_bytes(&f->sketch_memory)) || share_fail(f->memory, e));
}

/* Rank series by the store's cached ranking, or by a scan of the matching series. */
static bool rank_series(struct bound *b, struct top *top, const struct match *match,
                        const struct tiles *tiles, struct query_stats *stats, struct err *e)
{
    struct top_total total = {.memory = &top->sketch_memory};
    bool is_cached;
    if (!cached_ranking_series(b, &match->set, b->query->top, top, &total, stats, &is_cached, e) ||
        !(is_cached || bound_scan(b, &match->set, tiles, top_scan, top_scan_sketch, top, stats, e)))
        return false;
    if (!is_cached)
        cached_ranking_learn(b, &match->set, top);
    return top_finish(top, b->store, b->report, b->query->top, &b->answer, e);
}

/* Scan the matching series, if there are any, into the rows of the answer. */
static bool find_rows(struct bound *b, struct top *top, struct filling *filling, const struct match *match,
                      struct query_stats *stats, struct err *e)
{
    struct answer *a = &b->answer;
    struct tiles tiles = {0};
    stats->every_series = match->set.kind == SERIES_ALL;
    stats->series_matched = match->count;
    for (size_t i = 0; (stats->every_series || match->count > 0) && i < a->row_count; i++)
        tiles_add(&tiles, report_cell(a->report), a->starts[i],
                  i + 1 < a->row_count ? a->starts[i + 1] : a->to_ms);
    a->longest = stats->longest = tiles_longest(&tiles);
    bool good = a->of_series
                    ? rank_series(b, top, match, &tiles, stats, e)
                    : bound_scan(b, &match->set, &tiles, add_to_row, add_sketch_to_row, filling, stats, e);
    tiles_fini(&tiles);
    return good;
}

static bool row_is_empty(const struct answer *a, size_t row)
{
    int64_t any = 0;
    for (size_t i = 0; i < a->column_count; i++)
        any |= a->columns[row * a->column_count + i];
    return any == 0;
}

/* Before: the first row is empty, or a row of time that is before one with counts. */
static enum missed_where find_hole(const struct answer *a)
{
    bool was_empty = false;
    if (a->row_count == 0 || row_is_empty(a, 0))
        return MISSED_BEFORE;
    for (size_t row = 1; row < a->row_count && !a->of_series; row++) {
        bool is_empty = row_is_empty(a, row);
        if (was_empty && !is_empty)
            return MISSED_BEFORE;
        was_empty = is_empty;
    }
    return was_empty ? MISSED_AT_END : MISSED_NOWHERE;
}

static bool find_missed(struct bound *b, struct query_stats *stats, struct err *e)
{
    const struct query *q = b->query;
    const struct answer *a = &b->answer;
    const struct missed_answer of = {{a->from_ms, a->to_ms}, find_hole(a), !stats->every_series};
    if (!missed_find(b->store, b->report, &of, q->missed, q->now_ms, &stats->missed, e))
        return false;
    b->answer.missed = stats->missed;
    return true;
}

static bool write_answer(const struct bound *b, struct text *out, struct err *e)
{
    const struct answer *a = &b->answer;
    uint64_t most = b->query->limits.bytes_max;
    size_t before = out->len, rows;
    rows = answer_write(a, b->query->format, b->query->bars, most > 0 ? before + most : SIZE_MAX, out);
    if (rows == a->row_count)
        return true;
    const char *step = a->has_step ? hint_step(a, step_ms(&a->step), rows) : NULL;
    text_cut(out, before);
    if (a->of_series)
        return err_set(e, EX_UNAVAILABLE,
                       "the answer is longer than %" PRIu64 " bytes (query.response_max): ask for top %zu",
                       most, rows);
    return err_set(e, EX_UNAVAILABLE,
                   "the answer is longer than %" PRIu64
                   " bytes (query.response_max): ask for a shorter range%s%s",
                   most, step != NULL ? ", or by " : "", step != NULL ? step : "");
}

bool query_run(struct store *st, const struct query *q, struct text *out, struct query_stats *stats,
               struct err *e)
{
    struct bound b = {.query = q, .store = st};
    struct match match = {0};
    struct top top; /* owns the keys of the answer */
    if (q->newest > 0)
        return recent_run(st, q, out, stats, e);
    *stats = (struct query_stats){0};
    if (!bound_fill(&b, e))
        return false;
    stats->report = b.answer.report;
    stats->histograms = answer_histograms(&b.answer);
    struct filling filling = {.a = &b.answer, .sketches_max = q->limits.sketches_max, .memory = st->memory};
    arena_init(&filling.sketch_memory, SKETCHES_CHUNK_BYTES);
    top_init(&top, &b.answer, q->limits.sketches_max, st->memory);
    bool good = make_rows(&b, e) && match_series(&match, st, b.report, &b.wanted, e) &&
                find_rows(&b, &top, &filling, &match, stats, e) && find_missed(&b, stats, e) &&
                write_answer(&b, out, e);
    match_fini(&match);
    top_fini(&top);
    free(b.answer.starts);
    free(b.answer.columns);
    free(b.answer.sketches);
    free(b.answer.told);
    free(b.answer.keys);
    arena_fini(&filling.sketch_memory);
    return good;
}

static void explain_head(const struct query *q, const struct query_stats *stats, struct text *out)
{
    char name[STEP_NAME_BYTES];
    text_printf(out, "report %.*s, ", SLICE_ARGS(q->report));
    if (stats->every_series)
        text_puts(out, "every series");
    else
        text_printf(out, "%" PRIu64 " series matched", stats->series_matched);
    if (q->has_step)
        text_printf(out, ", by %s of %s", step_name(&q->step, name), q->zone->name);
    text_putc(out, '\n');
}

void query_explain(const struct query *q, const struct query_stats *stats, struct text *out)
{
    char from[CIVIL_ISO_BYTES], to[CIVIL_ISO_BYTES];
    explain_head(q, stats, out);
    for (size_t i = 0; i < stats->scan_count && i < QUERY_READS_MAX; i++) {
        const struct query_read *read = &stats->reads[i];
        text_printf(out, "  %-6s buckets %s to %s: %" PRIu64 " rows, %" PRIu64 " bytes\n",
                    span_name(read->resolution), civil_iso(read->from_ms, from), civil_iso(read->to_ms, to),
                    read->stats.rows, read->stats.bytes);
    }
    if (stats->scan_count > QUERY_READS_MAX)
        text_printf(out, "  and %zu scans more\n", stats->scan_count - QUERY_READS_MAX);
    text_printf(out, "read %" PRIu64 " rows, %" PRIu64 " bytes\n", stats->total.rows, stats->total.bytes);
}

void query_note(const struct query *q, const struct query_stats *stats, struct text *out)
{
    struct text note = {0};
    if (stats->report != NULL)
        estimate_note(stats->report, &note);
    if (note.len > 0)
        text_printf(out, "note: %s\n", note.ptr);
    text_clear(&note);
    if (stats->report != NULL)
        estimate_note_width(stats->report, stats->histograms, stats->longest, &note);
    if (note.len > 0)
        text_printf(out, "note: %s\n", note.ptr);
    text_clear(&note);
    missed_note(&stats->missed, q->report, &note);
    if (note.len > 0)
        text_printf(out, "note: %s\n", note.ptr);
    text_clear(&note);
    missed_note_others(&stats->missed, &note);
    if (note.len > 0)
        text_printf(out, "note: %s\n", note.ptr);
    text_fini(&note);
}
