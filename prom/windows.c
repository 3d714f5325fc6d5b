#include "prom/windows.h"

#include "base/check.h"
#include "base/mem.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define TILES_MAX 64 /* scans; more would cost more than reading time buckets in vain */

static int64_t cell_ms(const struct windows *w)
{
    return w->ask.cell == SPAN_SECOND ? SECOND_MS : MINUTE_MS;
}

static int64_t floor_to_cell(const struct windows *w, int64_t ms)
{
    int64_t within = ms < 0 ? 0 : ms > CIVIL_END_MS ? CIVIL_END_MS : ms;
    return within - within % cell_ms(w);
}

static void bounds(const struct windows *w, size_t window, int64_t *from_ms, int64_t *to_ms)
{
    int64_t at_ms = w->ask.at_ms + (int64_t)window * w->ask.step_ms;
    int64_t length_ms = w->ask.length_ms < cell_ms(w) ? cell_ms(w) : w->ask.length_ms;
    *to_ms = floor_to_cell(w, at_ms);
    *from_ms = floor_to_cell(w, at_ms - length_ms);
}

/* Cuts at every start and end of a window; each of the two is in order already. */
static void cut(struct windows *w)
{
    size_t starts = 0, ends = 0, edges = 0;
    w->edges = xmalloc(2 * w->ask.count * sizeof *w->edges);
    while (ends < w->ask.count) {
        int64_t from_ms = INT64_MAX, to_ms, other_ms;
        if (starts < w->ask.count)
            bounds(w, starts, &from_ms, &other_ms);
        bounds(w, ends, &other_ms, &to_ms);
        int64_t edge_ms = from_ms <= to_ms ? from_ms : to_ms;
        starts += from_ms <= to_ms;
        ends += from_ms > to_ms;
        if (edges == 0 || w->edges[edges - 1] != edge_ms)
            w->edges[edges++] = edge_ms;
    }
    w->piece_count = edges - 1;
}

/* Cuts windows into cells; a gap between windows is one piece. */
static bool cut_into_cells(struct windows *w, struct err *e)
{
    size_t edges = 0, capacity = 0;
    for (size_t i = 0; i < w->ask.count; i++) {
        int64_t from_ms, to_ms;
        bounds(w, i, &from_ms, &to_ms);
        int64_t at_ms = edges > 0 && w->edges[edges - 1] > from_ms ? w->edges[edges - 1] : from_ms;
        for (; at_ms <= to_ms; at_ms += cell_ms(w)) {
            if (edges > 0 && w->edges[edges - 1] == at_ms)
                continue;
            if (edges > WINDOWS_PIECES_MAX)
                return err_set(
                    e, EX_UNAVAILABLE,
                    "the question looks at more than %d %ss one by one: ask for a shorter range, or "
                    "for sum_over_time of a count or sum, which reads hours and days at once",
                    WINDOWS_PIECES_MAX, span_name(w->ask.cell));
            w->edges = xgrow(w->edges, &capacity, edges + 1, sizeof *w->edges);
            w->edges[edges++] = at_ms;
        }
    }
    w->piece_count = edges - 1;
    return true;
}

static void place_windows(struct windows *w)
{
    size_t first = 0, end = 0, covered = 0;
    w->list = xmalloc(w->ask.count * sizeof *w->list);
    w->is_covered = xcalloc(w->piece_count, sizeof *w->is_covered);
    for (size_t i = 0; i < w->ask.count; i++) {
        int64_t from_ms, to_ms;
        bounds(w, i, &from_ms, &to_ms);
        while (w->edges[first] < from_ms)
            first++;
        while (w->edges[end] < to_ms)
            end++;
        w->list[i] = (struct window){first, end};
        for (covered = covered > first ? covered : first; covered < end; covered++)
            w->is_covered[covered] = true;
    }
}

