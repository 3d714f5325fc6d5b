#include "prom/subquery.h"

#include "base/mem.h"
#include "prom/functions.h"
#include "prom/native.h"
#include "prom/node.h"
#include "prom/over.h"

#include <stdlib.h>

/* The points of one series at the inner steps, without those that are absent. */
struct inner {
    int64_t *at_ms;
    double *values;
    size_t count;
};

/* The first multiple of `step_ms` after `ms`. */
static int64_t next_step(int64_t ms, int64_t step_ms)
{
    int64_t before = ms / step_ms * step_ms;
    return before + (before <= ms ? step_ms : 0);
}

static void collect(const struct fetch *inner, const double *row, struct inner *in)
{
    in->count = 0;
    for (size_t i = 0; i < inner->step_count; i++) {
        if (vector_is_absent(row[i]))
            continue;
        in->at_ms[in->count] = inner->at_ms + (int64_t)i * inner->step_ms;
        in->values[in->count++] = row[i];
    }
}

/* One row: the function over the points of (at - range, at] for each step. Both ends move on with the
 * steps. */
static bool slide_row(const struct fetch *fe, const struct selector *s, enum function f,
                      const double *parameter, const struct inner *in, double *row, struct err *e)
{
    int64_t step_ms = s->base == BASE_STEP ? fe->step_ms : 0;
    size_t first = 0, end = 0;
    for (size_t i = 0; i < fe->step_count; i++) {
        int64_t to_ms = fetch_base(fe, s) - s->offset_ms + (int64_t)i * step_ms;
        while (end < in->count && in->at_ms[end] <= to_ms)
            end++;
        while (first < end && in->at_ms[first] <= to_ms - s->range_ms)
            first++;
        const struct points p = {in->at_ms + first, in->values + first, end - first};
        if (!budget_take(fe->budget, BUDGET_POINTS, p.count, e))
            return false;
        row[i] =
            over_points(f, parameter != NULL ? parameter[i] : 0, fe->at_ms + (int64_t)i * fe->step_ms, &p);
    }
    return true;
}

static bool slide_rows(struct fetch *fe, const struct selector *s, enum function f, const double *parameter,
                       const struct fetch *inner, const struct vector *points, struct vector *out,
                       struct err *e)
{
    struct inner in = {.at_ms = xmalloc(inner->step_count * sizeof *in.at_ms),
                       .values = xmalloc(inner->step_count * sizeof *in.values)};
    bool good = true;
    for (size_t i = 0; good && i < points->series_count; i++) {
        collect(inner, vector_row(points, i), &in);
        good = slide_row(fe, s, f, parameter, &in, vector_row(out, i), e);
        out->series[i] =
            f == FUNCTION_LAST ? points->series[i] : labels_without_metric(&points->series[i], fe->arena);
    }
    free(in.at_ms);
    free(in.values);
    return good;
}

/* Functions that only look at whether there is a value, or pass one on, take histograms. */
static bool check_natives(const struct fetch *fe, enum function f, const struct vector *points, struct err *e)
{
    return f == FUNCTION_COUNT || f == FUNCTION_LAST || f == FUNCTION_PRESENT || f == FUNCTION_ABSENT_RANGE ||
           native_refuse(fe->natives, points, functions_name(f), e);
}

bool subquery_run(struct fetch *fe, const struct node *n, enum function f, const double *parameter,
                  struct vector *out, struct err *e)
{
    const struct selector *s = &n->selector;
    const struct fetch_around nothing = {0};
    int64_t first_ms = fetch_base(fe, s) - s->offset_ms, last_ms = first_ms;
    if (s->base == BASE_STEP)
        last_ms += (int64_t)(fe->step_count - 1) * fe->step_ms;
    struct fetch inner = *fe;
    struct vector points;
    inner.step_ms = s->step_ms;
    inner.at_ms = next_step(first_ms - s->range_ms, s->step_ms);
    if (inner.at_ms > last_ms) {
        vector_init(out, 0, fe->step_count);
        return true;
    }
    inner.step_count = (size_t)((last_ms - inner.at_ms) / s->step_ms) + 1;
    if (inner.step_count > SUBQUERY_STEPS_MAX)
        return err_set(
            e, EX_UNAVAILABLE,
            "the subquery has %zu steps, more than %d: ask for a shorter range or a longer step of it",
            inner.step_count, SUBQUERY_STEPS_MAX);
    if (!node_eval(&inner, n->left, &nothing, &points, e))
        return false;
    bool good = check_natives(fe, f, &points, e) && fetch_room(fe, points.series_count, out, e);
    if (good) {
        good = slide_rows(fe, s, f, parameter, &inner, &points, out, e);
        if (!good)
            fetch_release(fe, out);
    }
    fetch_release(&inner, &points);
    return good;
}
