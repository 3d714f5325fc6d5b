/* windows.h - the ranges of time that the steps of a question cover. The starts and ends of all windows cut
 * time into pieces, so that one pass over the store serves all steps. Used by fetch.c and slide.c.
 *
 *   windows     |-------|            step 0: 5 minutes before 10:07
 *                    |-------|       step 1: 5 minutes before 10:10
 *   pieces      |----|--|----|       each time bucket of the store belongs to one
 *   tiles       |   minutes  |       ranges to read: the longest time buckets that fit the pieces (plan.h)
 *
 * Times: a cell is a minute or a second. A window of length L at t is from t-L to t, both rounded down to the
 *        start of a cell. So the cell that contains t is not in the window, and adjoining windows count each
 *        cell once. A length below a cell's is a cell.
 * Cells: for functions of each cell (min_over_time of counts), a piece is one cell.
 */
#pragma once

#include "base/err.h"
#include "query/plan.h"

#include <stddef.h>

#define WINDOWS_PIECES_MAX 200000 /* four months of minutes */

struct window_ask {
    enum span cell;         /* SPAN_MINUTE or SPAN_SECOND */
    int64_t at_ms, step_ms; /* end of the first window; distance between the ends of two */
    size_t count;
    int64_t length_ms;
    bool by_cell; /* whether each piece is one cell */
};

struct window {
    size_t first, end; /* first piece, and the one behind the last; equal if the window is before 1970 */
};

struct windows {
    struct window_ask ask;
    struct window *list;
    int64_t *edges; /* ms; piece i is from edges[i] to edges[i + 1] */
    size_t piece_count;
    bool *is_covered; /* by piece: is it in a window? */
    struct plan_tile *tiles;
    size_t tile_count, tile_capacity;
};

/* Pre: lengths are positive. EX_UNAVAILABLE: `by_cell`, and more than WINDOWS_PIECES_MAX cells;
 * windows_fini() is due then, too. */
bool windows_init(struct windows *w, const struct window_ask *ask, struct err *e) MUST_CHECK;
void windows_fini(struct windows *w);
/* The span of which a piece is one whole bucket, the longest; SPAN_COUNT: of none. */
enum span windows_span(const struct windows *w, size_t piece);
/* Leaves out a piece that need not be read: windows_find() finds it no more. windows_trim() cuts the tiles to
 * the pieces from the first that is left to the last. */
void windows_leave_out(struct windows *w, size_t piece);
void windows_trim(struct windows *w);
/* Finds the piece that contains the time bucket at `bucket_ms`. False: no window contains it. */
bool windows_find(const struct windows *w, int64_t bucket_ms, size_t *piece);
/* The number of whole cells of a window, and their length together in seconds. */
size_t windows_cells(const struct windows *w, size_t window);
double windows_seconds(const struct windows *w, size_t window);
