#include "prom/binary.h"

#include "base/mem.h"

#include <math.h>
#include <stdlib.h>

#define NO_SERIES SIZE_MAX

static bool compare(enum op op, double a, double b)
{
    switch (op) {
    case OP_EQUAL:
        return a == b;
    case OP_NOT_EQUAL:
        return a != b;
    case OP_LESS:
        return a < b;
    case OP_LESS_EQUAL:
        return a <= b;
    case OP_GREATER:
        return a > b;
    default:
        return a >= b;
    }
}

static double calculate(enum op op, double a, double b)
{
    switch (op) {
    case OP_ADD:
        return a + b;
    case OP_SUBTRACT:
        return a - b;
    case OP_MULTIPLY:
        return a * b;
    case OP_DIVIDE:
        return a / b;
    case OP_MODULO:
        return fmod(a, b);
    default:
        return pow(a, b);
    }
}

/* `kept`: the value that a filter lets pass. */
static double apply(const struct node *n, double a, double b, double kept)
{
    if (vector_is_absent(a) || vector_is_absent(b))
        return vector_absent();
    if (!op_is_comparison(n->op))
        return calculate(n->op, a, b);
    bool is_true = compare(n->op, a, b);
    if (n->says_bool)
        return is_true;
    return is_true ? kept : vector_absent();
}

static bool keeps_name(const struct node *n)
{
    return op_is_comparison(n->op) && !n->says_bool;
}

/* At least one side is a scalar, which is one series. */
static bool with_scalar(struct fetch *fe, const struct node *n, const struct vector *left,
                        const struct vector *right, struct vector *out, struct err *e)
{
    bool left_varies = n->left->type == TYPE_VECTOR, right_varies = n->right->type == TYPE_VECTOR;
    const struct vector *many = right_varies ? right : left;
    if (!fetch_room(fe, many->series_count, out, e))
        return false;
    for (size_t i = 0; i < many->series_count; i++) {
        const double *a = vector_row(left, left_varies ? i : 0), *b = vector_row(right, right_varies ? i : 0);
        for (size_t step = 0; step < out->step_count; step++)
            vector_row(out, i)[step] = apply(n, a[step], b[step], right_varies ? b[step] : a[step]);
        out->series[i] = keeps_name(n) ? many->series[i] : labels_without_metric(&many->series[i], fe->arena);
    }
    return true;
}

/* Groups the series of both sides by the labels to match: the left ones first, the right ones behind them. */
static void group_sides(struct fetch *fe, const struct node *n, const struct vector *left,
                        const struct vector *right, struct groups *g)
{
    const struct grouping all = {.excludes = true};
    const struct grouping *by = n->grouping.is_given ? &n->grouping : &all;
    size_t count = left->series_count + right->series_count;
    struct labels *keys = xmalloc(count * sizeof *keys);
    for (size_t i = 0; i < count; i++) {
        const struct labels *l =
            i < left->series_count ? &left->series[i] : &right->series[i - left->series_count];
        keys[i] = labels_group(l, by, fe->arena);
    }
    groups_init(g, keys, count);
    free(keys);
}

/* Sets `picked` for each group: its one series of `v` that has a value at the step. `of`: the group of each
 * series. `needed`: groups that have NO_SERIES in it are skipped; NULL: none is skipped. */
static bool pick(const struct vector *v, const size_t *of, size_t step, const size_t *needed, size_t *picked,
                 size_t group_count, struct err *e)
{
    for (size_t i = 0; i < group_count; i++)
        picked[i] = NO_SERIES;
    for (size_t i = 0; i < v->series_count; i++) {
        if (vector_is_absent(vector_row(v, i)[step]) || (needed != NULL && needed[of[i]] == NO_SERIES))
            continue;
        if (picked[of[i]] != NO_SERIES)
            return err_set(e, EX_USAGE,
                           "two series of the %s side have the same labels to be matched by, and vectors are "
                           "matched one to one: add them up by these labels first",
                           needed != NULL ? "left" : "right");
        picked[of[i]] = i;
    }
    return true;
}

static bool match_one_to_one(struct fetch *fe, const struct node *n, const struct vector *left,
                             const struct vector *right, const struct groups *g, struct vector *out,
                             struct err *e)
{
    if (!fetch_room(fe, g->count, out, e))
        return false;
    size_t *lefts = xmalloc(g->count * sizeof *lefts), *rights = xmalloc(g->count * sizeof *rights);
    bool good = true;
    memcpy(out->series, g->labels, g->count * sizeof *out->series);
    for (size_t i = left->series_count; keeps_name(n) && !n->grouping.is_given && i-- > 0;)
        out->series[g->of[i]] = left->series[i];
    for (size_t step = 0; good && step < out->step_count; step++) {
        good = pick(right, g->of + left->series_count, step, NULL, rights, g->count, e) &&
               pick(left, g->of, step, rights, lefts, g->count, e);
        for (size_t i = 0; good && i < g->count; i++) {
            if (lefts[i] == NO_SERIES || rights[i] == NO_SERIES)
                continue;
            double a = vector_row(left, lefts[i])[step], b = vector_row(right, rights[i])[step];
            vector_row(out, i)[step] = apply(n, a, b, a);
        }
    }
    free(lefts);
    free(rights);
    if (!good)
        fetch_release(fe, out);
    return good;
}

/* and, or, unless: a series keeps its value depending on whether its group has a value on the other side. */
static bool match_sets(struct fetch *fe, const struct node *n, const struct vector *left,
                       const struct vector *right, const struct groups *g, struct vector *out, struct err *e)
{
    size_t count = left->series_count + (n->op == OP_OR ? right->series_count : 0);
    if (!fetch_room(fe, count, out, e))
        return false;
    bool *is_there = xmalloc(g->count * sizeof *is_there); /* by group, on the other side */
    for (size_t i = 0; i < count; i++)
        out->series[i] = i < left->series_count ? left->series[i] : right->series[i - left->series_count];
    for (size_t step = 0; step < out->step_count; step++) {
        const struct vector *other = n->op == OP_OR ? left : right;
        const size_t *of = n->op == OP_OR ? g->of : g->of + left->series_count;
        memset(is_there, 0, g->count * sizeof *is_there);
        for (size_t i = 0; i < other->series_count; i++)
            is_there[of[i]] |= !vector_is_absent(vector_row(other, i)[step]);
        for (size_t i = 0; i < left->series_count; i++) {
            if (n->op == OP_OR || is_there[g->of[i]] == (n->op == OP_AND))
                vector_row(out, i)[step] = vector_row(left, i)[step];
        }
        for (size_t i = left->series_count; i < count; i++) {
            if (!is_there[g->of[i]])
                vector_row(out, i)[step] = vector_row(right, i - left->series_count)[step];
        }
    }
    free(is_there);
    return true;
}

bool binary_run(struct fetch *fe, const struct node *n, struct vector *left, struct vector *right,
                struct vector *out, struct err *e)
{
    bool good;
    if (n->left->type == TYPE_SCALAR || n->right->type == TYPE_SCALAR) {
        good = with_scalar(fe, n, left, right, out, e);
    } else {
        struct groups g;
        group_sides(fe, n, left, right, &g);
        good = op_is_set(n->op) ? match_sets(fe, n, left, right, &g, out, e)
                                : match_one_to_one(fe, n, left, right, &g, out, e);
        groups_fini(&g);
    }
    fetch_release(fe, left);
    fetch_release(fe, right);
    return good;
}
