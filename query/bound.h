/* bound.h - what questions of several kinds share: names found in a store, and scans of tiles. */
#pragma once

#include "query/answer.h"
#include "query/tiles.h"

/* A query whose names were found in a store. */
struct bound {
    const struct query *query;
    struct store *store;
    size_t report;
    struct slice values[REPORT_DIMENSIONS_MAX]; /* wanted of each dimension; NULL: any */
    struct answer answer;                       /* its report, measures and range; no rows yet */
    struct marks marks;                         /* of the report: what is gone */
};

/* The report of a name, or which there are. */
bool bound_find_report(const struct store *st, struct slice name, size_t *report, struct err *e) MUST_CHECK;
/* Fill the rest of a bound that has its query and store. */
bool bound_fill(struct bound *b, struct err *e) MUST_CHECK;
/* Move the ends of its range to those of whole cells. */
void bound_widen(struct bound *b);
/* Is what an answer added to `out` within the query's limit? If not, it is taken off again. */
bool bound_check_bytes(const struct query *q, struct text *out, size_t before, struct err *e) MUST_CHECK;
/* Scan tiles, or refuse to where some of them are gone; the query's limit of rows is for all of them. */
bool bound_scan(const struct bound *b, const struct series_set *set, const struct tiles *tiles, scan_fn *fn,
                void *context, struct query_stats *stats, struct err *e) MUST_CHECK;
