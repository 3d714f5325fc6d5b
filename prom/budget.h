/* budget.h - what one request may cost: all of its selectors, expressions and operations share one budget.
 *
 * Limits : query.rows_max sets the limits of reading and matching: each is a multiple of it. Calculated
 *          values, series and values in memory have fixed limits.
 *          The deadline of the question and its share of memory, if it has them, are part of the budget.
 * Errors : EX_UNAVAILABLE: the budget is spent. The text uses PromQL's terms, names the key of the limit and
 *          says what to ask instead. Errors of deadline.h and quota.h.
 */
#pragma once

#include "base/arena.h"
#include "store/store.h"

#include <stddef.h>
#include <stdint.h>

#define BUDGET_VALUES_MAX 4000000
#define BUDGET_POINTS_MAX 100000000
#define BUDGET_SERIES_MAX 200000

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
    struct deadline *deadline;        /* looked at with each taking; NULL: none */
    struct share *memory;             /* NULL: no limit */
    const struct arena *arena;        /* memory of labels and texts, looked at with each taking; NULL: none */
    uint64_t arena_bytes, work_bytes; /* bytes of `memory` that the arena and budget_work() have taken */
    size_t values_left; /* values that may still be in memory; releasing a vector raises it again */
    bool is_full;       /* a part failed since it needs more values at once than are left */
};

/* Borrows the handle's deadline and share of memory; NULL: there are none. `arena` may be NULL. */
void budget_init(struct budget *b, uint64_t rows_max, const struct store *st, const struct arena *arena);
bool budget_take(struct budget *b, enum budget_kind kind, uint64_t count, struct err *e) MUST_CHECK;
/* Memory that a vector or a scan holds until budget_drop(). */
bool budget_hold(struct budget *b, uint64_t bytes, struct err *e) MUST_CHECK;
void budget_drop(struct budget *b, uint64_t bytes);
/* Memory for the work on one vector at a time, such as sorting it: as much as the largest takes. */
bool budget_work(struct budget *b, uint64_t bytes, struct err *e) MUST_CHECK;
/* Sets the error that this part of the budget is spent. Returns false. */
bool budget_fail(const struct budget *b, enum budget_kind kind, struct err *e);
