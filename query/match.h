/* match.h - finds the series of a report that have a query's dimension values. Only the store can fail.
 *
 * Cost : with every dimension given, one look-up in the store's dictionary. With some, a walk over the whole
 *        dictionary, in a server over the series that have them. With none, nothing: every series matches,
 *        `other` too.
 * Other: the value `(other)` is that of the series `other`; an event's own value of this text is `%28other)`.
 */
#pragma once

#include "query/query.h"

struct match {
    struct series_set set;
    uint64_t *bits; /* the bits of `set`, owned */
    uint64_t count; /* number of series that match; 0 if `set` is SERIES_ALL */
};

/* `values`: wanted text by dimension of the report; a NULL pointer: any. */
bool match_series(struct match *m, struct store *st, size_t report, const struct slice *values,
                  struct err *e) MUST_CHECK;
void match_fini(struct match *m);
