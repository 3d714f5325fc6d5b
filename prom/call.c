#include "prom/call.h"

#include "prom/functions.h"
#include "prom/math.h"
#include "prom/native_call.h"
#include "prom/node.h"
#include "prom/quantile.h"
#include "prom/relabel.h"
#include "prom/subquery.h"

#include <math.h>
#include <string.h>

#define SCALARS_MAX 2 /* a function has at most as many */

static const struct fetch_around nothing_around;

/* Ends a call: on failure `v` is released. */
static bool finish(struct fetch *fe, bool good, struct vector *v)
{
    if (!good)
        fetch_release(fe, v);
    return good;
}

static double seconds_at(const struct fetch *fe, size_t step)
{
    return (double)(fe->at_ms + (int64_t)step * fe->step_ms) / SECOND_MS;
}

/* ---- functions of ranges */

static bool over_range(struct fetch *fe, const struct node *n, const struct node *range,
                       const struct fetch_around *around, struct vector *out, struct err *e)
{
    bool good = range->kind == NODE_SUBQUERY ? subquery_run(fe, range, n->function, around->parameter, out, e)
                                             : fetch_run(fe, &range->selector, n->function, around, out, e);
    bool may_lack_labels = range->kind == NODE_SELECTOR && around->aggregate != NULL;
    if (!good || may_lack_labels || n->function == FUNCTION_ABSENT_RANGE)
        return good;
    return finish(fe, vector_unite(out, e), out);
}

static bool call_range(struct fetch *fe, const struct node *n, const struct fetch_around *around,
                       struct vector *out, struct err *e)
{
    const struct node *range = n->arguments[0], *number = n->argument_count > 1 ? n->arguments[1] : NULL;
    struct vector parameter = {0};
    if (range->type != TYPE_RANGE) {
        range = n->arguments[1];
        number = n->arguments[0];
    }
    if (number != NULL && !node_eval(fe, number, &nothing_around, &parameter, e))
        return false;
    struct fetch_around with = *around;
    with.parameter = parameter.values;
    bool good = over_range(fe, n, range, &with, out, e);
    fetch_release(fe, &parameter);
    return good;
}

/* ---- absent, absent_over_time */

/* The labels that the selector gives by one `=`. */
static struct labels labels_of_absent(struct fetch *fe, const struct node *n)
{
    const struct selector *s = &n->selector;
    struct labels labels = {0};
    for (size_t i = 0; n->kind == NODE_SELECTOR && i < s->matcher_count; i++) {
        const struct matcher *m = &s->matchers[i];
        bool is_again = false;
        for (size_t j = 0; j < i; j++)
            is_again |= slice_equal(s->matchers[j].name, m->name);
        if (!slice_is(m->name, METRIC_LABEL))
            labels =
                labels_set(&labels, m->name,
                           m->kind == MATCHER_EQUAL && !is_again ? m->value : slice_of("", 0), fe->arena);
    }
    return labels;
}

static bool call_absent(struct fetch *fe, const struct node *n, struct vector *out, struct err *e)
{
    struct vector in;
    bool is_range = n->function == FUNCTION_ABSENT_RANGE;
    if (!(is_range ? over_range(fe, n, n->arguments[0], &nothing_around, &in, e)
                   : node_eval(fe, n->arguments[0], &nothing_around, &in, e)))
        return false;
    bool good = fetch_room(fe, 1, out, e);
    for (size_t step = 0; good && step < out->step_count; step++) {
        bool is_there = false;
        for (size_t i = 0; i < in.series_count && !is_there; i++)
            is_there = !vector_is_absent(vector_row(&in, i)[step]);
        if (!is_there)
            out->values[step] = 1;
    }
    if (good)
        out->series[0] = labels_of_absent(fe, n->arguments[0]);
    fetch_release(fe, &in);
    return good;
}

/* ---- scalars */

