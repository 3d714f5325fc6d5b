/* rank.h - what a value must reach to be one of the k greatest of its group at a step.
 *
 * Cost : one look at each value, and log k where it is among the k greatest so far; no labels are compared,
 *        so equal values at the bound all reach it.
 */
#pragma once

#include "prom/vector.h"

/* What is ranked by: the value, or for bottomk its opposite. NaN is behind every number. */
double rank_of(double value, bool bottom);
/* `bounds`: by group, the least rank of its `k` greatest; -INFINITY where it has fewer. */
void rank_bounds(const struct vector *v, const struct groups *g, size_t step, double k, bool bottom,
                 double *bounds);
