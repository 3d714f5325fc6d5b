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
};

void top_init(struct top *t, const struct answer *a);
void top_fini(struct top *t);
/* Merge a row of all the report's columns into those of a series. */
void top_add(struct top *t, uint32_t series, const int64_t *columns);
/* Fill the rows of `a`, at most `rows_max`; their keys live as long as `t`. */
bool top_finish(struct top *t, struct store *st, size_t report, uint64_t rows_max, struct answer *a,
                struct err *e) MUST_CHECK;
