/* bound.h - the part that all kinds of queries share: find their names in a store, and scan tiles. Queries,
 * rankings and values use it. Wrong names are EX_USAGE; refused answers are EX_UNAVAILABLE, with a hint. */
#pragma once

#include "query/answer.h"
#include "query/match.h"
#include "query/tiles.h"

/* A query whose names were found in a store. */
struct bound {
    const struct query *query;
    struct store *store;
    size_t report;
    struct series_wanted wanted;  /* what its series must have */
    struct answer answer;         /* the answer's report, measures and range; no rows yet */
    struct watermarks watermarks; /* the report's expiry watermarks */
};

/* Find a report by its name. The error lists the names that exist. */
bool bound_find_report(const struct store *st, struct slice name, size_t *report, struct err *e) MUST_CHECK;
/* Fill the rest of a bound that has its query and store. */
bool bound_fill(struct bound *b, struct err *e) MUST_CHECK;
/* Widen its range to whole cells (minutes or seconds). */
void bound_widen(struct bound *b);
/* Check the bytes of `out` from `before` on against the query's limit. False: they are cut off again. */
bool bound_check_bytes(const struct query *q, struct text *out, size_t before, struct err *e) MUST_CHECK;
/* Scan tiles. It refuses tiles with expired time buckets. The query's limit of rows is for all scans. */
bool bound_scan(const struct bound *b, const struct series_set *set, const struct tiles *tiles, scan_fn *fn,
                sketch_fn *sketch, void *context, struct query_stats *stats, struct err *e) MUST_CHECK;
