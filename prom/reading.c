#include "prom/reading.h"

#include "base/mem.h"
#include "prom/native.h"
#include "query/hint.h"

#include <stdlib.h>

/* Makes the sketches of the next row. */
static void add_sketches(struct reading *rd)
{
    const size_t pieces = rd->windows.piece_count, known = rd->row_count * pieces;
    rd->sketches = xgrow(rd->sketches, &rd->sketch_capacity, known + pieces, sizeof *rd->sketches);
    memset(rd->sketches + known, 0, pieces * sizeof *rd->sketches);
}

/* Takes the memory of a new row, and of slots up to its own. */
static bool hold_row(struct reading *rd, size_t slot)
{
    const size_t per_piece = rd->width * sizeof *rd->columns + (rd->has_sketches ? sizeof *rd->sketches : 0);
    uint64_t bytes = rd->windows.piece_count * per_piece + sizeof *rd->series;
    if (slot >= rd->row_slots)
        bytes += (slot + 1 - rd->row_slots) * sizeof *rd->rows;
    if (!share_take(rd->fetch->budget->memory, bytes))
        return false;
    rd->held += bytes;
    return true;
}

bool reading_row(struct reading *rd, uint32_t series, size_t *row)
{
    size_t slot = series;
    if (rd->folds && !fold_find(&rd->fold, series, &slot))
        return false;
    const bool is_new = slot >= rd->row_slots || rd->rows[slot] == 0;
    if (is_new && !hold_row(rd, slot)) {
        rd->is_too_much = rd->is_refused = true;
        return false;
    }
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
        if (rd->has_sketches)
            add_sketches(rd);
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
    if (rd->is_too_much || !windows_find(&rd->windows, bucket_ms, &piece) || !reading_row(rd, series, &row))
        return;
    int64_t *columns = &rd->columns[(row * rd->windows.piece_count + piece) * rd->width];
    measure_merge(rd->measure, columns, values + rd->measure->column);
    if (rd->presence != NULL)
        measure_merge(rd->presence, columns + rd->width - 1, values + rd->presence->column);
}

/* A sketch_fn, behind add_bucket() for the same bucket. */
static bool add_sketch(void *context, uint32_t series, int64_t bucket_ms, size_t sketch, struct slice packed,
                       struct err *e)
{
    struct reading *rd = context;
    const struct report *r = &rd->fetch->store->reports[rd->report];
    size_t piece, row;
    if (r->sketched[sketch] != rd->metric->measure || rd->is_too_much ||
        !windows_find(&rd->windows, bucket_ms, &piece) || !reading_row(rd, series, &row))
        return true;
    if (!measure_merge_sketch(reading_whole(rd), rd->longest,
                              &rd->sketches[row * rd->windows.piece_count + piece], &rd->sketch_memory,
                              packed))
        return err_set(e, EX_DATAERR,
                       "the store is damaged: %s does not decode; check it by `tallyd verify --store-only`",
                       rd->metric->name);
    if (!share_fit(rd->fetch->budget->memory, &rd->sketches_held, arena_bytes(&rd->sketch_memory)))
        return share_fail(rd->fetch->budget->memory, e);
    return native_reading(rd->fetch->natives, arena_bytes(&rd->sketch_memory), rd->metric->name, e);
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

/* The measures that a scan reads, a bit for each. */
static uint32_t measures_of(const struct metric *m)
{
    return (uint32_t)1 << m->measure | (m->has_presence ? (uint32_t)1 << m->presence : 0);
}

bool reading_fits(const struct reading *rd, struct err *e)
{
    struct budget *b = rd->fetch->budget;
    if (!rd->is_too_much)
        return true;
    b->is_full = true;
    if (rd->is_refused)
        return share_fail(b->memory, e);
    return err_set(
        e, EX_UNAVAILABLE,
        "the question reads more than %zu values (series by stretches of time) at once: select fewer "
        "series, a shorter range or a longer step, or put sum by (…) right around the selector or "
        "its function",
        rd->columns_max / rd->width);
}

bool reading_scan(struct reading *rd, const struct series_set *set, struct err *e)
{
    struct budget *b = rd->fetch->budget;
    if (!check_watermarks(rd, e))
        return false;
    rd->longest = SPAN_SECOND;
    for (size_t i = 0; i < rd->windows.tile_count; i++) {
        if (rd->windows.tiles[i].resolution > rd->longest)
            rd->longest = rd->windows.tiles[i].resolution;
    }
    for (size_t i = 0; i < rd->windows.tile_count; i++) {
        const struct plan_tile *tile = &rd->windows.tiles[i];
        struct scan_stats stats = {0};
        struct scan scan = {.report = rd->report,
                            .resolution = tile->resolution,
                            .from_ms = tile->from_ms,
                            .to_ms = tile->to_ms,
                            .series = *set,
                            .rows_max = b->left[BUDGET_ROWS],
                            .measures = measures_of(rd->metric),
                            .sketch = rd->has_sketches ? add_sketch : NULL};
        if (!store_scan(rd->fetch->store, &scan, add_bucket, rd, &stats, e))
            return e->code == EX_UNAVAILABLE && !e->retryable ? budget_fail(b, BUDGET_ROWS, e) : false;
        if (!budget_take(b, BUDGET_ROWS, stats.rows, e))
            return false;
        if (!reading_fits(rd, e))
            return false;
    }
    return true;
}

void reading_fini(struct reading *rd)
{
    budget_drop(rd->fetch->budget, rd->held + rd->sketches_held);
    windows_fini(&rd->windows);
    fold_fini(&rd->fold);
    free(rd->rows);
    free(rd->series);
    free(rd->columns);
    free(rd->sketches);
    if (rd->has_sketches)
        arena_fini(&rd->sketch_memory);
    rd->fetch->natives->reading_bytes = 0;
}
