/* rank.h - the rank that a value must reach to be one of the k greatest of its group at a step. Used by
 * aggregate.c and fetch.c; cannot fail.
 *
 * Cost : one comparison for each value, and log k steps if it is among the k greatest so far. No labels are
 *        compared, so all values equal to the bound reach it.
 */
#pragma once

#include "prom/vector.h"

/* The rank of a value: the value itself, or its negation for bottomk. NaN ranks below every number. */
double rank_of(double value, bool bottom);
/* Sets `bounds` for each group: the least rank among its `k` greatest values; -INFINITY if it has fewer;
 * INFINITY if k < 1. */
void rank_bounds(const struct vector *v, const struct groups *g, size_t step, double k, bool bottom,
                 double *bounds);
