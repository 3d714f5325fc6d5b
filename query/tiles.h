/* tiles.h - merges the tiles of many rows of time into as few scans as possible. Queries and rankings add the
 * rows; bound_scan() runs the scans. Nothing here fails.
 *
 *   rows     |   23 March   |   24 March   |   25 March   |       days of Berlin, from 23:00 to 23:00 UTC
 *   tiles    |1h| 23 hours  |1h| 23 hours  |1h| 23 hours  |       each row has the tiles of plan_sum()
 *   scans    |                 72 hours                   |       one: touching tiles of one resolution merge
 *
 * Gaps : in a time zone, tiles of two resolutions may alternate: a month of Berlin is one day by hours, 30 by
 *        days and so on. A scan reads across a gap that is no longer than the tiles before and behind it, and
 *        ignores the counts in the gap. That mostly costs no additional document. A resolution has at most
 *        TILES_SCANS_MAX scans; if it needed more, it has one scan across all gaps.
 * Owner: the struct owns the tiles; scans point into them.
 */
#pragma once

#include "query/plan.h"

#include <stdbool.h>

#define TILES_SCANS_MAX 1000

/* Tiles of one resolution, in order of time. */
struct tiles_of_resolution {
    struct plan_tile *tiles;
    size_t count, capacity;
};

struct tiles {
    struct tiles_of_resolution of[SPAN_COUNT];
};

/* A scan from its first tile to its last one. */
struct tiles_scan {
    enum span resolution;
    int64_t from_ms, to_ms;
    const struct plan_tile *tiles;
    size_t tile_count;
};

/* Add a row behind the others, from and to starts of `finest`. Time before 1970 gets no tile. */
void tiles_add(struct tiles *t, enum span finest, int64_t from_ms, int64_t to_ms);
void tiles_fini(struct tiles *t);

/* The scans, in order of time; the caller frees the array. */
struct tiles_scan *tiles_scans(const struct tiles *t, size_t *count);
/* The first tile of a resolution, if it begins before the resolution's expiry watermark (store_watermarks()).
 * NULL: no tile has expired. */
const struct plan_tile *tiles_find_gone(const struct tiles *t, const int64_t before_ms[SPAN_COUNT]);
/* The longest resolution that has a tile; SPAN_SECOND: there is no tile. */
enum span tiles_longest(const struct tiles *t);
/* Is the time bucket in a tile of the scan? */
bool tiles_has(const struct tiles_scan *scan, int64_t bucket_ms);
