/* number.h - a number as Prometheus writes and reads it in texts. Used by write.c, by count_values in
 * aggregate.c and by quantile.c.
 *
 * Written: the shortest text that parses back to the same number, without exponent; NaN, +Inf, -Inf.
 */
#pragma once

#include "base/text.h"

void number_write(double value, struct text *out);
/* "0.5", "1e-3", "+Inf". False: the text is no number, or longer than 63 bytes. */
bool number_parse(struct slice text, double *value);
