/* eval.h - an expression over a store: at one instant, or at every step of a range.
 *
 *   text → tree (parse.h) → values of selectors (fetch.h) → aggregate.h, binary.h → vector (vector.h)
 *
 * Limits : EVAL_STEPS_MAX steps, and no more than query.points_max; query.series_max series in the answer;
 *          the budget (budget.h), all parts of the expression together.
 * Order  : series by their labels; of topk at one instant the greatest first, of bottomk the least.
 * Owner  : the question's text must live as long as the answer.
 * Errors : EX_USAGE: the expression is wrong, or none that is answered here, in words for whoever asked;
 *          EX_UNAVAILABLE: a limit is passed; others are the store's.
 */
#pragma once

#include "prom/vector.h"
#include "query/query.h"

#define EVAL_STEPS_MAX 11000 /* as Prometheus */

struct eval_question {
    struct slice text;
    int64_t from_ms, to_ms, step_ms; /* step 0: the instant `from_ms` */
    struct query_limits limits;
};

struct eval_answer {
    enum value_type type;
    int64_t from_ms, step_ms;
    struct vector vector;
    struct arena arena; /* of its labels */
};

/* eval_fini() is due after true only. */
bool eval_run(struct store *st, const struct eval_question *q, struct eval_answer *a,
              struct err *e) MUST_CHECK;
void eval_fini(struct eval_answer *a);
