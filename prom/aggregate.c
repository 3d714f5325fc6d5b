#include "prom/aggregate.h"

#include "base/mem.h"
#include "prom/native.h"
#include "prom/number.h"
#include "prom/over.h"
#include "prom/rank.h"
#include "prom/sum.h"

#include <math.h>
#include <stdlib.h>

/* ---- one value for each group */

/* What is known of a group at a step. */
struct group {
    size_t count;
    struct sum sum;
    double extreme;
    double *values; /* room for those of the group, if the aggregation needs them all */
};

static bool needs_values(enum aggregate a)
{
    return a == AGGREGATE_QUANTILE || a == AGGREGATE_STDDEV || a == AGGREGATE_STDVAR || a == AGGREGATE_AVG;
}

/* NaN gives way to every number, as in Prometheus. */
static void add(enum aggregate a, struct group *g, double value)
{
    if (needs_values(a))
        g->values[g->count] = value;
    double sign = a == AGGREGATE_MIN ? -1 : 1;
    if (g->count == 0 || isnan(g->extreme) || sign * value > sign * g->extreme)
        g->extreme = value;
    sum_add(&g->sum, value);
    g->count++;
}

/* `parameter`: the quantile. */
static double result_of(enum aggregate a, struct group *g, double parameter)
{
    const struct points p = {NULL, g->values, g->count};
    switch (a) {
    case AGGREGATE_SUM:
        return sum_value(&g->sum);
    case AGGREGATE_AVG:
        return over_points(FUNCTION_AVG, 0, 0, &p);
    case AGGREGATE_COUNT:
        return (double)g->count;
    case AGGREGATE_GROUP:
        return 1;
    case AGGREGATE_QUANTILE:
        return over_quantile(parameter, g->values, g->count);
    case AGGREGATE_STDVAR:
        return over_variance(g->values, g->count);
    case AGGREGATE_STDDEV:
        return sqrt(over_variance(g->values, g->count));
    default:
        return g->extreme;
    }
}

static void aggregate_step(enum aggregate a, const struct vector *in, const struct groups *g, size_t step,
                           double parameter, struct vector *out)
{
    struct group *groups = xcalloc(g->count, sizeof *groups);
    double *values = xmalloc(in->series_count * sizeof *values);
    size_t *sizes = xcalloc(g->count, sizeof *sizes), used = 0;
    for (size_t i = 0; i < in->series_count; i++)
        sizes[g->of[i]]++;
    for (size_t i = 0; i < g->count; used += sizes[i++])
        groups[i].values = values + used;
    for (size_t i = 0; i < in->series_count; i++) {
        double value = vector_row(in, i)[step];
        if (!vector_is_absent(value))
            add(a, &groups[g->of[i]], value);
    }
    for (size_t i = 0; i < g->count; i++) {
        if (groups[i].count > 0)
            vector_row(out, i)[step] = result_of(a, &groups[i], parameter);
    }
    free(sizes);
    free(values);
    free(groups);
}

/* ---- topk, bottomk */

struct ranked {
    const struct labels *labels;
    size_t series;
    double value;
};

/* Greatest first, NaN last; equals by their labels. */
static int compare_ranked(const void *left, const void *right)
{
    const struct ranked *a = left, *b = right;
    if (isnan(a->value) != isnan(b->value))
        return isnan(a->value) ? 1 : -1;
    if (a->value > b->value || a->value < b->value)
        return a->value > b->value ? -1 : 1;
    return labels_compare(a->labels, b->labels);
}

/* Copies the first k values of each group at the step. */
static void rank_step(bool bottom, const struct vector *in, const struct groups *g, size_t step, double k,
                      struct vector *out)
{
    struct ranked *ranked = xmalloc(in->series_count * sizeof *ranked);
    double *bounds = xmalloc(g->count * sizeof *bounds);
    size_t *taken = xcalloc(g->count, sizeof *taken), count = 0;
    rank_bounds(in, g, step, k, bottom, bounds);
    for (size_t i = 0; i < in->series_count; i++) {
        double value = vector_row(in, i)[step];
        if (!vector_is_absent(value) && rank_of(value, bottom) >= bounds[g->of[i]])
            ranked[count++] = (struct ranked){&in->series[i], i, bottom ? -value : value};
    }
    qsort(ranked, count, sizeof *ranked, compare_ranked);
    for (size_t i = 0; i < count; i++) {
        size_t series = ranked[i].series;
        if ((double)++taken[g->of[series]] <= k)
            vector_row(out, series)[step] = vector_row(in, series)[step];
    }
    free(ranked);
    free(bounds);
    free(taken);
}

/* ---- count_values */

struct counted {
    size_t group, step;
    double value;
};

/* -0 is before 0: they are written differently. */
static int compare_numbers(double a, double b)
{
    if (isnan(a) || isnan(b))
        return !!isnan(a) - !!isnan(b);
    return a == b ? !!signbit(b) - !!signbit(a) : (a > b) - (a < b);
}

