/* budget.h - what one request may cost: all of its selectors, expressions and operations share one budget.
 *
 * Limits : query.rows_max sets the limits of reading and matching: each is a multiple of it. Calculated
 *          values, series and values in memory have fixed limits.
 *          The deadline of the question, if it has one, is part of the budget.
 * Errors : EX_UNAVAILABLE: the budget is spent. The text uses PromQL's terms, names the key of the limit and
 *          says what to ask instead.
 */
#pragma once

#include "base/deadline.h"

#include <stddef.h>
#include <stdint.h>

#define BUDGET_VALUES_MAX 4000000
#define BUDGET_POINTS_MAX 100000000
#define BUDGET_SERIES_MAX 200000
/* Memory of one request, besides its text: values, in columns and as numbers; labels of series; a match. */
#define BUDGET_BYTES_MAX  ((int64_t)2 * BUDGET_VALUES_MAX * 8 + (int64_t)BUDGET_SERIES_MAX * 256 + (16 << 20))

/* In the order of `kinds` in budget.c. */
enum budget_kind {
    BUDGET_ROWS,        /* rows read from the store */
    BUDGET_NAMES,       /* names of series that selectors, groupings and lists look at */
    BUDGET_REGEX_STEPS, /* steps of regular expressions */
    BUDGET_POINTS,      /* values calculated in all parts of an expression */
    BUDGET_SERIES,      /* series whose labels are made */
    BUDGET_KINDS
};

struct budget {
    uint64_t max[BUDGET_KINDS], left[BUDGET_KINDS];
    struct deadline *deadline; /* looked at with each taking; NULL: none */
    size_t values_left;        /* values that may still be in memory; releasing a vector raises it again */
    bool is_full;              /* a part failed since it needs more values at once than are left */
};

void budget_init(struct budget *b, uint64_t rows_max, struct deadline *deadline);
bool budget_take(struct budget *b, enum budget_kind kind, uint64_t count, struct err *e) MUST_CHECK;
/* Sets the error that this part of the budget is spent. Returns false. */
bool budget_fail(const struct budget *b, enum budget_kind kind, struct err *e);
