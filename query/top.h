/* top.h - ranks series by what they counted in a range.
 *
 * Order   : the first measure asked for, descending, absent ones last; then the key. A series whose count
 *           or sum is 0 is not there.
 * Memory  : the wanted columns of each series number that a scan names; keys only of those that may be
 *           shown.
 */
#pragma once

#include "base/arena.h"
#include "query/answer.h"

struct top {
    const struct answer *answer; /* which measures */
    int64_t *rows;               /* by series: 1 where a scan named it, and the answer's columns */
    size_t series_count, capacity;
    struct arena keys;
    uint32_t *shown; /* the series of each of the answer's rows */
};

void top_init(struct top *t, const struct answer *a);
void top_fini(struct top *t);
/* Merge a row of all the report's columns into those of a series; for store_scan(). */
void top_scan(void *top, uint32_t series, int64_t slot_ms, const int64_t *columns);
/* The answer's columns of one series: NULL where no scan named it, … */
const int64_t *top_columns(const struct top *t, uint32_t series);
/* … and of all of them together, into `columns`, which are zeros. */
void top_total(const struct top *t, int64_t *columns);
/* Fill the rows of `a`, at most `rows_max`; their keys live as long as `t`. */
bool top_finish(struct top *t, struct store *st, size_t report, uint64_t rows_max, struct answer *a,
                struct err *e) MUST_CHECK;
