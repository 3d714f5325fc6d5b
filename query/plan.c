#include "query/plan.h"

#include "base/check.h"

int64_t plan_ceil(enum span span, int64_t ms)
{
    int64_t start_ms = span_floor(span, ms);
    return start_ms == ms ? ms : span_next(span, start_ms);
}

/* Add a tile, or extend the last one if it has the same resolution. An empty tile is left out. */
static void add_tile(struct plan *p, enum span resolution, int64_t *from_ms, int64_t to_ms)
{
    if (to_ms <= *from_ms)
        return;
    if (p->tile_count > 0 && p->tiles[p->tile_count - 1].resolution == resolution) {
        p->tiles[p->tile_count - 1].to_ms = to_ms;
    } else {
        ASSERT(p->tile_count < PLAN_TILES_MAX);
        p->tiles[p->tile_count++] = (struct plan_tile){resolution, *from_ms, to_ms};
    }
    *from_ms = to_ms;
}

struct plan plan_steps(enum span step, int64_t from_ms, int64_t to_ms)
{
    struct plan p = {0};
    ASSERT(span_floor(step, from_ms) == from_ms && span_floor(step, to_ms) == to_ms);
    add_tile(&p, step, &from_ms, to_ms);
    return p;
}

/* The longest resolution whose shortest bucket fits. It saves the calendar's work for short ranges. */
static int longest_within(enum span finest, int64_t for_ms)
{
    static const int64_t shortest[SPAN_COUNT] = {SECOND_MS, MINUTE_MS, HOUR_MS, DAY_MS, 28 * (int64_t)DAY_MS};
    int span = SPAN_MONTH;
    while (span > (int)finest && shortest[span] > for_ms)
        span--;
    return span;
}

struct plan plan_sum(enum span finest, int64_t from_ms, int64_t to_ms)
{
    struct plan p = {0};
    int longest = longest_within(finest, to_ms - from_ms);
    ASSERT(span_floor(finest, from_ms) == from_ms && span_floor(finest, to_ms) == to_ms);
    for (int s = (int)finest; s < longest; s++) {
        int64_t next_ms = plan_ceil((enum span)(s + 1), from_ms), end_ms = span_floor((enum span)s, to_ms);
        add_tile(&p, (enum span)s, &from_ms, next_ms < end_ms ? next_ms : end_ms);
    }
    for (int s = longest; s >= (int)finest; s--)
        add_tile(&p, (enum span)s, &from_ms, span_floor((enum span)s, to_ms));
    ASSERT(from_ms >= to_ms);
    return p;
}
