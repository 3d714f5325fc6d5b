#include "store/store.h"

#include "aggregate/keep.h"
#include "base/clock.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void store_close(struct store *st)
{
    if (st != NULL)
        st->ops->close(st);
}

const char *store_show(const char *url, char buf[STORE_URL_BYTES])
{
    const char *host = strstr(url, "://"), *at = strrchr(url, '@');
    if (host != NULL && at != NULL)
        snprintf(buf, STORE_URL_BYTES, "%.*s://***%s", (int)(host - url), url, at);
    else
        snprintf(buf, STORE_URL_BYTES, "%s", url);
    return buf;
}

static void check_batch(const struct store *st, const struct batch *batch)
{
    for (size_t i = 0; i < batch->range_count; i++) {
        const struct range *r = &batch->ranges[i];
        ASSERT(r->from >= 0 && r->from <= r->to && r->source[0] != '\0');
        ASSERT(batch->books[i].report_count == st->report_count);
    }
    for (size_t p = 0; p < batch->part_count; p++) {
        ASSERT(batch->parts[p]->report_count == st->report_count);
        for (size_t r = 0; r < st->report_count; r++)
            ASSERT(batch->parts[p]->reports[r].cells.stride == cells_stride(st->reports[r].column_count));
    }
}

struct claim {
    struct range *ranges;
    size_t count;
};

static bool take_position(void *context, const struct position *position)
{
    const struct claim *c = context;
    for (size_t i = 0; i < c->count; i++) {
        struct range *r = &c->ranges[i];
        if (strcmp(r->source, position->range.source) != 0 ||
            strcmp(r->partition, position->range.partition) != 0)
            continue;
        *r = position->range;
        r->from = r->to;
    }
    return true;
}

bool store_claim(struct store *st, struct range *ranges, size_t count, struct err *e)
{
    struct claim c = {ranges, count};
    for (size_t i = 0; i < count; i++)
        ranges[i].from = ranges[i].to = -1;
    return st->ops->claim != NULL ? st->ops->claim(st, ranges, count, e)
                                  : st->ops->positions(st, take_position, &c, e);
}

bool store_apply(struct store *st, const struct batch *batch, struct err *e)
{
    check_batch(st, batch);
    return st->ops->apply(st, batch, e);
}

bool store_hold(struct store *st, struct err *e)
{
    return st->ops->hold(st, e);
}

bool store_tidy(struct store *st, bool all, struct err *e)
{
    return st->ops->tidy(st, all, e);
}

bool store_expire(struct store *st, int64_t now_ms, bool trusts_clock, struct expired *expired, struct err *e)
{
    *expired = (struct expired){0};
    return st->ops->expire(st, now_ms, trusts_clock, expired, e);
}

bool store_marks(struct store *st, size_t report, struct marks *marks, struct err *e)
{
    ASSERT(report < st->report_count);
    return st->ops->marks(st, report, marks, e);
}

bool store_newest(struct store *st, size_t report, int64_t before_ms, struct newest *newest, struct err *e)
{
    ASSERT(report < st->report_count);
    *newest = (struct newest){.span = SPAN_HOUR, .start_ms = -1, .before_ms = -1};
    return st->ops->newest(st, report, before_ms, newest, e);
}

struct last_slot {
    int64_t before_ms, last_ms;
};

static void take_slot(void *context, uint32_t series, int64_t slot_ms, const int64_t *values)
{
    struct last_slot *l = context;
    (void)series, (void)values;
    if (slot_ms < l->before_ms && slot_ms > l->last_ms)
        l->last_ms = slot_ms;
}

/* Find the last time bucket with counts in [from_ms, to_ms) that begins before last->before_ms; -1: none. */
static bool find_last_slot(struct store *st, size_t report, enum span slot, int64_t from_ms, int64_t to_ms,
                           struct last_slot *last, struct err *e)
{
    struct scan_stats stats = {0};
    struct scan scan = {report, slot, from_ms, to_ms, {.kind = SERIES_ALL}, UINT64_MAX, 0};
    last->last_ms = -1;
    return from_ms >= to_ms || store_scan(st, &scan, take_slot, last, &stats, e);
}

/* It narrows the answer from months, which have every event, to hours. It stops at a resolution in which part
 * of the longer bucket has expired. */
