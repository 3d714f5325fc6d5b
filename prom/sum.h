/* sum.h - adds numbers with a compensation for rounding (Neumaier), so that their order hardly matters.
 * Used by aggregate.c and over.c; cannot fail.
 */
#pragma once

#include <math.h>

struct sum {
    double value, lost; /* what rounding took from `value` */
};

static inline void sum_add(struct sum *s, double x)
{
    double total = s->value + x;
    if (isinf(total))
        s->lost = 0;
    else
        s->lost += fabs(s->value) >= fabs(x) ? (s->value - total) + x : (x - total) + s->value;
    s->value = total;
}

static inline double sum_value(const struct sum *s)
{
    return s->value + s->lost;
}