static void add_tile(struct windows *w, struct plan_tile tile)
{
    struct plan_tile *last = w->tile_count > 0 ? &w->tiles[w->tile_count - 1] : NULL;
    if (last != NULL && last->resolution == tile.resolution && last->to_ms == tile.from_ms) {
        last->to_ms = tile.to_ms;
        return;
    }
    w->tiles = xgrow(w->tiles, &w->tile_capacity, w->tile_count + 1, sizeof *w->tiles);
    w->tiles[w->tile_count++] = tile;
}

/* Replaces the tiles by one over all, of the longest time buckets that fit between the edges. */
static void add_widest_tile(struct windows *w)
{
    int span = w->ask.by_cell ? (int)w->ask.cell : SPAN_MONTH;
    for (size_t i = 0; i <= w->piece_count; i++) {
        while (span > (int)w->ask.cell && span_floor((enum span)span, w->edges[i]) != w->edges[i])
            span--;
    }
    w->tile_count = 0;
    add_tile(w, (struct plan_tile){(enum span)span, w->edges[0], w->edges[w->piece_count]});
}

static void plan_pieces(struct windows *w)
{
    for (size_t i = 0; i < w->piece_count; i++) {
        if (!w->is_covered[i])
            continue;
        struct plan plan = w->ask.by_cell ? plan_steps(w->ask.cell, w->edges[i], w->edges[i + 1])
                                          : plan_sum(w->ask.cell, w->edges[i], w->edges[i + 1]);
        for (size_t t = 0; t < plan.tile_count; t++)
            add_tile(w, plan.tiles[t]);
    }
    if (w->tile_count > TILES_MAX)
        add_widest_tile(w);
}

bool windows_init(struct windows *w, const struct window_ask *ask, struct err *e)
{
    ASSERT(ask->count > 0 && ask->length_ms > 0 && ask->step_ms >= 0);
    *w = (struct windows){.ask = *ask};
    if (!ask->by_cell)
        cut(w);
    else if (!cut_into_cells(w, e))
        return false;
    place_windows(w);
    plan_pieces(w);
    return true;
}

void windows_fini(struct windows *w)
{
    free(w->list);
    free(w->edges);
    free(w->is_covered);
    free(w->tiles);
    *w = (struct windows){0};
}

enum span windows_span(const struct windows *w, size_t piece)
{
    for (int span = SPAN_MONTH; span > (int)w->ask.cell; span--) {
        if (span_floor((enum span)span, w->edges[piece]) == w->edges[piece] &&
            span_next((enum span)span, w->edges[piece]) == w->edges[piece + 1])
            return (enum span)span;
    }
    return SPAN_COUNT;
}

void windows_leave_out(struct windows *w, size_t piece)
{
    w->is_covered[piece] = false;
}

void windows_trim(struct windows *w)
{
    size_t first = 0, end = w->piece_count, kept = 0;
    while (first < end && !w->is_covered[first])
        first++;
    while (end > first && !w->is_covered[end - 1])
        end--;
    for (size_t i = 0; i < w->tile_count; i++) {
        struct plan_tile tile = w->tiles[i];
        if (tile.from_ms < w->edges[first])
            tile.from_ms = w->edges[first];
        if (tile.to_ms > w->edges[end])
            tile.to_ms = w->edges[end];
        if (tile.from_ms < tile.to_ms)
            w->tiles[kept++] = tile;
    }
    w->tile_count = kept;
}

bool windows_find(const struct windows *w, int64_t bucket_ms, size_t *piece)
{
    size_t low = 0, high = w->piece_count;
    if (high == 0 || bucket_ms < w->edges[0] || bucket_ms >= w->edges[high])
        return false;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (w->edges[middle] <= bucket_ms)
            low = middle;
        else
            high = middle;
    }
    *piece = low;
    return w->is_covered[low];
}

static int64_t length_ms(const struct windows *w, size_t window)
{
    const struct window *found = &w->list[window];
    return w->edges[found->end] - w->edges[found->first];
}

size_t windows_cells(const struct windows *w, size_t window)
{
    return (size_t)(length_ms(w, window) / cell_ms(w));
}

double windows_seconds(const struct windows *w, size_t window)
{
    return (double)length_ms(w, window) / SECOND_MS;
}
