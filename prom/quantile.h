/* quantile.h - histogram_quantile() and histogram_fraction() of classic histograms: series that count up to a
 * bound, their label `le`. Called by call.c.
 *
 * Meaning: as in Prometheus. Numbers lie evenly between two bounds. In a quantile, those above the greatest
 *          finite bound count as this bound. In a fraction they are above any limit, and those of a first
 *          bucket that ends at 0 or below are below any. Without the bound +Inf the answer is NaN, and so is
 *          a quantile if there is no other bound. A series without a number as its `le` is left out.
 * Errors : EX_UNAVAILABLE: the budget is spent.
 */
#pragma once

#include "prom/fetch_room.h"

/* A question of each histogram. */
struct quantile_ask {
    bool is_fraction;
    const double *first, *second; /* by step: quantiles; or the lower and the upper limits of fractions */
};

/* Takes over `in`, also on failure. */
bool quantile_of_buckets(struct fetch *fe, const struct quantile_ask *ask, struct vector *in,
                         struct vector *out, struct err *e) MUST_CHECK;
