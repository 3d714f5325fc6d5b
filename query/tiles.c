#include "query/tiles.h"

#include "base/mem.h"
#include "base/order.h"

#include <stdlib.h>

static void add_tile(struct tiles_of_resolution *of, const struct plan_tile *tile)
{
    if (of->count > 0 && of->tiles[of->count - 1].to_ms == tile->from_ms) {
        of->tiles[of->count - 1].to_ms = tile->to_ms;
        return;
    }
    of->tiles = xgrow(of->tiles, &of->capacity, of->count + 1, sizeof *of->tiles);
    of->tiles[of->count++] = *tile;
}

void tiles_add(struct tiles *t, enum span finest, int64_t from_ms, int64_t to_ms)
{
    from_ms = from_ms > 0 ? from_ms : 0;
    if (from_ms >= to_ms)
        return;
    struct plan p = plan_sum(finest, from_ms, to_ms);
    for (size_t i = 0; i < p.tile_count; i++)
        add_tile(&t->of[p.tiles[i].resolution], &p.tiles[i]);
}

void tiles_fini(struct tiles *t)
{
    for (int s = 0; s < SPAN_COUNT; s++)
        free(t->of[s].tiles);
    *t = (struct tiles){0};
}

/* Is the gap between two tiles no longer than either tile? */
static bool is_small_gap(const struct plan_tile *before, const struct plan_tile *behind)
{
    int64_t gap_ms = behind->from_ms - before->to_ms;
    return gap_ms <= before->to_ms - before->from_ms && gap_ms <= behind->to_ms - behind->from_ms;
}

static size_t count_scans(const struct tiles_of_resolution *of)
{
    size_t count = of->count > 0;
    for (size_t i = 1; i < of->count; i++)
        count += !is_small_gap(&of->tiles[i - 1], &of->tiles[i]);
    return count;
}

/* Fill `scans` from the tiles of one resolution. Returns the number of scans. */
static size_t make_scans(const struct tiles_of_resolution *of, struct tiles_scan *scans)
{
    bool is_one = count_scans(of) > TILES_SCANS_MAX;
    size_t count = 0;
    for (size_t i = 0; i < of->count; i++) {
        const struct plan_tile *tile = &of->tiles[i];
        if (i == 0 || (!is_one && !is_small_gap(tile - 1, tile)))
            scans[count++] = (struct tiles_scan){tile->resolution, tile->from_ms, tile->to_ms, tile, 0};
        scans[count - 1].to_ms = tile->to_ms;
        scans[count - 1].tile_count++;
    }
    return count;
}

static int compare_scans(const void *left, const void *right)
{
    const struct tiles_scan *a = left, *b = right;
    int order = order_int64(a->from_ms, b->from_ms);
    return order != 0 ? order : order_int64(a->resolution, b->resolution);
}

struct tiles_scan *tiles_scans(const struct tiles *t, size_t *count)
{
    size_t most = 0;
    for (int s = 0; s < SPAN_COUNT; s++)
        most += count_scans(&t->of[s]);
    struct tiles_scan *scans = xcalloc(most + 1, sizeof *scans);
    *count = 0;
    for (int s = 0; s < SPAN_COUNT; s++)
        *count += make_scans(&t->of[s], scans + *count);
    qsort(scans, *count, sizeof *scans, compare_scans);
    return scans;
}

const struct plan_tile *tiles_find_gone(const struct tiles *t, const int64_t before_ms[SPAN_COUNT])
{
    for (int s = 0; s < SPAN_COUNT; s++) {
        const struct tiles_of_resolution *of = &t->of[s];
        if (of->count > 0 && of->tiles[0].from_ms < before_ms[s])
            return &of->tiles[0];
    }
    return NULL;
}

enum span tiles_longest(const struct tiles *t)
{
    enum span longest = SPAN_SECOND;
    for (int s = 0; s < SPAN_COUNT; s++)
        longest = t->of[s].count > 0 ? (enum span)s : longest;
    return longest;
}

bool tiles_has(const struct tiles_scan *scan, int64_t bucket_ms)
{
    size_t first = 0, end = scan->tile_count;
    while (end - first > 1) {
        size_t middle = first + (end - first) / 2;
        if (scan->tiles[middle].from_ms <= bucket_ms)
            first = middle;
        else
            end = middle;
    }
    return bucket_ms >= scan->tiles[first].from_ms && bucket_ms < scan->tiles[first].to_ms;
}
