/* math.h - the functions of PromQL that map a number to a number: mathematics, round, clamp, parts of a
 * time. Called by call.c; cannot fail.
 *
 * Times: seconds since 1970, of UTC. The parts of a number that is no time are NaN.
 */
#pragma once

#include "prom/ast.h"

/* Applies the function of the call `n` to `value`; `more` are its second and third arguments. The result is
 * vector_absent() if the function has none for them, as clamp() with its minimum above its maximum. */
double math_apply(const struct node *n, double value, const double more[2]);
