/* aggregate.h - sum, avg, min, max, count, topk and bottomk over the series of a vector, step by step. */
#pragma once

#include "prom/fetch.h"

/* `k`: by step, of topk and bottomk. Consumes `in`, on failure too. */
bool aggregate_run(struct fetch *fe, const struct node *n, struct vector *in, const double *k,
                   struct vector *out, struct err *e) MUST_CHECK;
