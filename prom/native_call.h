/* native_call.h - the functions that make a number of a native histogram: histogram_count and the like.
 * Called by call.c; cannot fail.
 *
 * Within a bucket, numbers count as lying evenly by their logarithm, as in Prometheus 3.
 */
#pragma once

#include "prom/native.h"

/* A function's two numbers at a step, if it has any: the quantile; the bounds of histogram_fraction. */
struct native_numbers {
    double first, second;
};

double native_apply(enum function f, const struct native *h, struct native_numbers numbers);
