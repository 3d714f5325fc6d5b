#include "prom/eval.h"

#include "base/mem.h"
#include "prom/aggregate.h"
#include "prom/binary.h"
#include "prom/call.h"
#include "prom/functions.h"
#include "prom/node.h"
#include "prom/parse.h"
#include "prom/rank.h"

#include <inttypes.h>
#include <stdlib.h>

#define ARENA_CHUNK_BYTES ((size_t)16 << 10)
#define PARTS             8 /* if the steps are too many at once */

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
    bool good = node_eval(fe, n->left, &nothing_around, out, e);
    if (!good)
        return false;
    for (size_t i = 0; good && i < out->series_count; i++) {
        double *row = vector_row(out, i);
        for (size_t step = 0; good && step < out->step_count; step++) {
            if (native_is(row[step]))
                good = native_scale(fe, row[step], -1, false, &row[step], e);
            else if (!vector_is_absent(row[step]))
                row[step] = -row[step];
        }
        out->series[i] = labels_without_metric(&out->series[i], fe->arena);
    }
    good = good && vector_unite(out, e);
    if (!good)
        fetch_release(fe, out);
    return good;
}

/* ---- aggregations */

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

/* Moves the values of some steps to their place in a vector of all, and frees `part`. */
static bool widen(struct fetch *fe, struct vector *part, size_t first, struct vector *out, struct err *e)
{
    struct vector wide;
    vector_drop_empty(part);
    bool good = fetch_room(fe, part->series_count, &wide, e);
    for (size_t i = 0; good && i < part->series_count; i++) {
        wide.series[i] = part->series[i];
        memcpy(vector_row(&wide, i) + first, vector_row(part, i), part->step_count * sizeof *part->values);
    }
    fetch_release(fe, part);
    if (!good)
        return false;
    good = fetch_append(fe, out, &wide, e) && vector_unite(out, e);
    fetch_shrink(fe, out);
    return good;
}

/* If an aggregation has more values at once than the budget has, it is evaluated for some of the steps at a
 * time: a step needs none of the others, and the result is mostly small. */
static bool eval_by_parts(struct fetch *fe, const struct node *n, struct vector *out, struct err *e)
{
    size_t count = fe->step_count;
    fe->budget->is_full = false;
    if (eval_aggregate(fe, n, out, e))
        return true;
    if (!fe->budget->is_full || count == 1)
        return false;
    count = (count + PARTS - 1) / PARTS;
    vector_init(out, 0, fe->step_count);
    for (size_t first = 0; first < fe->step_count;) {
        struct fetch some = *fe;
        struct vector part;
        some.at_ms = fe->at_ms + (int64_t)first * fe->step_ms;
        some.step_count = count < fe->step_count - first ? count : fe->step_count - first;
        fe->budget->is_full = false;
        if (eval_aggregate(&some, n, &part, e)) {
            if (!widen(fe, &part, first, out, e)) {
                fetch_release(fe, out);
                return false;
            }
            first += some.step_count;
        } else if (fe->budget->is_full && some.step_count > 1) {
            count = (some.step_count + PARTS - 1) / PARTS;
        } else {
            fetch_release(fe, out);
            return false;
        }
    }
    return true;
}

/* ---- operators */

/* Is the left side of `and` read from the store, so that it may be reduced to what the right side has? */
static bool is_reducible(const struct node *n)
{
    const struct node *left = n->left;
    bool is_range = left->kind == NODE_CALL && function_takes_range(left->function);
    return n->op == OP_AND && !n->grouping.is_given &&
           (left->kind == NODE_SELECTOR ||
            (is_range && left->argument_count == 1 && left->arguments[0]->kind == NODE_SELECTOR));
}

static bool eval_binary(struct fetch *fe, const struct node *n, struct vector *out, struct err *e)
{
    struct vector left, right;
    struct fetch_around around = {0};
    if (!node_eval(fe, n->right, &nothing_around, &right, e))
        return false;
    if (is_reducible(n))
        around.only = &right;
    if (!node_eval(fe, n->left, &around, &left, e)) {
        fetch_release(fe, &right);
        return false;
    }
    return binary_run(fe, n, &left, &right, out, e);
}

/* ---- what is the same at every step */