bool store_newest_end(struct store *st, size_t report, const struct marks *marks, int64_t before_ms,
                      int64_t *end_ms, struct err *e)
{
    struct newest n;
    struct last_slot last = {.before_ms = before_ms};
    *end_ms = 0;
    if (!store_newest(st, report, before_ms, &n, e))
        return false;
    int64_t from_ms = n.start_ms > 0 ? span_floor(SPAN_MONTH, n.start_ms) : 0;
    int64_t to_ms = before_ms > 0 ? span_next(SPAN_MONTH, span_floor(SPAN_MONTH, before_ms - 1)) : 0;
    if (from_ms < marks->before_ms[SPAN_MONTH])
        from_ms = marks->before_ms[SPAN_MONTH];
    for (int slot = SPAN_MONTH; slot >= SPAN_HOUR && marks->before_ms[slot] <= from_ms; slot--) {
        if (!find_last_slot(st, report, (enum span)slot, from_ms, to_ms, &last, e))
            return false;
        if (last.last_ms < 0)
            break;
        from_ms = last.last_ms;
        *end_ms = to_ms = span_next((enum span)slot, from_ms);
    }
    return true;
}

bool store_lower_marks(const struct store *st, const struct report *r, int64_t safe_ms, int64_t now_ms,
                       struct marks *marks)
{
    int64_t longer_ms = 0;
    bool moved = false;
    for (int s = SPAN_MONTH; s >= (int)report_cell(r); s--) {
        enum span by = st->ops->goes_by != NULL ? st->ops->goes_by(r, (enum span)s) : (enum span)s;
        int64_t to_ms = span_floor(by, safe_ms), keep_ms = keep_from(r, (enum span)s, now_ms);
        to_ms = to_ms < safe_ms ? span_next(by, to_ms) : to_ms;
        to_ms = to_ms < keep_ms ? keep_ms : to_ms;
        to_ms = to_ms < longer_ms ? longer_ms : to_ms;
        if (to_ms < marks->before_ms[s]) {
            marks->before_ms[s] = to_ms;
            moved = true;
        }
        longer_ms = marks->before_ms[s];
    }
    return moved;
}

bool store_move_back(struct store *st, size_t report, int64_t now_ms, struct err *e)
{
    ASSERT(report < st->report_count);
    return st->ops->move_back(st, report, now_ms, e);
}

bool store_check_mark(const struct scan *scan, const struct marks *marks, struct err *e)
{
    char iso[CIVIL_ISO_BYTES];
    int64_t before_ms = marks->before_ms[scan->slot];
    return scan->from_ms >= before_ms || scan->from_ms == scan->to_ms ||
           err_set_retryable(e, EX_UNAVAILABLE, "%ss before %s were let go just now: ask again",
                             span_name(scan->slot), civil_iso(before_ms, iso));
}

bool store_move_marks(const struct store *st, const struct report *r, const int64_t keep_ms[SPAN_COUNT],
                      int64_t now_ms, struct marks *marks)
{
    bool moved = false;
    for (int s = (int)report_cell(r); s < SPAN_COUNT; s++) {
        int64_t from_ms = keep_edge(keep_ms[s], (enum span)s, now_ms);
        if (st->ops->goes_by != NULL)
            from_ms = span_floor(st->ops->goes_by(r, (enum span)s), from_ms);
        if (from_ms <= marks->before_ms[s])
            continue;
        marks->before_ms[s] = from_ms;
        moved = true;
    }
    return moved;
}

static void check_scan(const struct store *st, const struct scan *scan)
{
    ASSERT(scan->report < st->report_count);
    ASSERT(scan->slot >= report_cell(&st->reports[scan->report]) && scan->slot < SPAN_COUNT);
    ASSERT(scan->from_ms >= 0 && scan->from_ms <= scan->to_ms && scan->to_ms <= CIVIL_END_MS);
    ASSERT(span_floor(scan->slot, scan->from_ms) == scan->from_ms);
    ASSERT(span_floor(scan->slot, scan->to_ms) == scan->to_ms);
}

bool store_scan(struct store *st, const struct scan *scan, scan_fn *fn, void *context,
                struct scan_stats *stats, struct err *e)
{
    check_scan(st, scan);
    return st->ops->scan(st, scan, fn, context, stats, e);
}

enum span store_copy(const struct store *st, size_t report, enum span slot, size_t n)
{
    ASSERT(report < st->report_count);
    return st->ops->copy == NULL ? SPAN_COUNT : st->ops->copy(st, report, slot, n);
}

bool store_scan_copy(struct store *st, const struct scan *scan, size_t n, scan_fn *fn, void *context,
                     struct scan_stats *stats, struct err *e)
{
    check_scan(st, scan);
    return st->ops->scan_copy(st, scan, n, fn, context, stats, e);
}

bool store_top(struct store *st, const struct store_top *what, scan_fn *fn, void *context, int64_t *total,
               struct scan_stats *stats, bool *found, struct err *e)
{
    ASSERT(what->report < st->report_count && what->measure < st->reports[what->report].measure_count);
    ASSERT(what->from_ms >= 0 && what->from_ms < what->to_ms && what->to_ms <= CIVIL_END_MS);
    ASSERT(span_floor(what->span, what->from_ms) == what->from_ms);
    ASSERT(what->limit == 0 || span_next(what->span, what->from_ms) == what->to_ms);
    *found = false;
    return st->ops->top == NULL || st->ops->top(st, what, fn, context, total, stats, found, e);
}

