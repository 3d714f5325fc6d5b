/* slide.h - what a function says of each window, from its pieces.
 *
 * Cost : each piece is merged three times, however many windows it is in: of a stretch of pieces that
 *        starts in a window, what is from each of them to its end is kept; what is behind it is added up
 *        as windows go on.
 *
 *          window       [  |  |  |  ]
 *          kept suffix  [-----------|      added up  |-----]
 */
#pragma once

#include "aggregate/report.h"
#include "prom/vector.h"
#include "prom/windows.h"

/* Can the function be told from what the columns of a window come to together, or is it of its cells? */
bool slide_needs_cells(const struct measure *m, enum function f);
/* `columns`: of the measure, by piece. Values by window, absent where there are none. */
void slide(const struct measure *m, enum function f, const struct windows *w, const int64_t *columns,
           double *values);
/* A count or a sum: what it says of nothing is 0. */
static inline bool slide_is_total(const struct measure *m)
{
    return m->kind == MEASURE_COUNT || m->kind == MEASURE_SUM;
}
