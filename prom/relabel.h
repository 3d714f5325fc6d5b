/* relabel.h - label_replace and label_join: give each series a label made of its others. Called by call.c.
 *
 * Errors: EX_PROTOCOL: the regular expression is invalid; EX_UNAVAILABLE: the budget is spent; EX_USAGE: two
 *         series become equal.
 */
#pragma once

#include "prom/fetch.h"

/* Changes the labels of `v`, the value of the call's first argument. */
bool relabel_run(struct fetch *fe, const struct node *n, struct vector *v, struct err *e) MUST_CHECK;
