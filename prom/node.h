/* node.h - evaluates a part of an expression at every step. Implemented by eval.c; called by call.c and
 * subquery.c, which eval.c calls for the nodes of their kind.
 *
 * Owner : `out` takes from the budget's values until fetch_release().
 * Errors: those of eval.h.
 */
#pragma once

#include "prom/fetch.h"

/* `around`: the aggregation directly around the node, or zeros. */
bool node_eval(struct fetch *fe, const struct node *n, const struct fetch_around *around, struct vector *out,
               struct err *e) MUST_CHECK;
