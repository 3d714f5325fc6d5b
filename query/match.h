/* match.h - which series of a report have the dimension values that a query asks for.
 *
 * Cost : every dimension given is one look-up in the store's dictionary; only some is a walk over all of it,
 *        in a server over those that have them; none is every series, `other` too.
 */
#pragma once

#include "query/query.h"

struct match {
    struct series_set set;
    uint64_t *bits; /* of `set`, owned */
    uint64_t count; /* series that match; not counted where all do */
};

/* `values`: by dimension of the report; a NULL pointer where any will do. */
bool match_series(struct match *m, struct store *st, size_t report, const struct slice *values,
                  struct err *e) MUST_CHECK;
void match_fini(struct match *m);
