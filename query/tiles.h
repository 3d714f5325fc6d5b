/* tiles.h - which scans answer a question of many rows of time, so that the fewest are needed.
 *
 *   rows     |   23 March   |   24 March   |   25 March   |       days of Berlin, from 23:00 to 23:00 UTC
 *   tiles    |1h| 23 hours  |1h| 23 hours  |1h| 23 hours  |       each row has those of plan_sum()
 *   scans    |                 72 hours                   |       one: tiles of one slot that touch are one
 *
 * Gaps : in a time zone tiles of two slots may take turns: a month of Berlin is one day by hours, 30 by
 *        days and so on. A scan reads over a gap that is no longer than what is before and behind it,
 *        which mostly costs no document more, and leaves out what it finds there. Of one slot there are
 *        at most TILES_SCANS_MAX scans; else there is one over all gaps.
 * Owner: the tiles are the struct's; scans point into them.
 */
#pragma once

#include "query/plan.h"

#include <stdbool.h>

#define TILES_SCANS_MAX 1000

/* Tiles of one slot, in order of time. */
struct tiles_of_slot {
    struct plan_tile *tiles;
    size_t count, capacity;
};

struct tiles {
    struct tiles_of_slot of[SPAN_COUNT];
};

/* From the first of its tiles to the last. */
struct tiles_scan {
    enum span slot;
    int64_t from_ms, to_ms;
    const struct plan_tile *tiles;
    size_t tile_count;
};

/* One more row, after the others, from and to starts of `finest`. What is before 1970 holds nothing: it has
 * no tile. */
void tiles_add(struct tiles *t, enum span finest, int64_t from_ms, int64_t to_ms);
void tiles_fini(struct tiles *t);

/* In order of time; the caller frees it. */
struct tiles_scan *tiles_scans(const struct tiles *t, size_t *count);
/* Of some span, the first slots that would be read, where they begin before `before_ms` of it: those are gone
 * (store_marks()). NULL: none. */
const struct plan_tile *tiles_find_gone(const struct tiles *t, const int64_t before_ms[SPAN_COUNT]);
/* Is the slot in a tile of the scan? */
bool tiles_has(const struct tiles_scan *scan, int64_t slot_ms);
