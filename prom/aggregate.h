/* aggregate.h - sum, avg, min, max, count, topk and bottomk over the series of a vector, step by step.
 * Called by eval.c; fails if the budget is spent. */
#pragma once

#include "prom/fetch.h"

/* `k`: the k of topk and bottomk at each step. Consumes `in`, on failure too. */
bool aggregate_run(struct fetch *fe, const struct node *n, struct vector *in, const double *k,
                   struct vector *out, struct err *e) MUST_CHECK;
