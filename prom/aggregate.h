/* aggregate.h - the aggregations: sum, topk, quantile and the others, over the series of a vector, step by
 * step.
 * Called by eval.c; fails if the budget is spent. */
#pragma once

#include "prom/fetch.h"

/* `parameter`: the number of topk, bottomk and quantile at each step; else NULL. Consumes `in`, on failure
 * too. */
bool aggregate_run(struct fetch *fe, const struct node *n, struct vector *in, const double *parameter,
                   struct vector *out, struct err *e) MUST_CHECK;
