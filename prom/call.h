/* call.h - evaluates the call of a function. Called by eval.c.
 *
 * Labels: a function of values drops the metric's name. Labels that become equal by that make one series; two
 *         values at one step are an error, EX_USAGE.
 * Errors: EX_PROTOCOL: a regular expression is invalid; those of fetch.h.
 */
#pragma once

#include "prom/fetch.h"

bool call_run(struct fetch *fe, const struct node *n, const struct fetch_around *around, struct vector *out,
              struct err *e) MUST_CHECK;
