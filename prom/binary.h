/* binary.h - operators between scalars and vectors. Called by eval.c.
 *
 * Match : two vectors match one to one: by the labels in on(), by all but those in ignoring(), or by all.
 *         The metric's name counts only if on() lists it.
 * Labels: the result has the labels that matched. Set operators, and filters without on() or ignoring(), keep
 *         the labels of the series.
 * Filter: a comparison without bool keeps the left side's values for which it is true. If the left side is a
 *         scalar and the right side a vector, it keeps the vector's values.
 * Errors: EX_USAGE: two series of one side match at one step; EX_UNAVAILABLE: the budget is spent.
 */
#pragma once

#include "prom/fetch.h"

/* Consumes both sides, on failure too. */
bool binary_run(struct fetch *fe, const struct node *n, struct vector *left, struct vector *right,
                struct vector *out, struct err *e) MUST_CHECK;
