#include "store/common/watermarks.h"

#include "aggregate/keep.h"
#include "store/writer.h"

#include <string.h>

struct last_bucket {
    int64_t before_ms, last_ms;
};

static void take_bucket(void *context, uint32_t series, int64_t bucket_ms, const int64_t *values)
{
    struct last_bucket *l = context;
    (void)series, (void)values;
    if (bucket_ms < l->before_ms && bucket_ms > l->last_ms)
        l->last_ms = bucket_ms;
}

/* Find the last time bucket with counts in [from_ms, to_ms) that begins before last->before_ms; -1: none. */
static bool find_last_bucket(struct store *st, size_t report, enum span resolution, int64_t from_ms,
                             int64_t to_ms, struct last_bucket *last, struct err *e)
{
    struct scan_stats stats = {0};
    struct scan scan = {report, resolution, from_ms, to_ms, {.kind = SERIES_ALL}, UINT64_MAX, 0, NULL};
    last->last_ms = -1;
    return from_ms >= to_ms || store_scan(st, &scan, take_bucket, last, &stats, e);
}

/* It narrows the answer from months, which have every event, to hours. It stops at a resolution in which part
 * of the longer bucket has expired. */
bool store_newest_end(struct store *st, size_t report, const struct watermarks *watermarks, int64_t before_ms,
                      int64_t *end_ms, struct err *e)
{
    struct newest n;
    struct last_bucket last = {.before_ms = before_ms};
    *end_ms = 0;
    if (!store_newest(st, report, before_ms, &n, e))
        return false;
    int64_t from_ms = n.start_ms > 0 ? span_floor(SPAN_MONTH, n.start_ms) : 0;
    int64_t to_ms = before_ms > 0 ? span_next(SPAN_MONTH, span_floor(SPAN_MONTH, before_ms - 1)) : 0;
    if (from_ms < watermarks->before_ms[SPAN_MONTH])
        from_ms = watermarks->before_ms[SPAN_MONTH];
    for (int resolution = SPAN_MONTH; resolution >= SPAN_HOUR && watermarks->before_ms[resolution] <= from_ms;
         resolution--) {
        if (!find_last_bucket(st, report, (enum span)resolution, from_ms, to_ms, &last, e))
            return false;
        if (last.last_ms < 0)
            break;
        from_ms = last.last_ms;
        *end_ms = to_ms = span_next((enum span)resolution, from_ms);
    }
    return true;
}

bool store_lower_watermarks(const struct store *st, const struct report *r, int64_t safe_ms, int64_t now_ms,
                            struct watermarks *watermarks)
{
    int64_t longer_ms = 0;
    bool moved = false;
    for (int s = SPAN_MONTH; s >= (int)report_cell(r); s--) {
        enum span by = st->reader->goes_by != NULL ? st->reader->goes_by(r, (enum span)s) : (enum span)s;
        int64_t to_ms = span_floor(by, safe_ms), keep_ms = keep_from(r, (enum span)s, now_ms);
        to_ms = to_ms < safe_ms ? span_next(by, to_ms) : to_ms;
        to_ms = to_ms < keep_ms ? keep_ms : to_ms;
        to_ms = to_ms < longer_ms ? longer_ms : to_ms;
        if (to_ms < watermarks->before_ms[s]) {
            watermarks->before_ms[s] = to_ms;
            moved = true;
        }
        longer_ms = watermarks->before_ms[s];
    }
    return moved;
}

static void add_late(const struct report *r, const struct watermarks *watermarks, const struct cell *c,
                     int64_t late[SPAN_COUNT])
{
    int64_t at_ms = c->time * report_cell_ms(r);
    for (int s = (int)report_cell(r); s < SPAN_MONTH && at_ms < watermarks->before_ms[s]; s++)
        late[s] = value_add(late[s], store_cell_count(r, c));
}

bool store_late(const struct store *st, size_t report, const struct watermarks *watermarks,
                const struct batch *batch, int64_t late[SPAN_COUNT])
{
    ASSERT(report < st->report_count);
    const struct report *r = &st->reports[report];
    memset(late, 0, SPAN_COUNT * sizeof *late);
    if (watermarks->before_ms[report_cell(r)] == 0) /* then the watermarks of longer resolutions are 0, too */
        return false;
    for (size_t p = 0; p < batch->part_count; p++) {
        const struct cells *cells = &batch->parts[p]->reports[report].cells;
        for (size_t i = 0; i < cells->count; i++)
            add_late(r, watermarks, cells_at(cells, i), late);
    }
    return late[report_cell(r)] > 0;
}

bool store_check_watermark(const struct scan *scan, const struct watermarks *watermarks, struct err *e)
{
    char iso[CIVIL_ISO_BYTES];
    int64_t before_ms = watermarks->before_ms[scan->resolution];
    return scan->from_ms >= before_ms || scan->from_ms == scan->to_ms ||
           err_set_retryable(e, EX_UNAVAILABLE, "%ss before %s have just expired: ask again",
                             span_name(scan->resolution), civil_iso(before_ms, iso));
}

bool store_move_watermarks(const struct store *st, const struct report *r, const int64_t keep_ms[SPAN_COUNT],
                           int64_t now_ms, struct watermarks *watermarks)
{
    bool moved = false;
    for (int s = (int)report_cell(r); s < SPAN_COUNT; s++) {
        int64_t from_ms = keep_edge(keep_ms[s], (enum span)s, now_ms);
        if (st->reader->goes_by != NULL)
            from_ms = span_floor(st->reader->goes_by(r, (enum span)s), from_ms);
        if (from_ms <= watermarks->before_ms[s])
            continue;
        watermarks->before_ms[s] = from_ms;
        moved = true;
    }
    return moved;
}
