/* subquery.h - a function of ranges over an expression, which is evaluated at the subquery's own steps.
 * Called by call.c.
 *
 *   max_over_time(rate(m[5m])[1h:1m])    the inner steps are whole multiples of 1m since 1970
 *
 * Limits: SUBQUERY_STEPS_MAX inner steps, and the budget.
 * Errors: EX_UNAVAILABLE: a limit is exceeded; those of eval.h.
 */
#pragma once

#include "prom/fetch.h"

#define SUBQUERY_STEPS_MAX 200000

/* `n`: the NODE_SUBQUERY. `parameter`: the function's number at each step, or NULL. */
bool subquery_run(struct fetch *fe, const struct node *n, enum function f, const double *parameter,
                  struct vector *out, struct err *e) MUST_CHECK;
