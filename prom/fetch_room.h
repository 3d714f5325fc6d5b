/* fetch_room.h - what all parts of an expression are evaluated with: the store, the steps, and the budget,
 * within which they allocate their vectors. Used by eval.c, fetch.c and all that they call.
 *
 * Errors: EX_UNAVAILABLE: the budget is spent.
 */
#pragma once

#include "prom/budget.h"
#include "prom/vector.h"
#include "query/missed.h"
#include "store/reader.h"

struct natives; /* native.h */

struct fetch {
    struct store *store;
    struct arena *arena;
    struct budget *budget;
    struct natives *natives; /* the histograms of the question */
    int64_t at_ms, step_ms;  /* time of the first step; distance of steps, 0: one instant */
    size_t step_count;
    int64_t start_ms, end_ms; /* first and last step of the whole question, of @ start() and @ end() */
    bool *is_read;            /* result, by report: one of its metrics was read */
    enum missed_where *holes; /* result of a range, by report: where one of its metrics has no events */
};

/* The nodes directly around a selector or its function; zeros: nothing. fetch_run() omits what they would
 * drop. A sum gets series that are already added up. A topk without a grouping gets only series that may be
 * among the k greatest. Other aggregations that keep no label get series without labels. `only`: the right
 * side of `and`, which drops all series with other labels. */
struct fetch_around {
    const struct node *aggregate;
    const double *k;         /* the k of topk and bottomk at each step */
    const double *parameter; /* the number of the function itself at each step; NULL: it has none */
    const struct vector *only;
};

/* Makes a vector of `series_count` series within the budget; all values are absent. */
bool fetch_room(struct fetch *fe, size_t series_count, struct vector *out, struct err *e) MUST_CHECK;
/* Moves the series of `more` behind those of `v`, as vector_append(). `more` is released in any case. */
bool fetch_append(struct fetch *fe, struct vector *v, struct vector *more, struct err *e) MUST_CHECK;
/* Returns to the budget what a vector took for series that it does not have any more. */
void fetch_shrink(struct fetch *fe, struct vector *v);
/* Frees a vector and returns its values to the budget. */
void fetch_release(struct fetch *fe, struct vector *v);
