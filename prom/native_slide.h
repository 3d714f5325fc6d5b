/* native_slide.h - a metric that is a histogram, as native histograms: one for each window, from the sketches
 * of the pieces in it. Called by fetch.c.
 *
 * Cost  : the sketch of each piece is added once and subtracted once, however many windows contain it. Each
 *         window then writes its buckets.
 * Errors: those of native.h.
 */
#pragma once

#include "prom/reading.h"
#include "prom/slide.h"

/* Does the function yield histograms? False: numbers, for which the columns suffice. */
bool native_slide_is_needed(enum function f);
/* EX_USAGE: the function or the aggregation around is not answered of histograms. */
bool native_slide_check(const struct reading *rd, struct err *e) MUST_CHECK;
/* Sets the values of all rows. */
bool native_slide(const struct reading *rd, const struct slide_ask *ask, const struct vector *out,
                  struct err *e) MUST_CHECK;
