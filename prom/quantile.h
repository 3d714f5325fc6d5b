/* quantile.h - histogram_quantile() of classic histograms: series that count up to a bound, their label `le`.
 * Called by call.c.
 *
 * Meaning: as in Prometheus. Numbers lie evenly between two bounds; those above the greatest finite bound
 *          count as this bound. Without the bound +Inf, or with it alone, the quantile is NaN. A series
 *          without a number as its `le` is left out.
 * Errors : EX_UNAVAILABLE: the budget is spent.
 */
#pragma once

#include "prom/fetch_room.h"

/* `quantiles`: by step. Takes over `in`, also on failure. */
bool quantile_of_buckets(struct fetch *fe, const double *quantiles, struct vector *in, struct vector *out,
                         struct err *e) MUST_CHECK;
