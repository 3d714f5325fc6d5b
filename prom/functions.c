#include "prom/functions.h"

#include "base/check.h"
#include "base/suggest.h"

/* By id, then by math. */
static const struct function_entry functions[] = {
    {"rate", "r", TYPE_VECTOR, FUNCTION_RATE, 0},
    {"increase", "r", TYPE_VECTOR, FUNCTION_INCREASE, 0},
    {"sum_over_time", "r", TYPE_VECTOR, FUNCTION_SUM, 0},
    {"avg_over_time", "r", TYPE_VECTOR, FUNCTION_AVG, 0},
    {"min_over_time", "r", TYPE_VECTOR, FUNCTION_MIN, 0},
    {"max_over_time", "r", TYPE_VECTOR, FUNCTION_MAX, 0},
    {"count_over_time", "r", TYPE_VECTOR, FUNCTION_COUNT, 0},
    {"last_over_time", "r", TYPE_VECTOR, FUNCTION_LAST, 0},
    {"present_over_time", "r", TYPE_VECTOR, FUNCTION_PRESENT, 0},
    {"stddev_over_time", "r", TYPE_VECTOR, FUNCTION_STDDEV, 0},
    {"stdvar_over_time", "r", TYPE_VECTOR, FUNCTION_STDVAR, 0},
    {"quantile_over_time", "sr", TYPE_VECTOR, FUNCTION_QUANTILE, 0},
    {"changes", "r", TYPE_VECTOR, FUNCTION_CHANGES, 0},
    {"resets", "r", TYPE_VECTOR, FUNCTION_RESETS, 0},
    {"idelta", "r", TYPE_VECTOR, FUNCTION_IDELTA, 0},
    {"deriv", "r", TYPE_VECTOR, FUNCTION_DERIV, 0},
    {"predict_linear", "rs", TYPE_VECTOR, FUNCTION_PREDICT, 0},
    {"absent_over_time", "r", TYPE_VECTOR, FUNCTION_ABSENT_RANGE, 0},
    {"timestamp", "v", TYPE_VECTOR, FUNCTION_TIMESTAMP, 0},
    {"absent", "v", TYPE_VECTOR, FUNCTION_ABSENT, 0},
    {"scalar", "v", TYPE_SCALAR, FUNCTION_SCALAR, 0},
    {"vector", "s", TYPE_VECTOR, FUNCTION_VECTOR, 0},
    {"time", "", TYPE_SCALAR, FUNCTION_TIME, 0},
    {"pi", "", TYPE_SCALAR, FUNCTION_PI, 0},
    {"sort", "v", TYPE_VECTOR, FUNCTION_SORT, 0},
    {"sort_desc", "v", TYPE_VECTOR, FUNCTION_SORT_DESC, 0},
    {"label_replace", "vtttt", TYPE_VECTOR, FUNCTION_LABEL_REPLACE, 0},
    {"label_join", "vtt?t*", TYPE_VECTOR, FUNCTION_LABEL_JOIN, 0},
    {"histogram_quantile", "sv", TYPE_VECTOR, FUNCTION_HISTOGRAM_QUANTILE, 0},
    {"histogram_fraction", "ssv", TYPE_VECTOR, FUNCTION_HISTOGRAM_FRACTION, 0},
    {"histogram_count", "v", TYPE_VECTOR, FUNCTION_HISTOGRAM_COUNT, 0},
    {"histogram_sum", "v", TYPE_VECTOR, FUNCTION_HISTOGRAM_SUM, 0},
    {"histogram_avg", "v", TYPE_VECTOR, FUNCTION_HISTOGRAM_AVG, 0},
    {"histogram_stddev", "v", TYPE_VECTOR, FUNCTION_HISTOGRAM_STDDEV, 0},
    {"histogram_stdvar", "v", TYPE_VECTOR, FUNCTION_HISTOGRAM_STDVAR, 0},
    {"round", "v?s", TYPE_VECTOR, FUNCTION_ROUND, 0},
    {"clamp", "vss", TYPE_VECTOR, FUNCTION_CLAMP, 0},
    {"clamp_min", "vs", TYPE_VECTOR, FUNCTION_CLAMP_MIN, 0},
    {"clamp_max", "vs", TYPE_VECTOR, FUNCTION_CLAMP_MAX, 0},
    {"minute", "?v", TYPE_VECTOR, FUNCTION_MINUTE, 0},
    {"hour", "?v", TYPE_VECTOR, FUNCTION_HOUR, 0},
    {"day_of_week", "?v", TYPE_VECTOR, FUNCTION_DAY_OF_WEEK, 0},
    {"day_of_month", "?v", TYPE_VECTOR, FUNCTION_DAY_OF_MONTH, 0},
    {"day_of_year", "?v", TYPE_VECTOR, FUNCTION_DAY_OF_YEAR, 0},
    {"days_in_month", "?v", TYPE_VECTOR, FUNCTION_DAYS_IN_MONTH, 0},
    {"month", "?v", TYPE_VECTOR, FUNCTION_MONTH, 0},
    {"year", "?v", TYPE_VECTOR, FUNCTION_YEAR, 0},
    {"abs", "v", TYPE_VECTOR, FUNCTION_MATH, 0},
    {"ceil", "v", TYPE_VECTOR, FUNCTION_MATH, 1},
    {"floor", "v", TYPE_VECTOR, FUNCTION_MATH, 2},
    {"exp", "v", TYPE_VECTOR, FUNCTION_MATH, 3},
    {"sqrt", "v", TYPE_VECTOR, FUNCTION_MATH, 4},
    {"ln", "v", TYPE_VECTOR, FUNCTION_MATH, 5},
    {"log2", "v", TYPE_VECTOR, FUNCTION_MATH, 6},
    {"log10", "v", TYPE_VECTOR, FUNCTION_MATH, 7},
    {"sgn", "v", TYPE_VECTOR, FUNCTION_MATH, 8},
    {"acos", "v", TYPE_VECTOR, FUNCTION_MATH, 9},
    {"acosh", "v", TYPE_VECTOR, FUNCTION_MATH, 10},
    {"asin", "v", TYPE_VECTOR, FUNCTION_MATH, 11},
    {"asinh", "v", TYPE_VECTOR, FUNCTION_MATH, 12},
    {"atan", "v", TYPE_VECTOR, FUNCTION_MATH, 13},
    {"atanh", "v", TYPE_VECTOR, FUNCTION_MATH, 14},
    {"cos", "v", TYPE_VECTOR, FUNCTION_MATH, 15},
    {"cosh", "v", TYPE_VECTOR, FUNCTION_MATH, 16},
    {"sin", "v", TYPE_VECTOR, FUNCTION_MATH, 17},
    {"sinh", "v", TYPE_VECTOR, FUNCTION_MATH, 18},
    {"tan", "v", TYPE_VECTOR, FUNCTION_MATH, 19},
    {"tanh", "v", TYPE_VECTOR, FUNCTION_MATH, 20},
    {"deg", "v", TYPE_VECTOR, FUNCTION_MATH, 21},
    {"rad", "v", TYPE_VECTOR, FUNCTION_MATH, 22},
};

