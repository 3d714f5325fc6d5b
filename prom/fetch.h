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
 * Series: those with something in any window, and one that the selector names by all of its labels.
 * Limits: rows_max of all scans together; FETCH_VALUES_MAX numbers kept at once, FETCH_SERIES_MAX series.
 * Errors: EX_USAGE: a function does not go with the measure, and those of select.h; EX_UNAVAILABLE: a
 *         limit; the store's.
 */
#pragma once

#include "prom/vector.h"
#include "query/query.h"

#define FETCH_LOOKBACK_MS (5LL * MINUTE_MS)
#define FETCH_VALUES_MAX  4000000
#define FETCH_SERIES_MAX  200000 /* with their labels */

struct fetch {
    struct store *store;
    struct arena *arena;
    int64_t at_ms, step_ms; /* step: 0 where there is one instant */
    size_t step_count;
    uint64_t rows_left; /* of the store */
    size_t values_left; /* of memory */
};

/* `f`: FUNCTION_NONE, or one of ranges. `fold`: a sum by this grouping follows, so series that it puts
 * together may be together already; NULL: none. The caller has what `out` holds taken from values_left. */
bool fetch_run(struct fetch *fe, const struct selector *selector, enum function f,
               const struct grouping *fold, struct vector *out, struct err *e) MUST_CHECK;
/* A vector of its own, within the limit. */
bool fetch_room(struct fetch *fe, size_t series_count, struct vector *out, struct err *e) MUST_CHECK;
/* Gives its room back, and ends it. */
void fetch_release(struct fetch *fe, struct vector *v);
