/* copier.h - copies the series and time buckets of a report from one store into another. copy.c copies whole
 * stores by it, splice.c the buckets of a range of times. The caller fills in the first members, then calls
 * copier_init(), and copier_report() for each report.
 *
 * Memory : the keys of some series, COPY_CELLS cells, and four bytes a series.
 * Errors : those of both stores. EX_TEMPFAIL: goes_on() ended it.
 */
#pragma once

#include "base/arena.h"
#include "store/reader.h"

/* Starts of time buckets with counts, sorted. */
struct copier_starts {
    int64_t *list;
    size_t count, capacity;
};

struct copier {
    struct store *from, *to;             /* borrowed. to: opened to be filled; NULL in a dry run */
    enum span resolution;                /* of the time buckets that are being read */
    const struct watermarks *watermarks; /* buckets before them are left out; of the report that is copied */
    int64_t begin_ms, end_ms;            /* only buckets in [begin_ms, end_ms) are copied */
    bool (*goes_on)(void *context, const char *what, uint64_t done, uint64_t total); /* of copy.h */
    void *context;
    struct err *e;

    uint64_t series, cells; /* copied so far */
    int64_t events, other;  /* in the cells that were taken: copier_events(), and those of `other` */

    size_t report, into; /* the report that is being copied: its index in `from`, and in the part */
    struct part part;
    struct cell *cell; /* the last one taken, which gets sketches; NULL: none */
    uint32_t *numbers; /* by series number of the source: its number in the part, plus 1; 0: not seen */
    size_t number_capacity, number_count;
    uint32_t added; /* series that the part has had so far */
    struct arena keys;
    struct copier_starts months, days;
    struct copier_starts *found; /* the list that a scan fills */
    struct text what;            /* the work under way */
    bool of_newest;              /* whether the part has newest events */
    bool good;
};

/* The number of events in a row of values: its first count; 0: the report has none. */
static inline int64_t copier_events(const struct report *r, const int64_t *values)
{
    for (size_t i = 0; i < r->measure_count; i++) {
        if (r->measures[i].kind == MEASURE_COUNT)
            return values[r->measures[i].column];
    }
    return 0;
}

/* `reports`: those of the target, in its order. */
void copier_init(struct copier *k, const struct report *reports, size_t count);
void copier_fini(struct copier *k);
/* Copy a report's series, and its buckets between both times. */
bool copier_report(struct copier *k, size_t report, size_t into) MUST_CHECK;
