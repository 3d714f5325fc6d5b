#include "prom/quantile.h"

#include "base/mem.h"
#include "prom/names.h"
#include "prom/number.h"

#include <math.h>
#include <stdlib.h>

/* A series of a histogram. */
struct column {
    size_t group; /* its histogram */
    double le;
    const double *counts; /* by step */
};

/* How many numbers are up to a bound, at one step. */
struct bucket {
    double le, count;
};

static int compare_columns(const void *left, const void *right)
{
    const struct column *a = left, *b = right;
    if (a->group != b->group)
        return a->group < b->group ? -1 : 1;
    return (a->le > b->le) - (a->le < b->le);
}

/* The buckets of one step, each bound once. */
static size_t gather(const struct column *columns, size_t count, size_t step, struct bucket *buckets)
{
    size_t found = 0;
    for (size_t i = 0; i < count; i++) {
        const double value = columns[i].counts[step];
        if (vector_is_absent(value))
            continue;
        if (found > 0 && buckets[found - 1].le == columns[i].le)
            buckets[found - 1].count += value;
        else
            buckets[found++] = (struct bucket){columns[i].le, value};
    }
    return found;
}

/* A count that is less than the one before is raised to it. Pre: there is a bucket. */
static double quantile(double q, struct bucket *buckets, size_t count)
{
    for (size_t i = 1; i < count; i++)
        buckets[i].count = fmax(buckets[i].count, buckets[i - 1].count);
    const struct bucket *last = &buckets[count - 1];
    struct bucket before = {0};
    size_t i = 0;
    if (isnan(q))
        return NAN;
    if (q < 0 || q > 1)
        return q < 0 ? -INFINITY : INFINITY;
    if (last->le != INFINITY || count < 2 || !(last->count > 0))
        return NAN;
    const double rank = q * last->count;
    while (i < count - 1 && buckets[i].count < rank)
        i++;
    if (i == count - 1)
        return buckets[i - 1].le;
    if (i == 0 && buckets[0].le <= 0)
        return buckets[0].le;
    if (i > 0)
        before = buckets[i - 1];
    return before.le +
           (buckets[i].le - before.le) * ((rank - before.count) / (buckets[i].count - before.count));
}

/* How many numbers are below a limit. Counts are as they are, even if one is less than the one before, as in
 * Prometheus. */
static double count_below(double limit, const struct bucket *buckets, size_t count)
{
    const double all = buckets[count - 1].count;
    struct bucket before = {buckets[0].le <= 0 ? -INFINITY : 0, 0};
    for (size_t i = 0; i < count; before = buckets[i++]) {
        const struct bucket *b = &buckets[i];
        double below = before.count;
        if (!(b->le > limit))
            continue;
        if (before.le == -INFINITY && limit > before.le)
            below = b->count;
        else if (before.le < limit)
            below += (b->count - before.count) * (limit - before.le) / (b->le - before.le);
        return below > all ? all : below;
    }
    return all;
}

/* Pre: there is a bucket. */
static double fraction(double lower, double upper, const struct bucket *buckets, size_t count)
{
    const struct bucket *last = &buckets[count - 1];
    if (last->le != INFINITY || last->count == 0 || isnan(lower) || isnan(upper))
        return NAN;
    if (lower >= upper)
        return 0;
    return (count_below(upper, buckets, count) - count_below(lower, buckets, count)) / last->count;
}

/* Sets the columns of all series with a bound, and the other labels of all series. Returns their number. */
static size_t find_columns(struct fetch *fe, const struct vector *in, struct labels *others,
                           struct column *columns)
{
    size_t count = 0;
    for (size_t i = 0; i < in->series_count; i++) {
        struct labels labels = labels_without_metric(&in->series[i], fe->arena);
        const struct slice le = labels_find(&labels, slice_text(BUCKET_LABEL));
        double bound;
        if (!number_parse(le, &bound) || isnan(bound))
            continue;
        others[count] = labels_set(&labels, slice_text(BUCKET_LABEL), slice_of("", 0), fe->arena);
        columns[count++] = (struct column){.le = bound, .counts = vector_row(in, i)};
    }
    return count;
}

static void set_answers(const struct quantile_ask *ask, const struct column *columns, size_t count,
                        const struct vector *out)
{
    struct bucket *buckets = xmalloc((count + 1) * sizeof *buckets);
    for (size_t first = 0, end; first < count; first = end) {
        for (end = first; end < count && columns[end].group == columns[first].group;)
            end++;
        for (size_t step = 0; step < out->step_count; step++) {
            const size_t found = gather(&columns[first], end - first, step, buckets);
            double *answer = &vector_row(out, columns[first].group)[step];
            if (found > 0)
                *answer = ask->is_fraction ? fraction(ask->first[step], ask->second[step], buckets, found)
                                           : quantile(ask->first[step], buckets, found);
        }
    }
    free(buckets);
}

bool quantile_of_buckets(struct fetch *fe, const struct quantile_ask *ask, struct vector *in,
                         struct vector *out, struct err *e)
{
    struct labels *others = xcalloc(in->series_count + 1, sizeof *others);
    struct column *columns = xcalloc(in->series_count + 1, sizeof *columns);
    const size_t count = find_columns(fe, in, others, columns);
    struct groups g;
    groups_init(&g, others, count);
    for (size_t i = 0; i < count; i++)
        columns[i].group = g.of[i];
    bool good =
        budget_take(fe->budget, BUDGET_POINTS, count * in->step_count, e) && fetch_room(fe, g.count, out, e);
    if (good) {
        qsort(columns, count, sizeof *columns, compare_columns);
        set_answers(ask, columns, count, out);
        for (size_t i = 0; i < g.count; i++)
            out->series[i] = g.labels[i];
    }
    groups_fini(&g);
    free(others);
    free(columns);
    fetch_release(fe, in);
    return good;
}
