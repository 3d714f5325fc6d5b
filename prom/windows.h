/* windows.h - the stretches of time that the steps of a question look at, cut where any of them begins or
 * ends, so that one pass over the store serves all steps.
 *
 *   windows     |-------|            step 0: 5 minutes before 10:07
 *                    |-------|       step 1: 5 minutes before 10:10
 *   pieces      |----|--|----|       each slot of the store belongs to one
 *   tiles       |   minutes  |       what is read: the longest slots that fit the pieces (plan.h)
 *
 * Times: a window of length L at t is the whole cells of (t-L, t]: both ends are moved down to the start
 *        of a cell, so the cell that t is in is not part of it, and windows that adjoin count each cell
 *        once. One that is shorter than a cell is the last whole cell. By cell: for what is told of each
 *        cell (min_over_time of counts), a piece is one cell.
 */
#pragma once

#include "base/err.h"
#include "query/plan.h"

#include <stddef.h>

#define WINDOWS_PIECES_MAX 200000 /* four months of minutes */

struct window_ask {
    enum span cell;
    int64_t at_ms, step_ms; /* where the first ends; from there to the next one's end */
    size_t count;
    int64_t length_ms;
    bool by_cell;
};

struct window {
    size_t first, end; /* pieces; none where it is before 1970 */
};

struct windows {
    struct window_ask ask;
    struct window *list;
    int64_t *edges; /* piece i is from edges[i] to edges[i + 1] */
    size_t piece_count;
    bool *is_covered; /* by piece: is it in a window? */
    struct plan_tile *tiles;
    size_t tile_count, tile_capacity;
};

/* Pre: lengths are positive. EX_UNAVAILABLE: more than WINDOWS_PIECES_MAX cells; windows_fini() is due then,
 * too. */
bool windows_init(struct windows *w, const struct window_ask *ask, struct err *e) MUST_CHECK;
void windows_fini(struct windows *w);
/* The piece that a slot is of; false: of none that is in a window. */
bool windows_find(const struct windows *w, int64_t slot_ms, size_t *piece);
/* Whole cells of a window, and how long they are together. */
size_t windows_cells(const struct windows *w, size_t window);
double windows_seconds(const struct windows *w, size_t window);
