/* recent.h - the newest events of the series that match a query (`newest`), as a report with `newest` keeps
 * them by series and day. query_run() calls it. Errors are those of query.h.
 *
 *   {"report":"pages","newest":[{"time":"2015-05-17T10:05:03Z","series":{"path":"/a"},
 *     "at":"kafka:access/0/0000000000000004711","event":{"host":"192.0.2.1","status":200}},…]}
 *
 * Exact   : days are read backwards, the newest first, until they have enough. Each holds the newest events
 *           of each series, so at most as many can be asked for as the report keeps. They are shown from
 *           `from` on, and before `to`, which must be the start of a day of UTC: what was newer on that day
 *           has pushed older ones out.
 * Cost    : that of store_recent() for the days that are read: 1, 2, 4, … at a time.
 * Table   : a line an event: time, then the series and the fields as name=value.
 * CSV     : time, the dimensions, at, then a column for each field that an event has.
 */
#pragma once

#include "query/query.h"

bool recent_run(struct store *st, const struct query *q, struct text *out, struct query_stats *stats,
                struct err *e) MUST_CHECK;
