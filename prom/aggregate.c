#include "prom/aggregate.h"

#include "base/mem.h"
#include "prom/rank.h"

#include <math.h>
#include <stdlib.h>

/* NaN gives way to every number, as in Prometheus. */
static double combine(enum aggregate a, double so_far, double value)
{
    switch (a) {
    case AGGREGATE_MIN:
        return value < so_far || isnan(so_far) ? value : so_far;
    case AGGREGATE_MAX:
        return value > so_far || isnan(so_far) ? value : so_far;
    case AGGREGATE_COUNT:
        return so_far + 1;
    default:
        return so_far + value;
    }
}

static void aggregate_step(enum aggregate a, const struct vector *in, const struct groups *g, size_t step,
                           struct vector *out)
{
    double *counts = xcalloc(g->count, sizeof *counts);
    for (size_t i = 0; i < in->series_count; i++) {
        double value = vector_row(in, i)[step], *to = &vector_row(out, g->of[i])[step];
        if (vector_is_absent(value))
            continue;
        if (counts[g->of[i]]++ == 0)
            *to = a == AGGREGATE_COUNT ? 1 : value;
        else
            *to = combine(a, *to, value);
    }
    for (size_t i = 0; a == AGGREGATE_AVG && i < g->count; i++) {
        if (counts[i] > 0)
            vector_row(out, i)[step] /= counts[i];
    }
    free(counts);
}

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

bool aggregate_run(struct fetch *fe, const struct node *n, struct vector *in, const double *k,
                   struct vector *out, struct err *e)
{
    struct labels *keys = xmalloc(in->series_count * sizeof *keys);
    struct groups g;
    bool ranks = aggregate_ranks(n->aggregate);
    for (size_t i = 0; i < in->series_count; i++)
        keys[i] = labels_group(&in->series[i], &n->grouping, fe->arena);
    groups_init(&g, keys, in->series_count);
    free(keys);
    bool good = fetch_room(fe, ranks ? in->series_count : g.count, out, e);
    if (good)
        memcpy(out->series, ranks ? in->series : g.labels, out->series_count * sizeof *out->series);
    for (size_t step = 0; good && step < in->step_count; step++) {
        if (ranks)
            rank_step(n->aggregate == AGGREGATE_BOTTOMK, in, &g, step, k[step], out);
        else
            aggregate_step(n->aggregate, in, &g, step, out);
    }
    groups_fini(&g);
    fetch_release(fe, in);
    return good;
}
