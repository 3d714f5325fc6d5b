#include "prom/eval.h"

#include "base/mem.h"
#include "prom/aggregate.h"
#include "prom/binary.h"
#include "prom/call.h"
#include "prom/node.h"
#include "prom/parse.h"
#include "prom/rank.h"

#include <inttypes.h>
#include <stdlib.h>

#define ARENA_CHUNK_BYTES ((size_t)16 << 10)

static const struct fetch_around nothing_around;

static bool eval_number(struct fetch *fe, const struct node *n, struct vector *out, struct err *e)
{
    if (!fetch_room(fe, 1, out, e))
        return false;
    for (size_t i = 0; i < out->step_count; i++)
        out->values[i] = n->number;
    return true;
}

static bool eval_negation(struct fetch *fe, const struct node *n, struct vector *out, struct err *e)
{
    if (!node_eval(fe, n->left, &nothing_around, out, e))
        return false;
    for (size_t i = 0; i < out->series_count; i++) {
        double *row = vector_row(out, i);
        for (size_t step = 0; step < out->step_count; step++)
            row[step] = vector_is_absent(row[step]) ? row[step] : -row[step];
        out->series[i] = labels_without_metric(&out->series[i], fe->arena);
    }
    bool good = vector_unite(out, e);
    if (!good)
        fetch_release(fe, out);
    return good;
}

static bool eval_aggregate(struct fetch *fe, const struct node *n, struct vector *out, struct err *e)
{
    struct vector in, k = {0};
    bool has_number = n->right != NULL && n->aggregate != AGGREGATE_COUNT_VALUES;
    if (has_number && !node_eval(fe, n->right, &nothing_around, &k, e))
        return false;
    const struct fetch_around around = {.aggregate = n, .k = k.values};
    bool good = node_eval(fe, n->left, &around, &in, e) && aggregate_run(fe, n, &in, k.values, out, e);
    fetch_release(fe, &k);
    return good;
}

static bool eval_binary(struct fetch *fe, const struct node *n, struct vector *out, struct err *e)
{
    struct vector left, right;
    if (!node_eval(fe, n->left, &nothing_around, &left, e))
        return false;
    if (!node_eval(fe, n->right, &nothing_around, &right, e)) {
        fetch_release(fe, &left);
        return false;
    }
    return binary_run(fe, n, &left, &right, out, e);
}

bool node_eval(struct fetch *fe, const struct node *n, const struct fetch_around *around, struct vector *out,
               struct err *e)
{
    *out = (struct vector){0};
    if (!budget_take(fe->budget, BUDGET_POINTS, fe->step_count, e))
        return false;
    switch (n->kind) {
    case NODE_NUMBER:
        return eval_number(fe, n, out, e);
    case NODE_SELECTOR:
        return fetch_run(fe, &n->selector, FUNCTION_NONE, around, out, e);
    case NODE_CALL:
        return call_run(fe, n, around, out, e);
    case NODE_AGGREGATE:
        return eval_aggregate(fe, n, out, e);
    case NODE_BINARY:
        return eval_binary(fe, n, out, e);
    default:
        return eval_negation(fe, n, out, e);
    }
}

static bool count_steps(const struct eval_question *q, size_t *count, struct err *e)
{
    uint64_t max = q->limits.points_max < EVAL_STEPS_MAX ? q->limits.points_max : EVAL_STEPS_MAX;
    *count = q->step_ms > 0 ? (size_t)((q->to_ms - q->from_ms) / q->step_ms) + 1 : 1;
    return *count <= max || err_set(e, EX_UNAVAILABLE,
                                    "the range has %zu steps, more than %" PRIu64
                                    " points a series%s: ask for a shorter range or a longer step",
                                    *count, max, max < EVAL_STEPS_MAX ? " (query.points_max)" : "");
}

struct sorted {
    struct labels labels;
    double rank; /* rank_of() its value if that orders the answer, as with topk or sort; else 0 */
    size_t series;
};

static int compare_sorted(const void *left, const void *right)
{
    const struct sorted *a = left, *b = right;
    if (a->rank > b->rank || a->rank < b->rank)
        return a->rank > b->rank ? -1 : 1;
    return labels_compare(&a->labels, &b->labels);
}

static void sort_series(struct vector *v, const struct node *n)
{
    bool by_aggregate = n->kind == NODE_AGGREGATE && aggregate_ranks(n->aggregate);
    bool by_call =
        n->kind == NODE_CALL && (n->function == FUNCTION_SORT || n->function == FUNCTION_SORT_DESC);
    bool ranks = v->step_count == 1 && (by_aggregate || by_call);
    bool bottom = by_call ? n->function == FUNCTION_SORT : n->aggregate == AGGREGATE_BOTTOMK;
    struct sorted *sorted = xmalloc(v->series_count * sizeof *sorted);
    size_t row_bytes = v->step_count * sizeof *v->values;
    double *values = xmalloc(v->series_count * row_bytes);
    for (size_t i = 0; i < v->series_count; i++) {
        double rank = ranks ? rank_of(v->values[i], bottom) : 0;
        sorted[i] = (struct sorted){v->series[i], rank, i};
    }
    qsort(sorted, v->series_count, sizeof *sorted, compare_sorted);
    for (size_t i = 0; i < v->series_count; i++) {
        v->series[i] = sorted[i].labels;
        memcpy(values + i * v->step_count, vector_row(v, sorted[i].series), row_bytes);
    }
    free(v->values);
    free(sorted);
    v->values = values;
}

static bool check_series(const struct vector *v, const struct query_limits *limits, struct err *e)
{
    return v->series_count <= limits->series_max ||
           err_set(e, EX_UNAVAILABLE,
                   "the answer has %zu series, more than %" PRIu64
                   " (query.series_max): ask for topk(10, …), sum by (…), or fewer by their labels",
                   v->series_count, limits->series_max);
}

bool eval_run(struct store *st, const struct eval_question *q, struct eval_answer *a, struct err *e)
{
    struct budget budget;
    struct fetch fe = {.store = st,
                       .arena = &a->arena,
                       .budget = &budget,
                       .at_ms = q->from_ms,
                       .step_ms = q->step_ms,
                       .start_ms = q->from_ms,
                       .end_ms = q->step_ms > 0 ? q->to_ms : q->from_ms};
    budget_init(&budget, q->limits.rows_max, st->deadline);
    *a = (struct eval_answer){.from_ms = q->from_ms, .step_ms = q->step_ms};
    arena_init(&a->arena, ARENA_CHUNK_BYTES);
    struct node *n = parse_expression(q->text, &a->arena, e);
    bool good =
        n != NULL && count_steps(q, &fe.step_count, e) && node_eval(&fe, n, &nothing_around, &a->vector, e);
    if (good) {
        a->type = n->type;
        vector_drop_empty(&a->vector);
        good = vector_unite(&a->vector, e) && check_series(&a->vector, &q->limits, e);
    }
    if (good)
        sort_series(&a->vector, n);
    else
        eval_fini(a);
    return good;
}

void eval_fini(struct eval_answer *a)
{
    vector_fini(&a->vector);
    arena_fini(&a->arena);
}
