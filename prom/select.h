/* select.h - which metrics and which of their series a selector means.
 *
 * Labels: a metric has those of names.h; any other is "", as in Prometheus. The series `other` has
 *         STORE_OTHER_KEY in each.
 * Cost  : every dimension given by `=` is one look-up in the store's dictionary, none is nothing; else a
 *         walk over all of it.
 * Errors: EX_USAGE: a regular expression is none or takes too long, or any metric would do; EX_UNAVAILABLE:
 *         the budget is spent.
 */
#pragma once

#include "prom/ast.h"
#include "prom/names.h"
#include "prom/regex.h"
#include "prom/vector.h"
#include "query/match.h"

struct select {
    const struct selector *selector;
    struct budget *budget;
    struct regex **regexes; /* by matcher; NULL where it is not by one */
    size_t matched;         /* the report that `match` is of, and 1; 0: none yet */
    struct match match;
};

/* On false, too, there is something to select_fini(). */
bool select_init(struct select *s, const struct selector *selector, struct budget *b,
                 struct err *e) MUST_CHECK;
void select_fini(struct select *s);
bool select_metric(const struct select *s, const struct report *r, size_t measure, bool *matches,
                   struct err *e) MUST_CHECK;
/* As of match_series(), but its kind may be a set of none; found once for all metrics of a report, and
 * borrowed until another one is asked for. NULL on failure. */
const struct match *select_series(struct select *s, struct store *st, size_t report,
                                  struct err *e) MUST_CHECK;

/* The labels of a series, sorted by name, copied into `arena`; `metric` empty: without the metric's name. */
struct labels select_labels(const struct report *r, const struct names *names, struct slice metric,
                            struct slice key, struct arena *arena);
