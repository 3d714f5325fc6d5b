/* advice.h - what to ask instead of a question that passes a limit. */
#pragma once

#include "query/answer.h"

/* The finest step, of those that people ask for, that is longer than `longer_than_ms` and of which the
 * answer's range has at most `rows_max`; NULL: none. */
const char *advice_step(const struct answer *a, int64_t longer_than_ms, uint64_t rows_max);
/* The finest such step, longer than the answer's, that needs nothing of what is gone; NULL: none. */
const char *advice_kept_step(const struct answer *a, const struct marks *marks, uint64_t rows_max);
/* Would the answer's own step need nothing of that in UTC? */
bool advice_is_kept_in_utc(const struct answer *a, const struct marks *marks, uint64_t rows_max);
/* The shortest slots that are there from `from_ms` on; SPAN_COUNT: none. */
enum span advice_kept_span(const struct report *r, const struct marks *marks, int64_t from_ms);
/* A report with the same conditions and measures but fewer dimensions, those of `values` among them (as
 * match_series() takes them); NULL: none. */
const char *advice_report(const struct store *st, const struct answer *a, const struct slice *values);
