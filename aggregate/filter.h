/* filter.h - one condition of a report's `where`, compiled: field, operator, operand.
 *
 *   status>=500   method=GET|POST   path=*.html   agent!=*bot*   user!=-   (- is "absent")
 *
 * Text operators are = and != with `|` between alternatives and `*` for any run of bytes; they compare
 * the bytes of the log, escapes and all. < <= > >= compare numbers (status, bytes) only.
 */
#pragma once

#include "base/err.h"
#include "base/text.h"
#include "ingest/event.h"

enum condition_op { OP_EQ, OP_NE, OP_LT, OP_LE, OP_GT, OP_GE };

#define CONDITION_TEXT_BYTES 256

struct condition {
    enum field field;
    enum condition_op op;
    int64_t number;                  /* operand of < <= > >= */
    char text[CONDITION_TEXT_BYTES]; /* operand of = and != */
};

bool condition_parse(struct condition *c, struct slice text, struct err *e) MUST_CHECK;
bool condition_holds(const struct condition *c, const struct event *ev);
/* "field op operand" in its one canonical spelling, into buf. */

void condition_print(const struct condition *c, struct text *out);
