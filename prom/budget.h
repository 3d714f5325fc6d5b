/* budget.h - what one request may cost: all of its selectors, expressions and operations take from it.
 *
 * Limits : query.rows_max, from which what is read and matched is reckoned, so that it is one knob; and fixed
 *          ones of what is worked out and what memory holds.
 * Errors : EX_UNAVAILABLE: there is not so much left; in words of PromQL, with the key of the limit and what
 *          to ask instead.
 */
#pragma once

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

#define BUDGET_VALUES_MAX 4000000
#define BUDGET_POINTS_MAX 100000000
#define BUDGET_SERIES_MAX 200000

/* In the order of `kinds` in budget.c. */
enum budget_kind {
    BUDGET_ROWS,        /* of the store */
    BUDGET_NAMES,       /* of series, that a selector, a grouping or a list looks at */
    BUDGET_REGEX_STEPS, /* of regular expressions */
    BUDGET_POINTS,      /* values that are worked out, of all parts of an expression */
    BUDGET_SERIES,      /* with their labels */
    BUDGET_KINDS
};

struct budget {
    uint64_t max[BUDGET_KINDS], left[BUDGET_KINDS];
    size_t values_left; /* of memory at once: what is given back is there again */
};

void budget_init(struct budget *b, uint64_t rows_max);
bool budget_take(struct budget *b, enum budget_kind kind, uint64_t count, struct err *e) MUST_CHECK;
/* Says that there is not so much left. Returns false. */
bool budget_fail(const struct budget *b, enum budget_kind kind, struct err *e);
