/* binary.h - operators between scalars and vectors.
 *
 * Match : two vectors are matched one to one, by the labels of on(), all but those of ignoring(), or all;
 *         the metric's name never counts. The result has these labels.
 * Filter: a comparison without bool keeps the left side's values (a vector's, where a scalar is left)
 *         that it is true of.
 * Errors: EX_USAGE: two series of one side match at one step.
 */
#pragma once

#include "prom/fetch.h"

/* Consumes both sides, on failure too. */
bool binary_run(struct fetch *fe, const struct node *n, struct vector *left, struct vector *right,
                struct vector *out, struct err *e) MUST_CHECK;
