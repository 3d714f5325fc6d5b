#include "prom/math.h"

#include "base/check.h"
#include "base/civil.h"
#include "prom/vector.h"

#include <math.h>

static double sign(double x)
{
    return x < 0 ? -1 : x > 0 ? 1 : x;
}

static double to_degrees(double x)
{
    return x * 180 / M_PI;
}

static double to_radians(double x)
{
    return x * M_PI / 180;
}

/* In the order of functions.c. */
static double (*const maths[])(double) = {fabs, ceil, floor, exp,  sqrt,  log,        log2,      log10,
                                          sign, acos, acosh, asin, asinh, atan,       atanh,     cos,
                                          cosh, sin,  sinh,  tan,  tanh,  to_degrees, to_radians};

/* NaN stays NaN, unlike with fmin() and fmax(). */
static double at_most(double value, double limit)
{
    return isnan(value) || isnan(limit) ? NAN : fmin(value, limit);
}

static double at_least(double value, double limit)
{
    return isnan(value) || isnan(limit) ? NAN : fmax(value, limit);
}

/* To a multiple of `unit`; ties go up. */
static double rounded(double value, double unit)
{
    double inverse = 1 / unit;
    return floor(value * inverse + 0.5) / inverse;
}

/* The calendar repeats after 400 years, in days and in weekdays. */
#define CYCLE_YEARS 400
#define CYCLE_MS    (146097LL * DAY_MS)

static double part_of_time(enum function f, double seconds)
{
    if (!(fabs(seconds) < (double)CIVIL_END_MS / SECOND_MS))
        return NAN;
    int64_t ms = (int64_t)seconds * SECOND_MS, cycles = ms < 0 ? -ms / CYCLE_MS + 1 : 0;
    ms += cycles * CYCLE_MS;
    const struct civil c = civil_from_ms(ms);
    switch (f) {
    case FUNCTION_MINUTE:
        return c.minute;
    case FUNCTION_HOUR:
        return c.hour;
    case FUNCTION_DAY_OF_WEEK: /* 0 is Sunday; 1970 began on a Thursday */
        return (double)((ms / DAY_MS + 4) % 7);
    case FUNCTION_DAY_OF_MONTH:
        return c.day;
    case FUNCTION_DAY_OF_YEAR:
        return (double)(civil_days(c.year, c.month, c.day) - civil_days(c.year, 1, 1) + 1);
    case FUNCTION_DAYS_IN_MONTH:
        return civil_month_days(c.year, c.month);
    case FUNCTION_MONTH:
        return c.month;
    default:
        return (double)(c.year - CYCLE_YEARS * cycles);
    }
}

double math_apply(const struct node *n, double value, const double more[2])
{
    switch (n->function) {
    case FUNCTION_MATH:
        ASSERT(n->math < COUNT_OF(maths));
        return maths[n->math](value);
    case FUNCTION_ROUND:
        return rounded(value, n->argument_count > 1 ? more[0] : 1);
    case FUNCTION_CLAMP:
        return more[1] < more[0] ? vector_absent() : at_least(at_most(value, more[1]), more[0]);
    case FUNCTION_CLAMP_MIN:
        return at_least(value, more[0]);
    case FUNCTION_CLAMP_MAX:
        return at_most(value, more[0]);
    default:
        return part_of_time(n->function, value);
    }
}