static bool is_constant(const struct node *n)
{
    if (n == NULL || n->kind == NODE_NUMBER || n->kind == NODE_TEXT)
        return true;
    if (n->kind == NODE_SELECTOR || n->kind == NODE_SUBQUERY)
        return n->selector.base != BASE_STEP;
    if (n->kind == NODE_CALL) {
        bool is_of_time = n->function == FUNCTION_TIME || n->function == FUNCTION_TIMESTAMP ||
                          n->function == FUNCTION_PREDICT || n->argument_count == 0;
        for (size_t i = 0; !is_of_time && i < n->argument_count; i++)
            is_of_time = !is_constant(n->arguments[i]);
        return !is_of_time;
    }
    return is_constant(n->left) && is_constant(n->right);
}

/* By @ an expression may be the same at every step: it is evaluated once. */
static bool eval_constant(struct fetch *fe, const struct node *n, struct vector *out, struct err *e)
{
    struct fetch once = *fe;
    struct vector found;
    once.step_count = 1;
    if (!node_eval(&once, n, &nothing_around, &found, e))
        return false;
    vector_drop_empty(&found);
    bool good = fetch_room(fe, found.series_count, out, e);
    for (size_t i = 0; good && i < found.series_count; i++) {
        out->series[i] = found.series[i];
        for (size_t step = 0; step < out->step_count; step++)
            vector_row(out, i)[step] = found.values[i];
    }
    fetch_release(&once, &found);
    return good;
}

bool node_eval(struct fetch *fe, const struct node *n, const struct fetch_around *around, struct vector *out,
               struct err *e)
{
    *out = (struct vector){0};
    if (!budget_take(fe->budget, BUDGET_POINTS, fe->step_count, e))
        return false;
    bool is_read = n->kind != NODE_NUMBER && around->aggregate == NULL && around->only == NULL;
    if (is_read && fe->step_count > 1 && is_constant(n))
        return eval_constant(fe, n, out, e);
    switch (n->kind) {
    case NODE_NUMBER:
        return eval_number(fe, n, out, e);
    case NODE_SELECTOR:
        return fetch_run(fe, &n->selector, FUNCTION_NONE, around, out, e);
    case NODE_CALL:
        return call_run(fe, n, around, out, e);
    case NODE_AGGREGATE:
        return eval_by_parts(fe, n, out, e);
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

static bool check_series(const struct vector *v, const struct eval_question *q, struct err *e)
{
    const struct query_limits *limits = &q->limits;
    bool is_cut = q->series_max > 0 && q->series_max <= limits->series_max;
    return is_cut || v->series_count <= limits->series_max ||
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
                       .natives = &a->natives,
                       .at_ms = q->from_ms,
                       .step_ms = q->step_ms,
                       .start_ms = q->from_ms,
                       .end_ms = q->step_ms > 0 ? q->to_ms : q->from_ms};
    budget_init(&budget, q->limits.rows_max, st, &a->arena);
    *a = (struct eval_answer){.from_ms = q->from_ms, .step_ms = q->step_ms};
    arena_init(&a->arena, ARENA_CHUNK_BYTES);
    natives_init(&a->natives, q->limits.sketches_max);
    fe.holes = a->holes = arena_add(&a->arena, st->report_count * sizeof *a->holes);
    for (size_t r = 0; r < st->report_count; r++)
        a->holes[r] = MISSED_NOWHERE;
    fe.is_read = a->is_read = arena_add(&a->arena, st->report_count * sizeof *a->is_read);
    memset(a->is_read, 0, st->report_count * sizeof *a->is_read);
    struct node *n = parse_expression(q->text, &a->arena, e);
    bool good =
        n != NULL && count_steps(q, &fe.step_count, e) && node_eval(&fe, n, &nothing_around, &a->vector, e);
    if (good) {
        a->type = n->type;
        vector_drop_empty(&a->vector);
        good = vector_unite(&a->vector, e) && check_series(&a->vector, q, e);
    }
    if (!good) {
        eval_fini(a);
        return false;
    }
    sort_series(&a->vector, n);
    a->is_cut = q->series_max > 0 && a->vector.series_count > q->series_max;
    if (a->is_cut)
        a->vector.series_count = q->series_max;
    return true;
}

void eval_fini(struct eval_answer *a)
{
    vector_fini(&a->vector);
    natives_fini(&a->natives);
    arena_fini(&a->arena);
}
