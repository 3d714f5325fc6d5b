/* slide.h - computes a function over each window from the pieces in it. Called by fetch.c; cannot fail.
 *
 * Cost : each piece is merged three times, however many windows contain it. For a stretch of pieces, the sums
 *        from each piece to its end ("suffixes") are kept. Pieces behind it are added up as windows advance.
 *
 *          window       [  |  |  |  ]
 *          kept suffix  [-----------|      added up  |-----]
 */
#pragma once

#include "aggregate/report.h"
#include "prom/vector.h"
#include "prom/windows.h"

/* Does the function need each cell of a window? False: the merged columns of the window suffice. */
bool slide_needs_cells(const struct measure *m, enum function f);
/* `columns`: the measure's columns of each piece. Sets the value of each window; absent if it has none. */
void slide(const struct measure *m, enum function f, const struct windows *w, const int64_t *columns,
           double *values);
/* A count or a sum: it is 0 without events. */
static inline bool slide_is_total(const struct measure *m)
{
    return m->kind == MEASURE_COUNT || m->kind == MEASURE_SUM;
}
