#include "prom/vector.h"

#include "base/check.h"
#include "base/mem.h"

#include <stdlib.h>

#define ABSENT_BITS 0x7FF8000000000AB5u

void vector_init(struct vector *v, size_t series_count, size_t step_count)
{
    *v = (struct vector){.step_count = step_count, .series_count = series_count};
    v->series = xcalloc(series_count, sizeof *v->series);
    v->values = xmalloc(series_count * step_count * sizeof *v->values);
    for (size_t i = 0; i < series_count * step_count; i++)
        v->values[i] = vector_absent();
}

void vector_fini(struct vector *v)
{
    free(v->series);
    free(v->values);
    *v = (struct vector){0};
}

void vector_append(struct vector *v, struct vector *more)
{
    ASSERT(v->step_count == more->step_count);
    more->reserved += v->reserved;
    if (v->series_count == 0) {
        vector_fini(v);
        *v = *more;
        *more = (struct vector){0};
        return;
    }
    size_t count = v->series_count + more->series_count, steps = v->step_count;
    v->series = xrealloc(v->series, count * sizeof *v->series);
    v->values = xrealloc(v->values, count * steps * sizeof *v->values);
    memcpy(v->series + v->series_count, more->series, more->series_count * sizeof *v->series);
    memcpy(vector_row(v, v->series_count), more->values, more->series_count * steps * sizeof *v->values);
    v->series_count = count;
    v->reserved = more->reserved;
    vector_fini(more);
}

double vector_absent(void)
{
    const uint64_t bits = ABSENT_BITS;
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

bool vector_is_absent(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits == ABSENT_BITS;
}

static bool is_empty(const struct vector *v, size_t series)
{
    const double *row = vector_row(v, series);
    for (size_t i = 0; i < v->step_count; i++) {
        if (!vector_is_absent(row[i]))
            return false;
    }
    return true;
}

void vector_drop_empty(struct vector *v)
{
    size_t kept = 0;
    for (size_t i = 0; i < v->series_count; i++) {
        if (is_empty(v, i))
            continue;
        v->series[kept] = v->series[i];
        memmove(vector_row(v, kept), vector_row(v, i), v->step_count * sizeof *v->values);
        kept++;
    }
    v->series_count = kept;
}

int labels_compare(const struct labels *a, const struct labels *b)
{
    for (size_t i = 0; i < a->count && i < b->count; i++) {
        int order = slice_compare(a->list[i].name, b->list[i].name);
        if (order == 0)
            order = slice_compare(a->list[i].value, b->list[i].value);
        if (order != 0)
            return order;
    }
    return (a->count > b->count) - (a->count < b->count);
}

static int compare_names(const void *left, const void *right)
{
    const struct label *a = left, *b = right;
    return slice_compare(a->name, b->name);
}

struct labels labels_sorted(struct label *list, size_t count)
{
    qsort(list, count, sizeof *list, compare_names);
    return (struct labels){list, count};
}

static bool is_listed(const struct grouping *g, struct slice name)
{
    for (size_t i = 0; i < g->count; i++) {
        if (slice_equal(g->labels[i], name))
            return true;
    }
    return false;
}

bool grouping_keeps(const struct grouping *g, struct slice name)
{
    return g->excludes ? !slice_is(name, METRIC_LABEL) && !is_listed(g, name) : is_listed(g, name);
}

struct labels labels_group(const struct labels *l, const struct grouping *g, struct arena *arena)
{
    size_t kept = 0;
    for (size_t i = 0; i < l->count; i++)
        kept += grouping_keeps(g, l->list[i].name);
    if (kept == l->count)
        return *l;
    struct label *list = arena_add(arena, kept * sizeof *list), *next = list;
    for (size_t i = 0; i < l->count; i++) {
        if (grouping_keeps(g, l->list[i].name))
            *next++ = l->list[i];
    }
    return (struct labels){list, kept};
}

struct slice labels_find(const struct labels *l, struct slice name)
{
    for (size_t i = 0; i < l->count; i++) {
        if (slice_equal(l->list[i].name, name))
            return l->list[i].value;
    }
    return slice_of("", 0);
}

struct labels labels_set(const struct labels *l, struct slice name, struct slice value, struct arena *arena)
{
    struct label *list = arena_add(arena, (l->count + 1) * sizeof *list);
    size_t count = 0;
    for (size_t i = 0; i < l->count; i++) {
        if (!slice_equal(l->list[i].name, name))
            list[count++] = l->list[i];
    }
    if (value.len > 0)
        list[count++] = (struct label){name, value};
    return labels_sorted(list, count);
}

struct labels labels_without_metric(const struct labels *l, struct arena *arena)
{
    const struct grouping all = {.excludes = true};
    return labels_group(l, &all, arena);
}

struct keyed {
    const struct labels *labels;
    size_t series;
};

static int compare_keyed(const void *left, const void *right)
{
    const struct keyed *a = left, *b = right;
    int order = labels_compare(a->labels, b->labels);
    return order != 0 ? order : (a->series > b->series) - (a->series < b->series);
}

void groups_init(struct groups *g, const struct labels *keys, size_t count)
{
    struct keyed *sorted = xmalloc(count * sizeof *sorted);
    *g = (struct groups){.labels = xcalloc(count, sizeof *g->labels), .of = xcalloc(count, sizeof *g->of)};
    bool in_order = true;
    for (size_t i = 0; i < count; i++) {
        sorted[i] = (struct keyed){&keys[i], i};
        in_order = in_order && (i == 0 || labels_compare(&keys[i - 1], &keys[i]) <= 0);
    }
    if (!in_order)
        qsort(sorted, count, sizeof *sorted, compare_keyed);
    for (size_t i = 0; i < count; i++) {
        if (i == 0 || labels_compare(sorted[i].labels, sorted[i - 1].labels) != 0)
            g->labels[g->count++] = *sorted[i].labels;
        g->of[sorted[i].series] = g->count - 1;
    }
    free(sorted);
}

void groups_fini(struct groups *g)
{
    free(g->labels);
    free(g->of);
    *g = (struct groups){0};
}

bool vector_unite(struct vector *v, struct err *e)
{
    struct groups g;
    size_t steps = v->step_count;
    groups_init(&g, v->series, v->series_count);
    bool good = true, is_needed = g.count < v->series_count;
    if (is_needed) {
        double *values = xmalloc(g.count * steps * sizeof *values);
        for (size_t i = 0; i < g.count * steps; i++)
            values[i] = vector_absent();
        for (size_t i = 0; i < v->series_count; i++) {
            double *to = &values[g.of[i] * steps];
            for (size_t step = 0; step < steps; step++) {
                if (vector_is_absent(vector_row(v, i)[step]))
                    continue;
                good = good && vector_is_absent(to[step]);
                to[step] = vector_row(v, i)[step];
            }
        }
        free(v->values);
        v->values = values;
        memcpy(v->series, g.labels, g.count * sizeof *v->series);
    }
    v->series_count = g.count;
    groups_fini(&g);
    return good || err_set(e, EX_USAGE,
                           "two series of the same labels at one time: ask for one metric, or sum by (…)");
}
