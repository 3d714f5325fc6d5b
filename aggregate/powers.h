/* powers.h - powers of two with a fraction: the ends of the buckets of histograms (histogram.h). Histograms
 * and `tallyd verify` call it. Nothing fails.
 *
 * Index  : 2^(index / 2^schema), for schemas up to POWERS_SCHEMA_MAX: one above that of the narrowest
 *          buckets, since the middle of a bucket is a power, too.
 * Exact  : a table of integers with 126 bits behind the point, without floats. So a power is the same on
 *          every machine, and powers_floor() is the exact whole number (tests/system/test_powers.py).
 */
#pragma once

#include "aggregate/number.h"

#include <stdint.h>

#define POWERS_SCHEMA_MAX 9

/* The greatest whole number up to scale × 2^(index / 2^schema); INT64_MAX: that or more. Pre: the scale is
 * from 1 to 2^20, and the schema is at least -4. */
int64_t powers_floor(int64_t index, int schema, int64_t scale);
/* The nearest whole number, even above INT64_MAX. Pre: index / 2^schema is at most 64. */
int128 powers_round(int64_t index, int schema, int64_t scale);
/* The power as a double. Pre: index / 2^schema is from -1000 to 1000. */
double powers_double(int64_t index, int schema);
