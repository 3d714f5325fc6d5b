/* values.h - the texts that a dimension has: /api/v1/series. Clients complete a user's typing with it. Errors
 * are those of query.h.
 *
 *   {"values":["/a","/about"],"more":true}        sorted by byte, each once; `more`: others follow
 *
 * Cost   : that of store_values(). SQLite walks all series of the report: some milliseconds for 100,000. A
 *          server looks up the values with the prefix.
 * Memory : the values of the answer, and one more.
 */
#pragma once

#include "query/query.h"

#define VALUES_LIMIT 100 /* default number of values */

/* Set one parameter: report, dimension (optional if the report has only one), prefix, limit. */
bool values_set(struct query *q, struct slice name, struct slice value, struct err *e) MUST_CHECK;
/* Adds the answer to `out`; on false `out` is as it was. */
bool values_run(struct store *st, const struct query *q, struct text *out, struct err *e) MUST_CHECK;
