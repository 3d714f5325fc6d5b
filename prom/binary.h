/* binary.h - operators between scalars and vectors. Called by eval.c.
 *
 * Match : two vectors match by the labels in on(), by all but those in ignoring(), or by all. The metric's
 *         name counts only if on() lists it. One series matches one, unless group_left or group_right says
 *         that many match one.
 * Labels: those of the left side, or of the many side. on() keeps only its labels, ignoring() drops its own,
 *         if one matches one. group_left(a) takes `a` from the one side. Arithmetic and bool drop the
 *         metric's name. Set operators keep all labels.
 * Filter: a comparison without bool keeps the left side's values for which it is true. If the left side is a
 *         scalar and the right side a vector, it keeps the vector's values.
 * Errors: EX_USAGE: two series of one side match at one step, or two results have equal labels;
 *         EX_UNAVAILABLE: the budget is spent.
 */
#pragma once

#include "prom/fetch.h"

/* Consumes both sides, on failure too. */
bool binary_run(struct fetch *fe, const struct node *n, struct vector *left, struct vector *right,
                struct vector *out, struct err *e) MUST_CHECK;
