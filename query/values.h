/* values.h - which texts a dimension has, for whoever completes what a user begins to type: /api/v1/series.
 *
 *   {"values":["/a","/about"],"more":true}        sorted by byte, each once; `more`: there are others behind
 * them
 *
 * Cost   : store_values(): in SQLite a walk over all series of the report, of 100,000 some milliseconds; a
 *          server looks for those with the prefix.
 * Memory : no more than the values that are answered, and one.
 */
#pragma once

#include "query/query.h"

#define VALUES_LIMIT 100 /* where none is asked for */

/* report, dimension (needless where the report has one only), prefix, limit. */
bool values_set(struct query *q, struct slice name, struct slice value, struct err *e) MUST_CHECK;
/* Adds the answer to `out`; on false `out` is as it was. */
bool values_run(struct store *st, const struct query *q, struct text *out, struct err *e) MUST_CHECK;
