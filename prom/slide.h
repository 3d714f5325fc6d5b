/* slide.h - computes a function over each window from the pieces in it. Called by fetch.c; cannot fail.
 *
 * Cost : each piece is merged three times, however many windows contain it. For a stretch of pieces, the sums
 *        from each piece to its end ("suffixes") are kept. Pieces behind it are added up as windows advance.
 *
 *          window       [  |  |  |  ]
 *          kept suffix  [-----------|      added up  |-----]
 *
 *        Functions of points (over.h) look at each cell of each window. Windows before and behind all that a
 *        row has cost nothing: most series have events at few times.
 */
#pragma once

#include "aggregate/report.h"
#include "prom/vector.h"
#include "prom/windows.h"

/* Does the function take the last samples of cells for those of a running total? */
bool slide_is_running(const struct measure *m, enum function f);
/* Is the function worked out from the points of each cell: by over.h, or by counter.h from the last samples
 * of a running total? */
bool slide_needs_points(const struct measure *m, enum function f);
/* Does the function need each cell of a window? False: the merged columns of the window suffice. */
bool slide_needs_cells(const struct measure *m, enum function f);
struct slide_ask {
    const struct measure *measure, *presence; /* `presence`: a count of the same report, or NULL */
    enum function function;
    const double *parameter; /* of the function, by window; NULL: none */
    int64_t at_ms, step_ms;  /* the times of the steps, whatever the offset */
    bool is_always;          /* a total that is 0, not absent, without events */
};
/* `columns`: the columns of each piece, those of the measure first. Sets the value of each window; absent if
 * it has none. A total has one if there are events, or, without `presence`, if it is not 0. */
void slide(const struct slide_ask *ask, const struct windows *w, const int64_t *columns, double *values);
/* A count or a sum: its columns only add up. */
static inline bool slide_is_total(const struct measure *m)
{
    return m->kind == MEASURE_COUNT || m->kind == MEASURE_SUM;
}