/* By group, then value, then step. */
static int compare_counted(const void *left, const void *right)
{
    const struct counted *a = left, *b = right;
    if (a->group != b->group)
        return a->group < b->group ? -1 : 1;
    int order = compare_numbers(a->value, b->value);
    return order != 0 ? order : (a->step > b->step) - (a->step < b->step);
}

static bool is_same_row(const struct counted *a, const struct counted *b)
{
    return a->group == b->group && compare_numbers(a->value, b->value) == 0;
}

static struct labels labels_of_count(struct fetch *fe, const struct node *n, const struct labels *group,
                                     double value)
{
    struct text text = {0};
    number_write(value, &text);
    struct slice copy = arena_copy(fe->arena, text_slice(&text));
    text_fini(&text);
    return labels_set(group, n->right->text, copy, fe->arena);
}

static bool write_counts(struct fetch *fe, const struct node *n, const struct groups *g,
                         const struct counted *counted, size_t count, struct vector *out, struct err *e)
{
    size_t rows = 0;
    for (size_t i = 0; i < count; i++)
        rows += i == 0 || !is_same_row(&counted[i - 1], &counted[i]);
    if (!budget_take(fe->budget, BUDGET_SERIES, rows, e) || !fetch_room(fe, rows, out, e))
        return false;
    rows = 0;
    for (size_t i = 0; i < count; i++) {
        if (i == 0 || !is_same_row(&counted[i - 1], &counted[i]))
            out->series[rows++] = labels_of_count(fe, n, &g->labels[counted[i].group], counted[i].value);
        double *to = &vector_row(out, rows - 1)[counted[i].step];
        *to = vector_is_absent(*to) ? 1 : *to + 1;
    }
    bool good = vector_unite(out, e);
    if (!good)
        fetch_release(fe, out);
    return good;
}

static bool count_values(struct fetch *fe, const struct node *n, const struct vector *in,
                         const struct groups *g, struct vector *out, struct err *e)
{
    const size_t values = in->series_count * in->step_count;
    if (!budget_work(fe->budget, values * sizeof(struct counted), e))
        return false;
    struct counted *counted = xmalloc(values * sizeof *counted);
    size_t count = 0;
    for (size_t i = 0; i < in->series_count; i++) {
        for (size_t step = 0; step < in->step_count; step++) {
            double value = vector_row(in, i)[step];
            if (!vector_is_absent(value))
                counted[count++] = (struct counted){g->of[i], step, value};
        }
    }
    qsort(counted, count, sizeof *counted, compare_counted);
    bool good = write_counts(fe, n, g, counted, count, out, e);
    free(counted);
    return good;
}

/* ---- */

/* Sums and means of histograms are histograms; of other aggregations, count and group only count them. */
static bool adds_natives(enum aggregate a)
{
    return a == AGGREGATE_SUM || a == AGGREGATE_AVG;
}

static bool check_natives(struct fetch *fe, const struct node *n, const struct vector *in, struct err *e)
{
    const enum aggregate a = n->aggregate;
    return adds_natives(a) || a == AGGREGATE_COUNT || a == AGGREGATE_GROUP ||
           native_refuse(fe->natives, in, "this aggregation", e);
}

static bool aggregate_groups(struct fetch *fe, const struct node *n, struct vector *in,
                             const struct groups *g, const double *parameter, struct vector *out,
                             struct err *e)
{
    bool ranks = aggregate_ranks(n->aggregate), good = true;
    const bool has_natives = adds_natives(n->aggregate) && native_any(fe->natives, in);
    if (!check_natives(fe, n, in, e))
        return false;
    if (n->aggregate == AGGREGATE_COUNT_VALUES)
        return count_values(fe, n, in, g, out, e);
    if (!fetch_room(fe, ranks ? in->series_count : g->count, out, e))
        return false;
    memcpy(out->series, ranks ? in->series : g->labels, out->series_count * sizeof *out->series);
    for (size_t step = 0; good && step < in->step_count; step++) {
        if (ranks)
            rank_step(n->aggregate == AGGREGATE_BOTTOMK, in, g, step, parameter[step], out);
        else
            aggregate_step(n->aggregate, in, g, step, parameter != NULL ? parameter[step] : 0, out);
        if (has_natives)
            good = native_sum_groups(fe, in, g, step, n->aggregate == AGGREGATE_AVG, out, e);
    }
    if (!good)
        fetch_release(fe, out);
    return good;
}

bool aggregate_run(struct fetch *fe, const struct node *n, struct vector *in, const double *parameter,
                   struct vector *out, struct err *e)
{
    struct labels *keys = xmalloc(in->series_count * sizeof *keys);
    struct groups g;
    for (size_t i = 0; i < in->series_count; i++) {
        keys[i] = labels_group(&in->series[i], &n->grouping, fe->arena);
        if (n->aggregate == AGGREGATE_COUNT_VALUES) /* which sets this label */
            keys[i] = labels_set(&keys[i], n->right->text, slice_of("", 0), fe->arena);
    }
    groups_init(&g, keys, in->series_count);
    free(keys);
    bool good = aggregate_groups(fe, n, in, &g, parameter, out, e);
    groups_fini(&g);
    fetch_release(fe, in);
    return good;
}
