/* hint.h - finds the hint of a refused query: what to query instead. bound_scan() and query_run() use it.
 * Nothing here fails. */
#pragma once

#include "query/answer.h"
#include "query/match.h"

/* The shortest common step that is longer than `longer_than_ms` and gives the answer's range at most
 * `rows_max` rows; NULL: none. */
const char *hint_step(const struct answer *a, int64_t longer_than_ms, uint64_t rows_max);
/* The shortest common step, longer than the answer's, that needs no expired time bucket; NULL: none. */
const char *hint_kept_step(const struct answer *a, const struct watermarks *watermarks, uint64_t rows_max);
/* Would the answer's own step, in UTC, need no expired time bucket? */
bool hint_is_kept_in_utc(const struct answer *a, const struct watermarks *watermarks, uint64_t rows_max);
/* The shortest resolution whose time buckets have not expired from `from_ms` on; SPAN_COUNT: none. */
enum span hint_kept_span(const struct report *r, const struct watermarks *watermarks, int64_t from_ms);
/* The name of a report that answers the same from fewer dimensions; NULL: none. It has the same conditions,
 * the answer's measures, and the dimensions of which something is wanted. */
const char *hint_report(const struct store *st, const struct answer *a, const struct series_wanted *wanted);
