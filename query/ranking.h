/* ranking.h - the largest series of a period, and how they did in the period before it: /api/v1/top.
 *
 *   json   {"report":"pages","measure":"hits","from":"2015-05-17T00:00:00Z","to":…,"total":1234,
 *           "before":{"from":…,"to":…,"total":1100},
 *           "series":[{"series":{"path":"/x"},"value":12,"share":0.00972,"before":10},…]}
 *   csv    path,value,share,before
 *          /x,12,0.00972,10
 *
 * Order   : as top.h ranks; one measure.
 * Share   : of the total, which is of every series that the filters match, `other` too. Of what is not
 *           added up (min, max, last, mean), and where the total is 0, it is null.
 * Before  : the period of the same length that ends where this one begins; where that would begin with what
 *           is gone, it is longer by a part of the shortest slot that is kept there. A series that was not
 *           counted then has null; so has all of it where that period would begin before 1970, or is not kept
 *           in any span.
 * Cost    : where the store keeps the ranking of the period (kept.h), that, and the rows that the series
 *           shown have in the period before; else both periods are scanned, as one where they can be: totals
 *           have all series in them. rows_max is for each scan.
 */
#pragma once

#include "query/query.h"

#define RANKING_LIMIT 20 /* where none is asked for */

/* As query_set(): report, measure, filter, from, to, tz, limit (how many series), format (json or csv). */
bool ranking_set(struct query *q, struct slice name, struct slice value, struct err *e) MUST_CHECK;
/* Adds the answer to `out`; on false `out` is as it was. */
bool ranking_run(struct store *st, const struct query *q, struct text *out, struct err *e) MUST_CHECK;
