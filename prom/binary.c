#include "prom/binary.h"

#include "base/mem.h"
#include "prom/native.h"

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
    case OP_ATAN2:
        return atan2(a, b);
    default:
        return pow(a, b);
    }
}

/* The result for two numbers; `kept` is the result of a comparison that filters, if it is true. */
static double result_of(const struct node *n, double a, double b, double kept)
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

/* At least one side is a histogram. */
static bool apply_native(struct fetch *fe, enum op op, double a, double b, double *result, struct err *e)
{
    if (vector_is_absent(a) || vector_is_absent(b))
        return true;
    if (native_is(a) && native_is(b) && (op == OP_ADD || op == OP_SUBTRACT))
        return native_join(fe, a, b, op == OP_SUBTRACT, result, e);
    if (native_is(a) && !native_is(b) && (op == OP_MULTIPLY || op == OP_DIVIDE))
        return native_scale(fe, a, b, op == OP_DIVIDE, result, e);
    if (native_is(b) && !native_is(a) && op == OP_MULTIPLY)
        return native_scale(fe, b, a, false, result, e);
    return err_set(e, EX_USAGE,
                   "of histograms there are only h + h, h - h, h * number and h / number: ask for the "
                   "operation of histogram_count(…), histogram_sum(…) or histogram_quantile(0.99, …)");
}

