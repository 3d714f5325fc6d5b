/* vector.h - series with a value per step: what every part of an expression comes to.
 *
 *   labels        step 0   1   2
 *   {path="/a"}        1   0   2
 *   {path="/b"}        -   -   7      `-`: VECTOR_ABSENT, which is no NaN of arithmetic
 *
 * Labels: sorted by name; of a metric its name is one of them (METRIC_LABEL). A scalar is one series
 *         without.
 * Owner : the values are the vector's, labels are the arena's of the question.
 */
#pragma once

#include "base/arena.h"
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
};

void vector_init(struct vector *v, size_t series_count, size_t step_count);
void vector_fini(struct vector *v);

static inline double *vector_row(const struct vector *v, size_t series)
{
    return &v->values[series * v->step_count];
}

/* Moves the series of `more` behind those of `v`; `more` is empty then. */
void vector_append(struct vector *v, struct vector *more);

/* A quiet NaN that no calculation comes to. */
double vector_absent(void);
bool vector_is_absent(double value);

/* Without the series that are absent at every step. */
void vector_drop_empty(struct vector *v);
/* Sorts `list` in place. */
struct labels labels_sorted(struct label *list, size_t count);
/* By labels: names and values in turn. */
int labels_compare(const struct labels *a, const struct labels *b);
struct labels labels_without_metric(const struct labels *l, struct arena *arena);
/* by and on keep what they list; without and ignoring all but that and the metric's name; one that is not
 * given nothing. */
bool grouping_keeps(const struct grouping *g, struct slice name);
/* Those that it keeps: of these labels or of new ones, which live as long. */
struct labels labels_group(const struct labels *l, const struct grouping *g, struct arena *arena);

/* Which series have the same labels: groups are numbered from 0 in the order of their labels. */
struct groups {
    size_t count;
    struct labels *labels; /* by group */
    size_t *of;            /* by series */
};

void groups_init(struct groups *g, const struct labels *keys, size_t count);
void groups_fini(struct groups *g);
