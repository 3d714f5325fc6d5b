#include "prom/native_slide.h"

#include "base/mem.h"
#include "prom/functions.h"
#include "prom/native.h"

#include <stdlib.h>

#define SLOTS         (2 * HISTOGRAM_NTHS_MAX - 1)
#define SLOTS_A_POINT 8 /* to look at so many costs as much as a value */

bool native_slide_is_needed(enum function f)
{
    return f == FUNCTION_NONE || f == FUNCTION_INCREASE || f == FUNCTION_RATE || f == FUNCTION_SUM ||
           f == FUNCTION_AVG || f == FUNCTION_LAST;
}

static bool takes_natives(enum aggregate a)
{
    return a == AGGREGATE_SUM || a == AGGREGATE_AVG || a == AGGREGATE_COUNT || a == AGGREGATE_GROUP;
}

bool native_slide_check(const struct reading *rd, struct err *e)
{
    const enum function f = rd->function;
    const struct node *around = rd->around.aggregate;
    const char *name = rd->metric->name;
    if (!native_slide_is_needed(f) && f != FUNCTION_COUNT && f != FUNCTION_PRESENT &&
        f != FUNCTION_ABSENT_RANGE && f != FUNCTION_TIMESTAMP)
        return err_set(e, EX_USAGE,
                       "%s() is of numbers, and %s is a histogram: ask for it of a subquery of "
                       "histogram_quantile(0.99, %s) or histogram_count(%s), as [1h:1m]",
                       functions_name(f), name, name, name);
    return !native_slide_is_needed(f) || around == NULL || takes_natives(around->aggregate) ||
           err_set(e, EX_USAGE,
                   "%s is a histogram, and this aggregation is of numbers: ask for it of histogram_count(…), "
                   "histogram_sum(…) or histogram_quantile(0.99, …)",
                   name);
}

/* The sum of the pieces from `first` to `end`. */
struct pile {
    int128 *counts;      /* of SLOTS, by histogram_nth() */
    int32_t least, most; /* places of the row's pieces */
    size_t first, end;
    struct native_bucket *buckets; /* room for a histogram of it */
};

static const struct histogram *piece_of(const struct reading *rd, size_t row, size_t piece)
{
    return &rd->sketches[row * rd->windows.piece_count + piece].histogram;
}

static void pile_add(struct pile *p, const struct histogram *h, int sign)
{
    struct histogram_walk w = histogram_walk(h);
    struct histogram_bucket b;
    while (histogram_next(&w, &b)) {
        const int32_t at = histogram_nth(b.slot) + HISTOGRAM_NTHS_MAX - 1;
        p->counts[at] += (int128)sign * b.count;
        p->least = at < p->least ? at : p->least;
        p->most = at > p->most ? at : p->most;
    }
}

static void pile_move(struct pile *p, const struct reading *rd, size_t row, struct window to)
{
    for (; p->end < to.end; p->end++)
        pile_add(p, piece_of(rd, row, p->end), 1);
    for (; p->first < to.first; p->first++)
        pile_add(p, piece_of(rd, row, p->first), -1);
}

static void pile_clear(struct pile *p)
{
    for (int32_t at = p->least; at <= p->most; at++)
        p->counts[at] = 0;
    p->least = SLOTS;
    p->most = -1;
    p->first = p->end = 0;
}

static double divisor_of(const struct reading *rd, size_t window)
{
    if (rd->function == FUNCTION_RATE)
        return windows_seconds(&rd->windows, window);
    return rd->function == FUNCTION_AVG ? (double)windows_cells(&rd->windows, window) : 1;
}

/* `value`: the sum, which becomes the histogram. */
static bool pile_give(const struct pile *p, const struct reading *rd, double divisor, double *value,
                      struct err *e)
{
    const struct histogram_layout *l = rd->measure->layouts[rd->longest];
    struct fetch *fe = rd->fetch;
    struct native h = {.sum = *value,
                       .schema = l->schema,
                       .zero = (double)l->zero / (double)l->scale,
                       .buckets = p->buckets};
    int128 count = 0;
    if (p->least <= p->most &&
        !budget_take(fe->budget, BUDGET_POINTS, (uint64_t)(p->most - p->least) / SLOTS_A_POINT, e))
        return false;
    for (int32_t at = p->least; at <= p->most; at++) {
        if (p->counts[at] == 0)
            continue;
        count += p->counts[at];
        h.buckets[h.bucket_count++] = (struct native_bucket){
            histogram_slot_of_nth(at - (HISTOGRAM_NTHS_MAX - 1), l->unit), (double)p->counts[at] / divisor};
    }
    h.count = (double)count / divisor;
    return native_add(fe, &h, value, e);
}

static bool slide_row(const struct reading *rd, struct pile *p, size_t row, double *values, struct err *e)
{
    bool good = true;
    pile_clear(p);
    for (size_t i = 0; good && i < rd->windows.ask.count; i++) {
        struct window w = rd->windows.list[i];
        if (vector_is_absent(values[i]))
            continue;
        if (rd->function == FUNCTION_LAST)
            w.first = w.end - 1;
        pile_move(p, rd, row, w);
        good = pile_give(p, rd, divisor_of(rd, i), &values[i], e);
    }
    return good;
}

bool native_slide(const struct reading *rd, const struct slide_ask *ask, const struct vector *out,
                  struct err *e)
{
    const size_t per_row = rd->windows.piece_count * rd->width;
    struct pile p = {.counts = xcalloc(SLOTS, sizeof *p.counts),
                     .buckets = xmalloc(SLOTS * sizeof *p.buckets),
                     .least = SLOTS,
                     .most = -1};
    bool good = true;
    for (size_t row = 0; good && row < rd->row_count; row++) {
        slide(ask, &rd->windows, &rd->columns[row * per_row], vector_row(out, row));
        good = !rd->has_sketches || slide_row(rd, &p, row, vector_row(out, row), e);
    }
    free(p.counts);
    free(p.buckets);
    return good;
}
