/* top.h - ranks series by what they counted in a range.
 *
 * Order   : the first measure asked for, descending, absent ones last; then the key. A series whose count
 *           or sum is 0 is not there.
 * Memory  : four bytes for each series number up to the greatest that a scan names, the wanted columns of
 *           those that it names, keys only of those that may be shown.
 */
#pragma once

#include "base/arena.h"
#include "query/answer.h"

struct top {
    const struct answer *answer; /* which measures */
    bool is_plain;               /* one, of one column that is added up and is its value: nearly always */
    int64_t *rows;               /* of each series that a scan named: its number, and the answer's columns */
    size_t count, capacity;
    uint32_t *places; /* by series: which row is its own, from 1; 0: none */
    size_t place_count;
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
