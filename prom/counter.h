/* counter.h - the increase and rate of a running total by samples of it: what increase() and rate() of
 * Prometheus say, in each digit. Called by slide.c; cannot fail.
 *
 *   from_ms                              to_ms
 *      |    5     8     2     4            |       increases by 3, by 2 after a reset, and by 2: by 7
 *      |<-->|                 |<---------->|       extrapolated to the ends that are near the samples
 *
 * Resets: a total below the one before it began again at 0.
 * Ends  : an end is near if it is less than 1.1 times the samples' mean distance away; a farther one is taken
 *         for half of that distance. Backwards, it is extrapolated at most to the time at which the total was
 *         0.
 * Source: extrapolatedRate() of Prometheus 3, promql/functions.go
 */
#pragma once

#include "prom/over.h"

/* Absent: there are fewer than two samples. Pre: they lie in [from_ms, to_ms), their times ascend. */
double counter_increase(const struct points *samples, int64_t from_ms, int64_t to_ms);
/* The increase divided by the seconds from one end to the other. */
double counter_rate(const struct points *samples, int64_t from_ms, int64_t to_ms);
