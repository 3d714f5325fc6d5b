#include "prom/native_call.h"

#include "base/check.h"
#include "prom/sum.h"

#include <math.h>

/* A zero bucket that is less than empty, after a subtraction, is left out, as in Prometheus. */
static bool is_left_out(const struct native_bucket *b)
{
    return b->slot == 0 && !(b->count > 0);
}

/* ---- quantiles */

/* A place between the ends of a bucket, which `part` of its numbers are below. */
static double between(struct native_ends ends, double part)
{
    if (ends.low <= 0 && ends.high >= 0)
        return ends.low + (ends.high - ends.low) * part;
    const double low = log2(fabs(ends.low)), high = log2(fabs(ends.high));
    return ends.low > 0 ? exp2(low + (high - low) * part) : -exp2(high + (low - high) * (1 - part));
}

/* The bucket in which the rank lies, counted from the nearer end, as Prometheus does. So rounding, which may
 * make the sum of all buckets differ from the count, hardly matters. */
static double quantile_of(const struct native *h, double q)
{
    const bool forward = q < 0.5;
    const double rank = (forward ? q : 1 - q) * h->count;
    const struct native_bucket *b = NULL;
    size_t at = 0;
    double count = 0;
    if (q < 0 || q > 1)
        return q < 0 ? -INFINITY : INFINITY;
    if (h->count == 0 || isnan(q))
        return NAN;
    for (size_t i = 0; i < h->bucket_count && (b == NULL || !(count >= rank)); i++) {
        const size_t next = forward ? i : h->bucket_count - 1 - i;
        if (is_left_out(&h->buckets[next]))
            continue;
        at = next;
        b = &h->buckets[at];
        count += b->count;
    }
    if (b == NULL)
        return NAN;
    const struct native_ends ends = native_ends(h, at);
    count = fmin(count, h->count);
    if (count < rank)
        return ends.high;
    return between(ends, (forward ? rank - (count - b->count) : count - rank) / b->count);
}

/* ---- fractions */

/* The share of a bucket's numbers that are below `limit`, which lies within it. */
static double part_below(struct native_ends ends, double limit)
{
    if (ends.low <= 0 && ends.high >= 0)
        return (limit - ends.low) / (ends.high - ends.low);
    const double low = log2(fabs(ends.low)), high = log2(fabs(ends.high)), at = log2(fabs(limit));
    return ends.low > 0 ? (at - low) / (high - low) : 1 - (at - high) / (low - high);
}

/* How many numbers are below `limit`. */
static double count_below(const struct native *h, double limit)
{
    double count = 0;
    for (size_t i = 0; i < h->bucket_count; i++) {
        const struct native_ends ends = native_ends(h, i);
        if (is_left_out(&h->buckets[i]))
            continue;
        if (ends.low >= limit)
            return fmin(count, h->count);
        if (ends.high > limit)
            return fmin(count + h->buckets[i].count * part_below(ends, limit), h->count);
        count += h->buckets[i].count;
    }
    return h->count;
}

static double fraction_of(const struct native *h, double lower, double upper)
{
    if (h->count == 0 || isnan(lower) || isnan(upper))
        return NAN;
    return lower >= upper ? 0 : (count_below(h, upper) - count_below(h, lower)) / h->count;
}

/* ---- */

/* The numbers of a bucket count as the geometric mean of its ends, those of the zero bucket as 0. */
static double variance_of(const struct native *h)
{
    const double mean = h->sum / h->count;
    struct sum squares = {0};
    for (size_t i = 0; i < h->bucket_count; i++) {
        const struct native_ends ends = native_ends(h, i);
        if (is_left_out(&h->buckets[i]))
            continue;
        const double middle = h->buckets[i].slot != 0 ? copysign(sqrt(ends.low * ends.high), ends.high) : 0;
        sum_add(&squares, h->buckets[i].count * (middle - mean) * (middle - mean));
    }
    return sum_value(&squares) / h->count;
}

double native_apply(enum function f, const struct native *h, struct native_numbers numbers)
{
    switch (f) {
    case FUNCTION_HISTOGRAM_COUNT:
        return h->count;
    case FUNCTION_HISTOGRAM_SUM:
        return h->sum;
    case FUNCTION_HISTOGRAM_AVG:
        return h->sum / h->count;
    case FUNCTION_HISTOGRAM_STDVAR:
        return variance_of(h);
    case FUNCTION_HISTOGRAM_STDDEV:
        return sqrt(variance_of(h));
    case FUNCTION_HISTOGRAM_FRACTION:
        return fraction_of(h, numbers.first, numbers.second);
    default:
        ASSERT(f == FUNCTION_HISTOGRAM_QUANTILE);
        return quantile_of(h, numbers.first);
    }
}
