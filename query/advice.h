/* advice.h - what to ask instead of a question that passes a limit. */
#pragma once

#include "query/answer.h"

/* The finest step, of those that people ask for, that is longer than `longer_than_ms` and of which the
 * answer's range has at most `rows_max`; NULL: none. */
const char *advice_step(const struct answer *a, int64_t longer_than_ms, uint64_t rows_max);
/* A report with the same conditions and measures but fewer dimensions, those of `values` among them (as
 * match_series() takes them); NULL: none. */
const char *advice_report(const struct store *st, const struct answer *a, const struct slice *values);
