/* fetch.h - reads the values of a selector at every step from the store, plain or under a function of ranges.
 * Called by eval.c and call.c.
 *
 *   selector → metrics, series (select.h) → windows (windows.h) → one scan per tile → rows of pieces → values
 *
 * Values: a count or sum is the total of the window; it is absent if the window has no events, unless the
 *         selector gives all labels by `=`: then it is 0. Other measures are absent without events, too.
 *         docs/PROMETHEUS.md has the table by function. So a value depends on its own window only, and an
 *         instant equals the same step of any range.
 *         Distinct counts and buckets: different.h, buckets.h.
 * Plain : a count or sum at t is the last whole minute (or second). Other measures look back for a value up
 *         to FETCH_LOOKBACK_MS.
 * Series: all with a value at any step; struct fetch_around reduces them further.
 * Limits: the budget.
 * Errors: EX_USAGE: the function does not fit the measure; EX_UNAVAILABLE: the budget is spent, or time
 *         buckets have expired; errors of select.h and of the store.
 */
#pragma once

#include "prom/fetch_room.h"

#define FETCH_LOOKBACK_MS (5LL * MINUTE_MS)

/* The time that the first step of a selector or subquery is about, before its offset. */
int64_t fetch_base(const struct fetch *fe, const struct selector *s);
/* `f`: FUNCTION_NONE, FUNCTION_TIMESTAMP, or a function of ranges. `out` takes from the budget's values until
 * fetch_release(). */
bool fetch_run(struct fetch *fe, const struct selector *selector, enum function f,
               const struct fetch_around *around, struct vector *out, struct err *e) MUST_CHECK;
