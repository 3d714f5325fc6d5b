/* buckets.h - a histogram as Prometheus' classic one: a series for each bound `le`, which counts the numbers
 * up to it. Called by fetch.c.
 *
 *   le    ... 0.840896 1 1.189207 1.414214 1.681793 2 ... +Inf
 *
 * Bounds: the ends of buckets (aggregate/histogram.h) that are BUCKETS_OCTAVE an octave, so each is 19 %
 *         above the one before. All series of a selector have the same ones: from the last bound below all
 *         numbers that it reads to the first one that is not below any, and +Inf. So sums by `le` are right.
 * Given : `le="0.3"` may be any number. The numbers of the bucket that holds it count as lying evenly in it.
 */
#pragma once

#include "prom/reading.h"
#include "prom/slide.h"

#define BUCKETS_OCTAVE 4

/* Sets the bounds that the selector takes. False: EX_USAGE, `le` is given and is no number; errors of regular
 * expressions. */
bool buckets_find(struct reading *rd, struct err *e) MUST_CHECK;
/* Sets the values of all rows: a row of `out` for each row and bound. */
void buckets_slide(const struct reading *rd, const struct slide_ask *ask, const struct vector *out);
