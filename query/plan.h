/* plan.h - chooses the resolutions in which a range is read, so that the fewest rows are read. tiles.h and
 * cached_ranking.h use it. Nothing here fails.
 *
 *   10:58   11:00              00:00           1 June        1 July   2 July      01:00  01:01
 *     | minutes |     hours      |    days       |   months    | days   |   hours   | min. |
 *
 * A step reads the time buckets of its own length. A sum over any range is tiled: minutes up to the next
 * hour, hours up to the next day, and so on; after the months down again. In a report that counts seconds,
 * the tiles begin and end with seconds.
 */
#pragma once

#include "base/civil.h"

#include <stddef.h>

#define PLAN_TILES_MAX (2 * SPAN_COUNT - 1)

struct plan_tile {
    enum span resolution;   /* resolution to read */
    int64_t from_ms, to_ms; /* at starts of time buckets; not empty */
};

struct plan {
    size_t tile_count;
    struct plan_tile tiles[PLAN_TILES_MAX]; /* in order of time, without gaps */
};

/* Pre: the range begins and ends at starts of `step`s. */
struct plan plan_steps(enum span step, int64_t from_ms, int64_t to_ms);
/* Pre: the range begins and ends at starts of `finest`s. That is the shortest resolution read. */
struct plan plan_sum(enum span finest, int64_t from_ms, int64_t to_ms);
/* The start of the first bucket that begins at or after `ms`. */
int64_t plan_ceil(enum span span, int64_t ms);
