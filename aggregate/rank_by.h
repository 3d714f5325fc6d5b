/* rank_by.h - the figures of a measure by which a store may cache rankings of series (store_top()). The job
 * that ranks, and queries that ask for a ranking, agree by it. Nothing here fails.
 *
 *   count, sum           value
 *   histogram(duration)  count mean max p50 p90 p95 p99 p99_9
 *   distinct(host)       value (how many texts there were), count
 *
 * The values are those that queries show (query/figure.h). Other measures are not ranked, nor is a histogram
 * by other figures.
 */
#pragma once

#include "aggregate/measure.h"

enum rank_by {
    RANK_BY_VALUE,
    RANK_BY_COUNT,
    RANK_BY_MEAN,
    RANK_BY_MAX,
    RANK_BY_P50,
    RANK_BY_P90,
    RANK_BY_P95,
    RANK_BY_P99,
    RANK_BY_P99_9,
    RANK_BY_END
};

/* Is the measure ranked by it? */
bool rank_by_is_of(enum rank_by by, const struct measure *m);
/* Its name as a member of a document: "p99_9". */
const char *rank_by_name(enum rank_by by);
/* The quantile, in units of 1/EVENT_SCALE; -1: it is none. */
int64_t rank_by_quantile(enum rank_by by);
/* Are series with 0 left out? */
bool rank_by_is_amount(enum rank_by by);
/* Of a time bucket of a resolution. `columns`: those of the measure. `s`: its sketch, if it has one. In
 * units of 1/EVENT_SCALE. False: it is absent. */
bool rank_by_value(enum rank_by by, const struct measure *m, enum span span, const int64_t *columns,
                   const union sketch *s, int128 *value);
