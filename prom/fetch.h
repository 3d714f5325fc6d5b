/* fetch.h - reads the values of a selector at every step from the store, plain or under a function of ranges.
 * Called by eval.c and call.c.
 *
 *   selector → metrics, series (select.h) → windows (windows.h) → one scan per tile → rows of pieces → values
 *
 * Values: a count or sum is the total of the window; it is absent if the window has no events, unless the
 *         selector gives all labels by `=`: then it is 0. Other measures are absent without events, too.
 *         docs/PROMETHEUS.md has the table by function. A value depends on its own window or look-back only:
 *         an instant equals the same step of any range.
 *         Distinct counts and buckets: different.h, buckets.h.
 * Plain : a count or sum at t is that of the last whole cell (windows.h). Other measures look back for a
 *         value up to FETCH_LOOKBACK_MS.
 * Series: all with a value at any step; struct fetch_around reduces them further.
 * Limits: those of the struct fetch's budget (budget.h).
 * Errors: EX_USAGE: the function does not fit the measure; EX_UNAVAILABLE: the budget is spent, or time
 *         buckets have expired; errors of select.h and of the store.
 */
#pragma once

#include "prom/fetch_room.h"

#define FETCH_LOOKBACK_MS (5LL * MINUTE_MS)

/* The time of the first step of a selector or subquery, without its `offset`. */
int64_t fetch_base(const struct fetch *fe, const struct selector *s);
/* `f`: FUNCTION_NONE, FUNCTION_TIMESTAMP, or a function of ranges. The values of `out` are charged to the
 * budget until fetch_release() of fetch_room.h. */
bool fetch_run(struct fetch *fe, const struct selector *selector, enum function f,
               const struct fetch_around *around, struct vector *out, struct err *e) MUST_CHECK;
