/* vector.h - series with one value per step: the result of every part of an expression.
 *
 *   labels        step 0   1   2
 *   {path="/a"}        1   0   2
 *   {path="/b"}        -   -   7      `-`: vector_absent()
 *
 * Labels: sorted by name; a metric's name is one of them (METRIC_LABEL). A scalar is one series without
 *         labels.
 * Owner : the vector owns its values, the arena of the question owns the labels.
 */
#pragma once

#include "base/arena.h"
#include "base/err.h"
#include "prom/ast.h"

#include <stdbool.h>
#include <stdint.h>

struct label {
    struct slice name, value;
};

struct labels {
    const struct label *list;
    size_t count;
};

struct vector {
    size_t step_count, series_count;
    struct labels *series; /* owned */
    double *values;        /* [series × step_count + step], owned */
    size_t reserved;       /* what it took of the budget's values (fetch.h) */
};

void vector_init(struct vector *v, size_t series_count, size_t step_count);
void vector_fini(struct vector *v);

static inline double *vector_row(const struct vector *v, size_t series)
{
    return &v->values[series * v->step_count];
}

/* Moves the series of `more` behind those of `v` and leaves `more` empty. */
void vector_append(struct vector *v, struct vector *more);

/* A quiet NaN that no calculation yields. */
double vector_absent(void);
bool vector_is_absent(double value);

/* Removes the series that are absent at every step. */
void vector_drop_empty(struct vector *v);
/* Makes one series of those with equal labels. EX_USAGE: two of them have a value at one step. */
bool vector_unite(struct vector *v, struct err *e) MUST_CHECK;
/* Sorts `list` in place. */
struct labels labels_sorted(struct label *list, size_t count);
/* Compares names and values in turn. */
int labels_compare(const struct labels *a, const struct labels *b);
/* The value of a label; empty: there is none. */
struct slice labels_find(const struct labels *l, struct slice name);
/* The same labels but for one, which becomes `value`; an empty value removes it. Texts are borrowed. */
struct labels labels_set(const struct labels *l, struct slice name, struct slice value, struct arena *arena);
struct labels labels_without_metric(const struct labels *l, struct arena *arena);
/* by and on keep the labels that they list. without and ignoring keep all others but the metric's name. A
 * grouping that is not given keeps none. */
bool grouping_keeps(const struct grouping *g, struct slice name);
/* The labels that a grouping keeps: `*l` itself, or a new list in `arena` with the same texts. */
struct labels labels_group(const struct labels *l, const struct grouping *g, struct arena *arena);

/* Groups of series with equal labels, numbered from 0 in the order of their labels. */
struct groups {
    size_t count;
    struct labels *labels; /* labels of each group */
    size_t *of;            /* group of each series */
};

void groups_init(struct groups *g, const struct labels *keys, size_t count);
void groups_fini(struct groups *g);
