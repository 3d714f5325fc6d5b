#include "prom/counter.h"

#include "base/civil.h"
#include "prom/vector.h"

#define NEAR 1.1 /* mean distances of the samples */

static double seconds(int64_t ms)
{
    return (double)ms / SECOND_MS;
}

static double increase_between(const struct points *samples)
{
    double increase = samples->values[samples->count - 1] - samples->values[0];
    for (size_t i = 1; i < samples->count; i++)
        increase += samples->values[i] < samples->values[i - 1] ? samples->values[i - 1] : 0;
    return increase;
}

/* By how much the increase grows if it is extrapolated. */
static double factor_of(const struct points *samples, double increase, int64_t from_ms, int64_t to_ms)
{
    const int64_t first_ms = samples->at_ms[0], last_ms = samples->at_ms[samples->count - 1];
    const double between = seconds(last_ms - first_ms), distance = between / (double)(samples->count - 1);
    const double first = samples->values[0];
    double before = seconds(first_ms - from_ms), behind = seconds(to_ms - last_ms);
    if (before >= distance * NEAR)
        before = distance / 2;
    if (increase > 0 && first >= 0 && between * (first / increase) < before)
        before = between * (first / increase);
    if (behind >= distance * NEAR)
        behind = distance / 2;
    return (between + before + behind) / between;
}

double counter_increase(const struct points *samples, int64_t from_ms, int64_t to_ms)
{
    if (samples->count < 2)
        return vector_absent();
    const double increase = increase_between(samples);
    return increase * factor_of(samples, increase, from_ms, to_ms);
}

double counter_rate(const struct points *samples, int64_t from_ms, int64_t to_ms)
{
    if (samples->count < 2)
        return vector_absent();
    const double increase = increase_between(samples);
    return increase * (factor_of(samples, increase, from_ms, to_ms) / seconds(to_ms - from_ms));
}
