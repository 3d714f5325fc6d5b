/* number.h - a number as Prometheus writes it. Used by write.c and by count_values in aggregate.c; cannot
 * fail.
 *
 * The shortest text that parses back to the same number, without exponent; NaN, +Inf, -Inf.
 */
#pragma once

#include "base/text.h"

void number_write(double value, struct text *out);
