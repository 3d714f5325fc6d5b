/* fetch.h - reads the values of a selector at every step from the store, plain or under a function of ranges.
 * Called by eval.c; aggregate.c and binary.c allocate their vectors with fetch_room().
 *
 *   selector → metrics, series (select.h) → windows (windows.h) → one scan per tile → rows of pieces → values
 *
 * Values: a count or sum is the total of the window; it is absent if the window has no events, unless the
 *         selector gives all labels by `=`: then it is 0. Other measures are absent without events, too.
 *         docs/PROMETHEUS.md has the table by function. So a value depends on its own window only, and an
 *         instant equals the same step of any range.
 * Plain : a count or sum at t is the last whole minute (or second). Other measures look back for a value up
 *         to FETCH_LOOKBACK_MS.
 * Series: all with a value at any step; struct fetch_around reduces them further.
 * Limits: the budget.
 * Errors: EX_USAGE: the function does not fit the measure; EX_UNAVAILABLE: the budget is spent, or time
 *         buckets have expired; errors of select.h and of the store.
 */
#pragma once

#include "prom/budget.h"
#include "prom/vector.h"
#include "store/reader.h"

#define FETCH_LOOKBACK_MS (5LL * MINUTE_MS)

struct fetch {
    struct store *store;
    struct arena *arena;
    struct budget *budget;
    int64_t at_ms, step_ms; /* time of the first step; distance of steps, 0: one instant */
    size_t step_count;
    int64_t start_ms, end_ms; /* first and last step of the whole question, of @ start() and @ end() */
    bool *begins_empty;       /* result, by report: one of its metrics was read, without events at step 0 */
};

/* What is directly around a selector or its function; zeros: nothing. fetch_run() omits what it would drop.
 * A sum gets series that are already added up. A topk without a grouping gets only series that may be among
 * the k greatest. Other aggregations that keep no label get series without labels. `only`: the right side of
 * `and`, which drops all series with other labels. */
struct fetch_around {
    const struct node *aggregate;
    const double *k;         /* the k of topk and bottomk at each step */
    const double *parameter; /* the number of the function itself at each step; NULL: it has none */
    const struct vector *only;
};

/* The time that the first step of a selector or subquery is about, before its offset. */
int64_t fetch_base(const struct fetch *fe, const struct selector *s);
/* `f`: FUNCTION_NONE, FUNCTION_TIMESTAMP, or a function of ranges. `out` takes from the budget's values until
 * fetch_release(). */
bool fetch_run(struct fetch *fe, const struct selector *selector, enum function f,
               const struct fetch_around *around, struct vector *out, struct err *e) MUST_CHECK;
/* Makes a vector of `series_count` series within the budget; all values are absent. */
bool fetch_room(struct fetch *fe, size_t series_count, struct vector *out, struct err *e) MUST_CHECK;
/* Returns to the budget what a vector took for series that it does not have any more. */
void fetch_shrink(struct fetch *fe, struct vector *v);
/* Frees a vector and returns its values to the budget. */
void fetch_release(struct fetch *fe, struct vector *v);
