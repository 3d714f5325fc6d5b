/* over.h - the functions of ranges over points: those of a subquery, or the cells of a selector. Called by
 * slide.c and subquery.c; cannot fail.
 */
#pragma once

#include "prom/ast.h"

struct points {
    const int64_t *at_ms;
    const double *values;
    size_t count; /* in the window */
};

/* Is the function worked out from points even if the store could add up its range? */
bool over_is_needed(enum function f);
/* `parameter`: the number of quantile_over_time and predict_linear; `at_ms`: the time of the step.
 * vector_absent(): the function has no value, as over no points. */
double over_points(enum function f, double parameter, int64_t at_ms, const struct points *p);
/* The quantile of values, which it sorts; NaN: there is none. */
double over_quantile(double quantile, double *values, size_t count);
/* The mean of the squares of the distances to the mean. */
double over_variance(const double *values, size_t count);
