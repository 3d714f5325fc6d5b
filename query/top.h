/* top.h - ranks series by what they counted in a range.
 *
 * Order  : the first measure asked for, descending; then the key. A series that counted nothing is not there.
 * Memory : the wanted measures of each series number that a scan names; keys only of those that may be shown.
 */
#pragma once

#include "base/arena.h"
#include "query/answer.h"

struct top {
    const struct answer *answer; /* which measures */
    int64_t *values;             /* [series × measure_count + measure] */
    size_t series_count, capacity;
    struct arena keys;
};

void top_init(struct top *t, const struct answer *a);
void top_fini(struct top *t);
/* Count the values (all of the report's) of a series. */
void top_add(struct top *t, uint32_t series, const int64_t *values);
/* Fill the rows of `a`, at most `rows_max`; their keys live as long as `t`. */
bool top_finish(struct top *t, struct store *st, size_t report, uint64_t rows_max, struct answer *a,
                struct err *e) MUST_CHECK;
