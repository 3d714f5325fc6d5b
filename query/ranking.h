/* ranking.h - the largest series of a period, with their values in the period before it: /api/v1/top. Errors
 * are those of query.h.
 *
 *   json   {"report":"pages","measure":"hits","from":"2015-05-17T00:00:00Z","to":…,"total":1234,
 *           "before":{"from":…,"to":…,"total":1100},
 *           "series":[{"series":{"path":"/x"},"value":12,"share":0.00972,"before":10},…]}
 *   csv    path,value,share,before
 *          /x,12,0.00972,10
 *
 * Order   : by one measure, as top.h ranks.
 * Share   : the value divided by the total of every series that the filters match, `other` too. It is null if
 *           the total is 0, and for min, max, last and mean.
 * Before  : the period of the same length that ends where this one begins. If the time buckets at its start
 *           have expired, it starts at the start of the shortest bucket that has not. A series without counts
 *           there has null. If the period would begin before 1970, or has expired in every resolution, the
 *           whole `before` is null.
 * Cost    : if the store caches the period's ranking (cached_ranking.h), it reads the ranking, and the rows
 *           of the series shown in the period before. Else it scans all series of both periods for their
 *           totals, by common scans where it can. rows_max is for the scans of one bound_scan().
 */
#pragma once

#include "query/query.h"

#define RANKING_LIMIT 20 /* default number of series */

/* Set one parameter: report, measure, filter, from, to, tz, limit (series), format (json or csv). */
bool ranking_set(struct query *q, struct slice name, struct slice value, struct err *e) MUST_CHECK;
/* Adds the answer to `out`; on false `out` is as it was. */
bool ranking_run(struct store *st, const struct query *q, struct text *out, struct err *e) MUST_CHECK;
