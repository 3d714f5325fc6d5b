/* top.h - ranks series by their values in a range. Queries with `top` and ranking.h use it. Reading keys from
 * the store can fail, and the memory of the question may be too small.
 *
 * Order   : by the first answered measure, descending, absent values last; then by key. A series whose count
 *           or sum is 0 is left out.
 * Memory  : four bytes for each series number up to the greatest that a scan names. The answered columns of
 *           the series that it names. The keys only of series that may be shown.
 */
#pragma once

#include "base/arena.h"
#include "query/answer.h"

struct top {
    const struct answer *answer; /* the measures */
    bool is_plain;               /* fast path: one measure, whose value is its only column, added up */
    int64_t *rows;               /* per series that a scan named: its number, and the answer's columns */
    size_t count, capacity;
    union sketch *sketches; /* per row: the sketches of the answer */
    size_t sketch_capacity;
    int128 *told; /* per row of a cached ranking by a sketch: the figure's value. NULL: `sketches` has it */
    size_t told_capacity;
    struct arena sketch_memory;
    uint64_t sketches_max; /* bytes of them; 0: no limit */
    struct share *memory;  /* of the question; NULL: no limit */
    bool is_refused;       /* whether there was no more; then scans add nothing */
    uint64_t sketches_counted, places_counted, keys_counted; /* bytes of `memory` that these have */
    uint32_t *places; /* by series number: its row in `rows`, from 1; 0: none */
    size_t place_count;
    struct arena keys;
    uint32_t *shown; /* by row of the answer: the series number */
};

void top_init(struct top *t, const struct answer *a, uint64_t sketches_max, struct share *memory);
void top_fini(struct top *t);
/* Merge a row of all the report's columns into a series; a scan_fn for store_scan(). If that needs more
 * memory than there is, top_check() says so. */
void top_scan(void *top, uint32_t series, int64_t bucket_ms, const int64_t *columns);
/* Merge a sketch into a series; a sketch_fn. */
bool top_scan_sketch(void *top, uint32_t series, int64_t bucket_ms, size_t sketch, struct slice packed,
                     struct err *e) MUST_CHECK;
/* Add a series of a cached ranking by the answer's only figure; a top_fn. Add all series so, or none. */
void top_tell(void *top, uint32_t series, int64_t period_ms, const int64_t *columns, int128 value);
/* Call it after a scan. */
bool top_check(const struct top *t, struct err *e) MUST_CHECK;
/* The answer's first figure of one series; false: it is absent, or no scan named the series. */
bool top_value(const struct top *t, uint32_t series, int128 *value);
/* Merge the answer's columns of all series into `columns`, and their sketches into `sketches`, whose memory
 * is t's. Both must be zeros. */
void top_total(struct top *t, int64_t *columns, union sketch *sketches);
/* The series with the largest values of a count or sum, at most `room`, the largest first. Returns their
 * number. */
size_t top_largest(const struct top *t, uint32_t *series, size_t room);
/* Fill at most `rows_max` rows of `a`; their keys and sketches live as long as `t`. */
bool top_finish(struct top *t, struct store *st, size_t report, uint64_t rows_max, struct answer *a,
                struct err *e) MUST_CHECK;