static bool call_scalar(struct fetch *fe, const struct node *n, struct vector *out, struct err *e)
{
    struct vector in;
    if (!node_eval(fe, n->arguments[0], &nothing_around, &in, e))
        return false;
    bool good = native_refuse(fe->natives, &in, "scalar()", e) && fetch_room(fe, 1, out, e);
    for (size_t step = 0; good && step < out->step_count; step++) {
        size_t found = 0;
        for (size_t i = 0; i < in.series_count; i++) {
            double value = vector_row(&in, i)[step];
            if (!vector_is_absent(value) && found++ == 0)
                out->values[step] = value;
        }
        if (found != 1)
            out->values[step] = NAN;
    }
    fetch_release(fe, &in);
    return good;
}

/* time(), pi() */
static bool call_constant(struct fetch *fe, enum function f, struct vector *out, struct err *e)
{
    if (!fetch_room(fe, 1, out, e))
        return false;
    for (size_t step = 0; step < out->step_count; step++)
        out->values[step] = f == FUNCTION_PI ? M_PI : seconds_at(fe, step);
    return true;
}

/* ---- functions of each value */

static void map(struct fetch *fe, const struct node *n, const struct vector more[SCALARS_MAX],
                struct vector *v)
{
    for (size_t i = 0; i < v->series_count; i++) {
        double *row = vector_row(v, i);
        for (size_t step = 0; step < v->step_count; step++) {
            const double numbers[SCALARS_MAX] = {more[0].values != NULL ? more[0].values[step] : 0,
                                                 more[1].values != NULL ? more[1].values[step] : 0};
            if (vector_is_absent(row[step]))
                continue;
            row[step] =
                n->function == FUNCTION_TIMESTAMP ? seconds_at(fe, step) : math_apply(n, row[step], numbers);
        }
        v->series[i] = labels_without_metric(&v->series[i], fe->arena);
    }
}

static bool call_map(struct fetch *fe, const struct node *n, struct vector *out, struct err *e)
{
    struct vector more[SCALARS_MAX] = {{0}};
    bool good = n->argument_count > 0 ? node_eval(fe, n->arguments[0], &nothing_around, out, e)
                                      : call_constant(fe, FUNCTION_TIME, out, e);
    if (!good)
        return false;
    if (n->function != FUNCTION_TIMESTAMP)
        good = native_refuse(fe->natives, out, "this function", e);
    for (size_t i = 1; good && i < n->argument_count; i++)
        good = node_eval(fe, n->arguments[i], &nothing_around, &more[i - 1], e);
    if (good)
        map(fe, n, more, out);
    for (size_t i = 0; i < SCALARS_MAX; i++)
        fetch_release(fe, &more[i]);
    return finish(fe, good && vector_unite(out, e), out);
}

static bool call_timestamp(struct fetch *fe, const struct node *n, struct vector *out, struct err *e)
{
    const struct node *of = n->arguments[0];
    if (of->kind != NODE_SELECTOR)
        return call_map(fe, n, out, e);
    return fetch_run(fe, &of->selector, FUNCTION_TIMESTAMP, &nothing_around, out, e) &&
           finish(fe, vector_unite(out, e), out);
}

static bool call_sort(struct fetch *fe, const struct node *n, struct vector *out, struct err *e)
{
    return node_eval(fe, n->arguments[0], &nothing_around, out, e) &&
           finish(fe, native_refuse(fe->natives, out, functions_name(n->function), e), out);
}

/* ---- functions of histograms */

/* Makes a number of each histogram in place, and leaves the other values absent. */
static void map_natives(struct fetch *fe, enum function f, const struct vector numbers[SCALARS_MAX],
                        struct vector *v)
{
    for (size_t i = 0; i < v->series_count; i++) {
        double *row = vector_row(v, i);
        for (size_t step = 0; step < v->step_count; step++) {
            const struct native_numbers at = {numbers[0].values != NULL ? numbers[0].values[step] : 0,
                                              numbers[1].values != NULL ? numbers[1].values[step] : 0};
            row[step] = native_is(row[step]) ? native_apply(f, native_of(fe->natives, row[step]), at)
                                             : vector_absent();
        }
        v->series[i] = labels_without_metric(&v->series[i], fe->arena);
    }
    vector_drop_empty(v);
}

