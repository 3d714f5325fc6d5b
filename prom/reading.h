/* reading.h - reads the columns and sketches of one metric: a row for each of its series, or for each group
 * of them if a sum right around the selector adds them up. Called by fetch.c, buckets.c and different.c.
 *
 * Owner : reading_fini() frees all that reading_scan() has made.
 * Errors: EX_UNAVAILABLE: the budget is spent, or time buckets have expired; EX_DATAERR: a sketch is damaged;
 *         the store's.
 */
#pragma once

#include "prom/fetch_room.h"
#include "prom/fold.h"
#include "prom/windows.h"

/* A bound of buckets. */
struct bound {
    int32_t slot;      /* all numbers of the slots before it are within */
    int64_t share;     /* of its own numbers, in units of 1/EVENT_SCALE */
    struct slice text; /* the value of its label */
};

/* Reading one metric's part of the answer. */
struct reading {
    struct fetch *fetch;
    const struct selector *selector;
    enum function function;
    struct fetch_around around;
    size_t report;
    const struct names *names;
    const struct select *select;
    const struct metric *metric;
    const struct measure *measure;  /* metric->value */
    const struct measure *presence; /* a count, which tells a sum of 0 from none; NULL: there is none */
    struct slice name;              /* of the metric; empty: the function drops it */
    size_t width;                   /* columns of the measure and of `presence` */
    bool is_always;                 /* a total that is there without events, too */
    struct windows windows;
    bool folds;
    struct fold fold;
    uint32_t *rows; /* row + 1, by series, or if `folds` by row of the fold; 0: none yet */
    size_t row_slots, row_slot_capacity;
    uint32_t *series; /* by row: its series, or if `folds` its row of the fold */
    size_t row_count, series_capacity;
    int64_t *columns; /* [(row × pieces + piece) × width] */
    size_t column_capacity, columns_max;
    bool is_too_much, is_refused; /* more than columns_max; more than the memory of the question */
    uint64_t held, sketches_held; /* bytes of the budget: rows; memory of sketches */
    enum span longest;            /* resolution of the longest tile: histograms have its buckets */
    bool has_sketches;            /* each row has a sketch for each piece, too: */
    union sketch *sketches;       /* [row × pieces + piece] */
    size_t sketch_capacity;
    struct arena sketch_memory; /* of the sketches, if there are any */
    struct bound *bounds;       /* of METRIC_BUCKET, ascending (buckets.h) */
    size_t bound_count;
};

/* The measure of its metric in the report: `measure` may be a part of it. */
static inline const struct measure *reading_whole(const struct reading *rd)
{
    return &rd->fetch->store->reports[rd->report].measures[rd->metric->measure];
}

/* Finds or adds the row of a series, or of its row of the fold. False: not in the fold, or no room. */
bool reading_row(struct reading *rd, uint32_t series, size_t *row);
/* Fails if a row had no room. */
bool reading_fits(const struct reading *rd, struct err *e) MUST_CHECK;
/* Reads the pieces of all windows. */
bool reading_scan(struct reading *rd, const struct series_set *set, struct err *e) MUST_CHECK;
void reading_fini(struct reading *rd);