/* Pre: *result is absent. */
static bool apply(struct fetch *fe, const struct node *n, double a, double b, double kept, double *result,
                  struct err *e)
{
    if (native_is(a) || native_is(b))
        return apply_native(fe, n->op, a, b, result, e);
    *result = result_of(n, a, b, kept);
    return true;
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
    bool good = true;
    for (size_t i = 0; i < many->series_count; i++) {
        const double *a = vector_row(left, left_varies ? i : 0), *b = vector_row(right, right_varies ? i : 0);
        double *to = vector_row(out, i);
        for (size_t step = 0; good && step < out->step_count; step++)
            good = apply(fe, n, a[step], b[step], right_varies ? b[step] : a[step], &to[step], e);
        out->series[i] = keeps_name(n) ? many->series[i] : labels_without_metric(&many->series[i], fe->arena);
    }
    good = good && vector_unite(out, e);
    if (!good)
        fetch_release(fe, out);
    return good;
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

/* ---- one series for one, or for many */

/* A match under way. The side `many` has one series for one of `one`, or many if group_left or group_right
 * says so. */
struct match {
    const struct node *node;
    const struct vector *left, *right, *many, *one;
    const size_t *many_of, *one_of; /* groups of their series */
    size_t group_count;
    size_t *pairs; /* by row of the result: series of `many`, series of `one` or NO_SERIES for any */
    size_t pair_count, pair_capacity;
    size_t *picked;     /* by group: the series of `one` at the step */
    struct groups rows; /* the rows of the result that have equal labels */
};

static bool is_there(const struct vector *v, size_t series, size_t step)
{
    return !vector_is_absent(vector_row(v, series)[step]);
}

static bool has_any(const struct vector *v, size_t step)
{
    bool found = false;
    for (size_t i = 0; i < v->series_count && !found; i++)
        found = is_there(v, i, step);
    return found;
}

/* The labels of a result: those of the many side, as the modifiers change them. */
static struct labels labels_of_pair(struct fetch *fe, const struct match *m, const struct labels *many,
                                    const struct labels *one)
{
    const struct grouping *g = &m->node->grouping, *include = &m->node->include;
    struct labels result = keeps_name(m->node) ? *many : labels_without_metric(many, fe->arena);
    if (m->node->match == MATCH_ONE_TO_ONE && g->is_given && !g->excludes)
        result = labels_group(&result, g, fe->arena);
    for (size_t i = 0; m->node->match == MATCH_ONE_TO_ONE && g->excludes && i < g->count; i++)
        result = labels_set(&result, g->labels[i], slice_of("", 0), fe->arena);
    for (size_t i = 0; i < include->count; i++)
        result = labels_set(&result, include->labels[i], labels_find(one, include->labels[i]), fe->arena);
    return result;
}

static void add_pair(struct match *m, size_t many, size_t one)
{
    m->pairs = xgrow(m->pairs, &m->pair_capacity, 2 * (m->pair_count + 1), sizeof *m->pairs);
    m->pairs[2 * m->pair_count] = many;
    m->pairs[2 * m->pair_count++ + 1] = one;
}

/* Finds the rows of the result. Labels taken from the one side make a row for each series of it. */
static bool find_pairs(struct fetch *fe, struct match *m, struct err *e)
{
    for (size_t i = 0; i < m->many->series_count; i++) {
        if (m->node->include.count == 0)
            add_pair(m, i, NO_SERIES);
        for (size_t j = 0; m->node->include.count > 0 && j < m->one->series_count; j++) {
            if (m->one_of[j] == m->many_of[i])
                add_pair(m, i, j);
        }
        if (!budget_take(fe->budget, BUDGET_POINTS, m->node->include.count > 0 ? m->one->series_count : 1, e))
            return false;
    }
    return true;
}

/* Sets `picked` for the step. */
static bool pick(struct match *m, size_t step, struct err *e)
{
    for (size_t i = 0; i < m->group_count; i++)
        m->picked[i] = NO_SERIES;
    for (size_t i = 0; i < m->one->series_count; i++) {
        if (!is_there(m->one, i, step))
            continue;
        if (m->picked[m->one_of[i]] != NO_SERIES)
            return err_set(e, EX_USAGE,
                           "two series of the %s side have the same labels to be matched by: add them up by "
                           "these labels first",
                           m->one == m->right ? "right" : "left");
        m->picked[m->one_of[i]] = i;
    }
    return true;
}

/* Is the row a match at the step? */
static bool is_matched(const struct match *m, size_t row, size_t step)
{
    size_t many = m->pairs[2 * row], wanted = m->pairs[2 * row + 1], one = m->picked[m->many_of[many]];
    return one != NO_SERIES && (wanted == NO_SERIES || wanted == one) && is_there(m->many, many, step);
}

/* Each group may match once, or with group_left each label set of it, whether a filter drops the result or
 * not. */
static bool check_once(const struct match *m, size_t step, struct err *e)
{
    bool is_single = m->node->match == MATCH_ONE_TO_ONE, good = true;
    bool *seen = xcalloc(is_single ? m->group_count : m->rows.count, sizeof *seen);
    for (size_t row = 0; good && row < m->pair_count; row++) {
        if (!is_matched(m, row, step))
            continue;
        size_t key = is_single ? m->many_of[m->pairs[2 * row]] : m->rows.of[row];
        good = !seen[key] ||
               err_set(e, EX_USAGE,
                       "two series of the %s side have the same labels to be matched by: add them "
                       "up by these labels first%s",
                       m->many == m->left ? "left" : "right", is_single ? ", or use group_left" : "");
        seen[key] = true;
    }
    free(seen);
    return good;
}

static bool match_step(struct fetch *fe, struct match *m, size_t step, struct vector *out, struct err *e)
{
    bool good = true;
    if (!has_any(m->left, step) || !has_any(m->right, step))
        return true;
    if (!pick(m, step, e) || !check_once(m, step, e))
        return false;
    for (size_t row = 0; good && row < m->pair_count; row++) {
        if (!is_matched(m, row, step))
            continue;
        size_t many = m->pairs[2 * row], one = m->picked[m->many_of[many]];
        double of_many = vector_row(m->many, many)[step], of_one = vector_row(m->one, one)[step];
        double a = m->many == m->left ? of_many : of_one, b = m->many == m->left ? of_one : of_many;
        good = apply(fe, m->node, a, b, a, &vector_row(out, row)[step], e);
    }
    return good;
}

static bool match_series(struct fetch *fe, const struct node *n, const struct vector *left,
                         const struct vector *right, const struct groups *g, struct vector *out,
                         struct err *e)
{
    const size_t *right_of = g->of + left->series_count;
    bool swaps = n->match == MATCH_MANY_RIGHT;
    struct match m = {.node = n,
                      .left = left,
                      .right = right,
                      .many = swaps ? right : left,
                      .one = swaps ? left : right,
                      .many_of = swaps ? right_of : g->of,
                      .one_of = swaps ? g->of : right_of,
                      .group_count = g->count,
                      .picked = xmalloc(g->count * sizeof *m.picked)};
    bool good = find_pairs(fe, &m, e) && fetch_room(fe, m.pair_count, out, e), has_room = good;
    for (size_t row = 0; good && row < m.pair_count; row++) {
        size_t one = m.pairs[2 * row + 1];
        out->series[row] = labels_of_pair(fe, &m, &m.many->series[m.pairs[2 * row]],
                                          one == NO_SERIES ? NULL : &m.one->series[one]);
    }
    if (good)
        groups_init(&m.rows, out->series, m.pair_count);
    for (size_t step = 0; good && step < left->step_count; step++)
        good = match_step(fe, &m, step, out, e);
    good = good && vector_unite(out, e);
    if (has_room && !good)
        fetch_release(fe, out);
    groups_fini(&m.rows);
    free(m.pairs);
    free(m.picked);
    return good;
}

/* and, or, unless: a series keeps its value depending on whether its group has a value on the other side. */
static bool match_sets(struct fetch *fe, const struct node *n, const struct vector *left,
                       const struct vector *right, const struct groups *g, struct vector *out, struct err *e)
{
    size_t count = left->series_count + (n->op == OP_OR ? right->series_count : 0);
    if (!fetch_room(fe, count, out, e))
        return false;
    bool *has_value = xmalloc(g->count * sizeof *has_value); /* by group, on the other side */
    for (size_t i = 0; i < count; i++)
        out->series[i] = i < left->series_count ? left->series[i] : right->series[i - left->series_count];
    for (size_t step = 0; step < out->step_count; step++) {
        const struct vector *other = n->op == OP_OR ? left : right;
        const size_t *of = n->op == OP_OR ? g->of : g->of + left->series_count;
        memset(has_value, 0, g->count * sizeof *has_value);
        for (size_t i = 0; i < other->series_count; i++)
            has_value[of[i]] |= !vector_is_absent(vector_row(other, i)[step]);
        for (size_t i = 0; i < left->series_count; i++) {
            if (n->op == OP_OR || has_value[g->of[i]] == (n->op == OP_AND))
                vector_row(out, i)[step] = vector_row(left, i)[step];
        }
        for (size_t i = left->series_count; i < count; i++) {
            if (!has_value[g->of[i]])
                vector_row(out, i)[step] = vector_row(right, i - left->series_count)[step];
        }
    }
    free(has_value);
    bool good = vector_unite(out, e);
    if (!good)
        fetch_release(fe, out);
    return good;
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
                                : match_series(fe, n, left, right, &g, out, e);
        groups_fini(&g);
    }
    fetch_release(fe, left);
    fetch_release(fe, right);
    return good;
}
