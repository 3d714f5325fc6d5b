/* select.h - finds the metrics and series that a selector matches. Called by fetch.c and list.c.
 *
 * Labels: a metric has the labels of names.h; every other label is "", as in Prometheus. The series `other`
 *         has STORE_OTHER_KEY in each label.
 * Cost  : one look-up in the store's dictionary if `=` gives every dimension; nothing if no dimension is
 *         given; else a walk over all of the dictionary.
 * Errors: EX_PROTOCOL: a regular expression is invalid, or no matcher excludes the empty text; EX_USAGE: one
 *         takes too long;
 *         EX_UNAVAILABLE: the budget is spent; the store's.
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
    struct regex **regexes; /* by matcher; NULL: not a regular expression */
    size_t matched;         /* number of the report whose series `match` has, plus 1; 0: none yet */
    bool has_le;            /* `match` is of metrics with BUCKET_LABEL */
    struct match match;
};

/* Call select_fini() after false, too. */
bool select_init(struct select *s, const struct selector *selector, struct budget *b,
                 struct err *e) MUST_CHECK;
void select_fini(struct select *s);
/* Do the matchers of a label take this value, whatever other labels say? */
bool select_label(const struct select *s, const char *label, struct slice value, bool *matches,
                  struct err *e) MUST_CHECK;
/* Does the selector match a metric of the report? If it does by the alias (names.h), that is the metric's
 * name from now on. */
bool select_metric(const struct select *s, const struct report *r, struct metric *m, bool *matches,
                   struct err *e) MUST_CHECK;
/* Finds series like match_series(), but a SERIES_SET may be empty. `has_le`: of METRIC_BUCKET, so matchers of
 * BUCKET_LABEL tell no series apart. The result is found once for all other metrics of a report, and borrowed
 * until the next call. NULL on failure. */
const struct match *select_series(struct select *s, struct store *st, size_t report, bool has_le,
                                  struct err *e) MUST_CHECK;

/* The labels of a series, sorted by name, copied into `arena`; `metric` empty: without the metric's name. */
struct labels select_labels(const struct report *r, const struct names *names, struct slice metric,
                            struct slice key, struct arena *arena);
