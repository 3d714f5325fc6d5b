/* where.h - a condition of a query on one dimension, in the words of a report's `where` (aggregate/filter.h):
 *
 *   path=/blog*|/news*   status!=2*   status>=500
 *
 * It is tested on the settled text of a series' dimension, not on the bytes of the log. `<` and the like hold
 * only for texts that are numbers, which are rounded to six places as those of events are. The series `other`
 * has the text (other) in every dimension. So each series is on one side of a condition with = and of the
 * same with !=; but of < and >=, texts that are no numbers are on neither side, and so is (other).
 *
 * Owner: a condition borrows the query's text.
 */
#pragma once

#include "aggregate/filter.h"
#include "aggregate/report.h"

struct where {
    size_t dimension;
    enum condition_op op;
    struct slice text; /* operand of = and != */
    int64_t number;    /* operand of the others, in units of 1/EVENT_SCALE */
};

/* EX_USAGE: the text is for the user; it names the dimensions that there are. */
bool where_parse(struct where *w, const struct report *r, struct slice condition, struct err *e) MUST_CHECK;
bool where_holds(const struct where *w, struct slice text);
