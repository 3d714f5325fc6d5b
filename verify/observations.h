/* observations.h - the numbers and texts of a sketch's events, one by one, and the packed sketches that they
 * make. The recount (recount.h) keeps them; buckets.c compares the packed sketches with those of the store.
 *
 * Packed : written from the definitions in aggregate/histogram.h and distinct.h, without their code: by
 *          sorted lists, and ends of buckets from exp2l().
 * Exact  : for numbers up to EVENT_NUMBER_MAX. The ends of greater buckets lie within the error of exp2l().
 * Memory : 24 bytes an event that has the number or text; 16 more while they are packed. A value that stands
 *          for many numbers takes as much for each of their buckets.
 */
#pragma once

#include "base/civil.h"
#include "ingest/distribution.h"
#include "verify/pieces.h"

struct observation {
    uint32_t series, time; /* time: the cell's, in cells since 1970 */
    uint64_t value;        /* a number as int64; or a text's XXH3 */
    uint64_t count;        /* of the events that have it */
};

/* Zeros: empty. */
struct observations {
    struct observation *list;
    size_t count, capacity;
};

void observations_fini(struct observations *s);
void observations_add(struct observations *s, struct observation observation);
/* Adds the numbers of a distribution to those of a histogram, as numbers of the slots that they have. `one`
 * has series and time. */
void observations_add_many(struct observations *s, struct observation one, const struct measure *m,
                           const struct distribution *d);
/* The value of a settled text. */
uint64_t observation_of_text(struct slice text);
/* Sorts them by series, then by time. */
void observations_sort(struct observations *s);
/* Adds the packed sketches of all time buckets from from_ms on. Pre: they are sorted. */
void observations_pack(const struct observations *s, const struct measure *m, int64_t cell_ms,
                       enum span resolution, int64_t from_ms, struct pieces *into);
