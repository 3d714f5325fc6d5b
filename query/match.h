/* match.h - finds the series of a report that a query wants. Only the store can fail.
 *
 * Cost : with a value for every dimension, one look-up in the store's dictionary. With some, or with
 *        conditions, a walk over the whole dictionary, in a server over the series that have the values. With
 *        none, nothing: every series matches, `other` too.
 * Other: the value `(other)` is that of the series `other`; an event's own value of this text is `%28other)`.
 */
#pragma once

#include "query/query.h"
#include "query/where.h"

/* The filters and conditions of a query. */
struct series_wanted {
    struct slice
        values[REPORT_DIMENSIONS_MAX];   /* text of each dimension of the report; a NULL pointer: any */
    struct where where[QUERY_WHERE_MAX]; /* conditions, all of which must hold */
    size_t where_count;
};

struct match {
    struct series_set set;
    uint64_t *bits; /* the bits of `set`, owned */
    uint64_t count; /* number of series that match; 0 if `set` is SERIES_ALL */
};

bool match_series(struct match *m, struct store *st, size_t report, const struct series_wanted *wanted,
                  struct err *e) MUST_CHECK;
void match_fini(struct match *m);