/* Quantiles or fractions of classic buckets, behind which come those of native histograms. */
static bool call_both(struct fetch *fe, enum function f, const struct vector numbers[SCALARS_MAX],
                      struct vector *in, struct vector *out, struct err *e)
{
    const struct quantile_ask ask = {f == FUNCTION_HISTOGRAM_FRACTION, numbers[0].values, numbers[1].values};
    struct vector natives;
    const bool is_any = native_any(fe->natives, in);
    if (!is_any)
        return quantile_of_buckets(fe, &ask, in, out, e);
    if (!fetch_room(fe, in->series_count, &natives, e)) {
        fetch_release(fe, in);
        return false;
    }
    memcpy(natives.series, in->series, in->series_count * sizeof *in->series);
    for (size_t i = 0; i < in->series_count * in->step_count; i++) {
        natives.values[i] = in->values[i];
        if (native_is(in->values[i]))
            in->values[i] = vector_absent();
    }
    map_natives(fe, f, numbers, &natives);
    if (!quantile_of_buckets(fe, &ask, in, out, e))
        return finish(fe, false, &natives);
    vector_append(out, &natives);
    return finish(fe, vector_unite(out, e), out);
}

/* A number, which would only be left out, is most likely a mistake. */
static bool check_all_natives(const struct node *n, const struct vector *v, struct err *e)
{
    bool good = true;
    for (size_t i = 0; good && i < v->series_count * v->step_count; i++)
        good = native_is(v->values[i]) || vector_is_absent(v->values[i]);
    return good || err_set(e, EX_USAGE,
                           "%s() is of native histograms, and there are numbers: ask for it of the histogram "
                           "itself, as increase(pages:latency[5m])",
                           functions_name(n->function));
}

static bool call_native(struct fetch *fe, const struct node *n, struct vector *out, struct err *e)
{
    struct vector numbers[SCALARS_MAX] = {{0}}, in;
    const size_t scalars = n->argument_count - 1;
    bool good = true;
    for (size_t i = 0; good && i < scalars; i++)
        good = node_eval(fe, n->arguments[i], &nothing_around, &numbers[i], e);
    good = good && node_eval(fe, n->arguments[scalars], &nothing_around, &in, e);
    if (good && (n->function == FUNCTION_HISTOGRAM_QUANTILE || n->function == FUNCTION_HISTOGRAM_FRACTION)) {
        good = call_both(fe, n->function, numbers, &in, out, e);
    } else if (good) {
        good = check_all_natives(n, &in, e);
        if (good)
            map_natives(fe, n->function, numbers, &in);
        *out = in;
        good = finish(fe, good && vector_unite(out, e), out);
    }
    for (size_t i = 0; i < SCALARS_MAX; i++)
        fetch_release(fe, &numbers[i]);
    return good;
}

bool call_run(struct fetch *fe, const struct node *n, const struct fetch_around *around, struct vector *out,
              struct err *e)
{
    switch (n->function) {
    case FUNCTION_ABSENT:
    case FUNCTION_ABSENT_RANGE:
        return call_absent(fe, n, out, e);
    case FUNCTION_SCALAR:
        return call_scalar(fe, n, out, e);
    case FUNCTION_TIME:
    case FUNCTION_PI:
        return call_constant(fe, n->function, out, e);
    case FUNCTION_TIMESTAMP:
        return call_timestamp(fe, n, out, e);
    case FUNCTION_VECTOR:
        return node_eval(fe, n->arguments[0], &nothing_around, out, e);
    case FUNCTION_SORT:
    case FUNCTION_SORT_DESC:
        return call_sort(fe, n, out, e);
    case FUNCTION_HISTOGRAM_QUANTILE:
    case FUNCTION_HISTOGRAM_FRACTION:
    case FUNCTION_HISTOGRAM_COUNT:
    case FUNCTION_HISTOGRAM_SUM:
    case FUNCTION_HISTOGRAM_AVG:
    case FUNCTION_HISTOGRAM_STDDEV:
    case FUNCTION_HISTOGRAM_STDVAR:
        return call_native(fe, n, out, e);
    case FUNCTION_LABEL_REPLACE:
    case FUNCTION_LABEL_JOIN:
        return node_eval(fe, n->arguments[0], &nothing_around, out, e) &&
               finish(fe, relabel_run(fe, n, out, e), out);
    default:
        return function_takes_range(n->function) ? call_range(fe, n, around, out, e)
                                                 : call_map(fe, n, out, e);
    }
}
