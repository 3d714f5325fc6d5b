#include "prom/over.h"

#include "base/civil.h"
#include "base/mem.h"
#include "prom/sum.h"
#include "prom/vector.h"

#include <math.h>
#include <stdlib.h>

bool over_is_needed(enum function f)
{
    return f >= FUNCTION_STDDEV && f <= FUNCTION_TIMESTAMP && f != FUNCTION_ABSENT_RANGE;
}

static double average(const struct points *p)
{
    struct sum sum = {0}, mean = {0};
    for (size_t i = 0; i < p->count; i++)
        sum_add(&sum, p->values[i]);
    if (isfinite(sum.value))
        return sum.value / (double)p->count + sum.lost / (double)p->count;
    for (size_t i = 0; i < p->count; i++)
        sum_add(&mean, p->values[i] / (double)p->count);
    return sum_value(&mean);
}

double over_variance(const double *values, size_t count)
{
    struct sum mean = {0}, squares = {0};
    for (size_t i = 0; i < count; i++) {
        double distance = values[i] - sum_value(&mean);
        sum_add(&mean, distance / (double)(i + 1));
        sum_add(&squares, distance * (values[i] - sum_value(&mean)));
    }
    return sum_value(&squares) / (double)count;
}

/* NaN is less than every number, as in Prometheus. */
static int compare_values(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    if (isnan(a) || isnan(b))
        return !!isnan(b) - !!isnan(a);
    return (a > b) - (a < b);
}

double over_quantile(double quantile, double *values, size_t count)
{
    if (count == 0 || isnan(quantile))
        return NAN;
    if (quantile < 0 || quantile > 1)
        return quantile < 0 ? -INFINITY : INFINITY;
    qsort(values, count, sizeof *values, compare_values);
    double rank = quantile * (double)(count - 1), weight = rank - floor(rank);
    size_t low = (size_t)rank, high = low + 1 < count ? low + 1 : low;
    return weight == 0 ? values[low] : values[low] * (1 - weight) + values[high] * weight;
}

static double quantile_of(double quantile, const struct points *p)
{
    double *copy = xmalloc(p->count * sizeof *copy);
    memcpy(copy, p->values, p->count * sizeof *copy);
    double value = over_quantile(quantile, copy, p->count);
    free(copy);
    return value;
}

/* The least or the greatest; NaN only if there is no other. */
static double extreme(const struct points *p, double sign)
{
    double found = p->values[0];
    for (size_t i = 1; i < p->count; i++) {
        if (isnan(found) || sign * p->values[i] > sign * found)
            found = p->values[i];
    }
    return found;
}

/* The number of points that differ from the one before, or are less. */
static double count_changes(const struct points *p, bool only_less)
{
    size_t found = 0;
    for (size_t i = 1; i < p->count; i++) {
        double before = p->values[i - 1], value = p->values[i];
        bool both_nan = isnan(before) && isnan(value);
        found += only_less ? value < before : value != before && !both_nan;
    }
    return (double)found;
}

/* The line through the points by least squares: its slope a second, and its value at `at_ms`. */
static void fit_line(const struct points *p, int64_t at_ms, double *slope, double *value)
{
    const double n = (double)p->count;
    struct sum x = {0}, y = {0}, xy = {0}, xx = {0};
    bool is_constant = true;
    for (size_t i = 0; i < p->count; i++) {
        double seconds = (double)(p->at_ms[i] - at_ms) / SECOND_MS;
        is_constant = is_constant && p->values[i] == p->values[0];
        sum_add(&x, seconds);
        sum_add(&y, p->values[i]);
        sum_add(&xy, seconds * p->values[i]);
        sum_add(&xx, seconds * seconds);
    }
    if (is_constant) {
        *slope = isinf(p->values[0]) ? NAN : 0;
        *value = isinf(p->values[0]) ? NAN : p->values[0];
        return;
    }
    double sum_x = sum_value(&x), sum_y = sum_value(&y);
    *slope = (sum_value(&xy) - sum_x * sum_y / n) / (sum_value(&xx) - sum_x * sum_x / n);
    *value = sum_y / n - *slope * sum_x / n;
}

static double of_line(enum function f, double seconds, int64_t at_ms, const struct points *p)
{
    double slope, value;
    if (p->count < 2)
        return vector_absent();
    if (f == FUNCTION_IDELTA)
        return p->values[p->count - 1] - p->values[p->count - 2];
    fit_line(p, f == FUNCTION_DERIV ? p->at_ms[0] : at_ms, &slope, &value);
    return f == FUNCTION_DERIV ? slope : slope * seconds + value;
}

static double total(const struct points *p)
{
    struct sum sum = {0};
    for (size_t i = 0; i < p->count; i++)
        sum_add(&sum, p->values[i]);
    return sum_value(&sum);
}

double over_points(enum function f, double parameter, int64_t at_ms, const struct points *p)
{
    if (p->count == 0)
        return vector_absent();
    switch (f) {
    case FUNCTION_SUM:
        return total(p);
    case FUNCTION_AVG:
        return average(p);
    case FUNCTION_MIN:
        return extreme(p, -1);
    case FUNCTION_MAX:
        return extreme(p, 1);
    case FUNCTION_COUNT:
        return (double)p->count;
    case FUNCTION_LAST:
        return p->values[p->count - 1];
    case FUNCTION_PRESENT:
    case FUNCTION_ABSENT_RANGE:
        return 1;
    case FUNCTION_STDDEV:
        return sqrt(over_variance(p->values, p->count));
    case FUNCTION_STDVAR:
        return over_variance(p->values, p->count);
    case FUNCTION_QUANTILE:
        return quantile_of(parameter, p);
    case FUNCTION_CHANGES:
    case FUNCTION_RESETS:
        return count_changes(p, f == FUNCTION_RESETS);
    case FUNCTION_TIMESTAMP:
        return (double)p->at_ms[p->count - 1] / SECOND_MS;
    default:
        return of_line(f, parameter, at_ms, p);
    }
}
