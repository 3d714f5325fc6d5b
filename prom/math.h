/* math.h - the functions of PromQL that map one number to another: mathematics, round, clamp, parts of a
 * time. Called by call.c; cannot fail.
 *
 * Times: seconds since 1970, of UTC. A number that is no time, as NaN, has the parts NaN.
 */
#pragma once

#include "prom/ast.h"

/* The function `n` of `value`, whose further arguments are in `more`. vector_absent(): it has no value. */
double math_apply(const struct node *n, double value, const double more[2]);
