/* fetch.h - the values of a selector at every step, by itself or under a function of ranges: what is read
 * from the store.
 *
 *   selector → metrics, series (select.h) → windows (windows.h) → one scan per tile → rows of pieces → values
 *
 * Values: a count or sum is what was counted in the window, 0 where nothing was; other measures say what
 *         their events in the window say, and are absent where there are none. docs/PROMETHEUS.md has the
 *         table, by function.
 * Alone : a count or sum at t is that of the step that ends at t (of a minute in a question of one
 *         instant); other measures look back further, LOOKBACK_MS, for the last such step with something
 *         in it.
 * Series: those with something in any window, and one that the selector names by all of its labels; of them
 *         what is around the selector looks at.
 * Limits: the budget.
 * Errors: EX_USAGE: a function does not go with the measure, and those of select.h; EX_UNAVAILABLE: the
 *         budget is spent; the store's.
 */
#pragma once

#include "prom/budget.h"
#include "prom/vector.h"
#include "store/store.h"

#define FETCH_LOOKBACK_MS (5LL * MINUTE_MS)

struct fetch {
    struct store *store;
    struct arena *arena;
    struct budget *budget;
    int64_t at_ms, step_ms; /* step: 0 where there is one instant */
    size_t step_count;
};

/* The aggregation right around a selector or its function; zeros: there is none. What it would drop need not
 * be kept: a sum takes series that are added up already, topk without a grouping those that may be among the
 * k greatest, and others, where they keep no label, series without. */
struct fetch_around {
    const struct node *aggregate;
    const double *k; /* of topk and bottomk: by step */
};

/* `f`: FUNCTION_NONE, or one of ranges. The caller has what `out` holds taken from the budget's values. */
bool fetch_run(struct fetch *fe, const struct selector *selector, enum function f,
               const struct fetch_around *around, struct vector *out, struct err *e) MUST_CHECK;
/* A vector of its own, within the budget. */
bool fetch_room(struct fetch *fe, size_t series_count, struct vector *out, struct err *e) MUST_CHECK;
/* Gives its room back, and ends it. */
void fetch_release(struct fetch *fe, struct vector *v);