bool store_series_find(struct store *st, size_t report, struct slice key, uint32_t *series, bool *found,
                       struct err *e)
{
    ASSERT(report < st->report_count);
    return st->ops->series_find(st, report, key, series, found, e);
}

bool store_series_key(struct store *st, size_t report, uint32_t series, struct text *key, struct err *e)
{
    ASSERT(report < st->report_count);
    return st->ops->series_key(st, report, series, key, e);
}

bool store_series_each(struct store *st, size_t report, series_fn *fn, void *context, struct err *e)
{
    ASSERT(report < st->report_count);
    return st->ops->series_each(st, report, fn, context, e);
}

bool store_series_like(struct store *st, size_t report, const struct slice *values, series_fn *fn,
                       void *context, struct err *e)
{
    ASSERT(report < st->report_count);
    return st->ops->series_like != NULL ? st->ops->series_like(st, report, values, fn, context, e)
                                        : st->ops->series_each(st, report, fn, context, e);
}

bool store_values(struct store *st, size_t report, size_t dimension, struct slice prefix, size_t limit,
                  value_fn *fn, void *context, struct err *e)
{
    ASSERT(report < st->report_count && dimension < st->reports[report].dimension_count && limit > 0);
    return st->ops->values(st, report, dimension, prefix, limit, fn, context, e);
}

bool store_meet(struct store *st, struct err *e)
{
    return st->ops->meet == NULL || st->ops->meet(st, e);
}

bool store_positions(struct store *st, position_fn *fn, void *context, struct err *e)
{
    return st->ops->positions(st, fn, context, e);
}

bool store_books(struct store *st, book_fn *fn, void *context, struct err *e)
{
    return st->ops->books(st, fn, context, e);
}

bool store_check(struct store *st, check_fn *problem, void *context, struct err *e)
{
    return st->ops->check == NULL || st->ops->check(st, problem, context, e);
}

bool store_roll(struct store *st, const struct store_roll *what, struct err *e)
{
    return st->ops->roll == NULL || st->ops->roll(st, what, e);
}

bool store_roll_has_time(const struct store_roll *what)
{
    return what->until_ms == 0 || clock_mono_ms(&clock_system) < what->until_ms;
}

bool store_rank(struct store *st, const struct store_roll *what, struct err *e)
{
    return st->ops->rank == NULL || st->ops->rank(st, what, e);
}

bool store_has_jobs(const struct store *st)
{
    return st->ops->jobs != NULL;
}

bool store_jobs(struct store *st, job_fn *fn, void *context, struct err *e)
{
    return st->ops->jobs == NULL || st->ops->jobs(st, fn, context, e);
}

static void add_late(const struct report *r, const struct marks *marks, const struct cell *c,
                     int64_t late[SPAN_COUNT])
{
    int64_t at_ms = c->time * report_cell_ms(r);
    for (int s = (int)report_cell(r); s < SPAN_MONTH && at_ms < marks->before_ms[s]; s++)
        late[s] = value_add(late[s], store_cell_count(r, c));
}

bool store_late(const struct store *st, size_t report, const struct marks *marks, const struct batch *batch,
                int64_t late[SPAN_COUNT])
{
    const struct report *r = &st->reports[report];
    memset(late, 0, SPAN_COUNT * sizeof *late);
    if (marks->before_ms[report_cell(r)] == 0) /* then the watermarks of longer resolutions are 0, too */
        return false;
    for (size_t p = 0; p < batch->part_count; p++) {
        const struct cells *cells = &batch->parts[p]->reports[report].cells;
        for (size_t i = 0; i < cells->count; i++)
            add_late(r, marks, cells_at(cells, i), late);
    }
    return late[report_cell(r)] > 0;
}

const char *store_late_entry(enum span span, char buf[STORE_ENTRY_BYTES])
{
    snprintf(buf, STORE_ENTRY_BYTES, "late.%s", span_name(span));
    return buf;
}

const char *store_gap_entry(int64_t from, char buf[STORE_ENTRY_BYTES])
{
    snprintf(buf, STORE_ENTRY_BYTES, "gap.%" PRId64, from);
    return buf;
}

const char *store_latest_entry(const struct range *r, char buf[STORE_ENTRY_BYTES])
{
    snprintf(buf, STORE_ENTRY_BYTES, "latest.%" PRId64 ".%" PRId64, r->latest_from, r->latest_ms);
    return buf;
}

int store_find_report(const struct store *st, struct slice name)
{
    for (size_t i = 0; i < st->report_count; i++) {
        if (slice_is(name, st->reports[i].name))
            return (int)i;
    }
    return -1;
}