static const char is_experimental[] = "it is experimental in Prometheus";
static const struct {
    const char *name, *reason;
} refusals[] = {
    {"irate", "it estimates from two samples: rate(m[1m]) is the exact rate of the last minute; of a running "
              "total, rate(m[2m])"},
    {"delta", "it extrapolates: m - m offset 5m is the exact difference"},
    {"holt_winters", is_experimental},
    {"double_exponential_smoothing", is_experimental},
    {"mad_over_time", is_experimental},
    {"first_over_time", is_experimental},
    {"ts_of_first_over_time", is_experimental},
    {"ts_of_last_over_time", is_experimental},
    {"ts_of_min_over_time", is_experimental},
    {"ts_of_max_over_time", is_experimental},
    {"sort_by_label", is_experimental},
    {"sort_by_label_desc", is_experimental},
    {"info", is_experimental},
    {"limitk", is_experimental},
    {"limit_ratio", is_experimental},
    {"histogram_quantiles", is_experimental},
};

const struct function_entry *functions_find(struct slice name)
{
    for (size_t i = 0; i < COUNT_OF(functions); i++) {
        if (slice_is(name, functions[i].name))
            return &functions[i];
    }
    return NULL;
}

const char *functions_name(enum function f)
{
    ASSERT(f != FUNCTION_NONE && f < FUNCTION_MATH && functions[f - 1].id == f);
    return functions[f - 1].name;
}

const char *functions_refusal(struct slice name)
{
    for (size_t i = 0; i < COUNT_OF(refusals); i++) {
        if (slice_is(name, refusals[i].name))
            return refusals[i].reason;
    }
    return NULL;
}

const char *functions_hint(struct slice name, char *buf)
{
    const char *names[COUNT_OF(functions) + 1];
    for (size_t i = 0; i < COUNT_OF(functions); i++)
        names[i] = functions[i].name;
    names[COUNT_OF(functions)] = NULL;
    return suggest_hint(name, names, buf);
}
