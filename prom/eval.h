/* eval.h - evaluates an expression over a store: at one instant, or at every step of a range. Called by
 * web/prom_api.c.
 *
 *   text → tree (parse.h) → values of selectors (fetch.h) → call.h, aggregate.h, binary.h → vector (vector.h)
 *
 * Limits : EVAL_STEPS_MAX and query.points_max steps; query.series_max series in the answer; the budget
 *          (budget.h) for all parts of the expression together.
 * Order  : series by their labels. At one instant topk and sort_desc list the greatest first, bottomk and
 *          sort the least.
 * Owner  : the question's text must live as long as the answer.
 * Errors : EX_PROTOCOL: the expression cannot be parsed; EX_USAGE: it is wrong or not supported; the text is
 *          for the client's user.
 *          EX_UNAVAILABLE: a limit is exceeded. Others are the store's.
 */
#pragma once

#include "prom/native.h"
#include "prom/vector.h"
#include "query/query.h"

#define EVAL_STEPS_MAX 11000 /* as Prometheus */

struct eval_question {
    struct slice text;
    int64_t from_ms, to_ms, step_ms; /* step 0: the instant `from_ms` */
    struct query_limits limits;
    uint64_t
        series_max; /* series of the answer that the client wants; 0: all, or an error if that is too many */
};

struct eval_answer {
    enum value_type type;
    int64_t from_ms, step_ms;
    struct vector vector;
    struct natives natives;   /* the histograms in it */
    bool is_cut;              /* there are more series than the client wants */
    bool *is_read;            /* by report of the store: fetch_room.h; in `arena` */
    enum missed_where *holes; /* the same */
    struct arena arena;       /* memory of the labels */
};

/* Call eval_fini() only after true. */
bool eval_run(struct store *st, const struct eval_question *q, struct eval_answer *a,
              struct err *e) MUST_CHECK;
void eval_fini(struct eval_answer *a);
