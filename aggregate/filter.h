/* filter.h - one condition of a report's `where`, compiled: field, operator, operand.
 *
 *   status>=500   method=GET|POST   path=*.html   agent!=*bot*   user!=-   (- is "absent")
 *
 * Text operators are = and != with `|` between alternatives and `*` for any run of bytes. They compare
 * the bytes of the log, with escapes still in place; an absent field is the text "-". < <= > >= compare
 * numbers exactly: status and bytes with whole numbers, value and own fields with decimal fractions
 * (value>=-95.5). They never hold for an event without that number.
 *
 * Fields   : the fields of event.h. Derived dimensions are written with them: status=4* for status_class
 *            4xx, referrer=*://example.com* for a referrer_host.
 * Spelling : one per condition: no spaces around the operator; alternatives sorted, each once; numbers
 *            without needless zeros.
 * Cost     : no allocation, linear in the field and the operand (memmem), whatever a client sends.
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
    int64_t number;                  /* operand of < <= > >=, in units of 1/field_scale() */
    size_t text_len;                 /* length of `text` */
    char text[CONDITION_TEXT_BYTES]; /* operand of = and !=, and a NUL */
};

/* Split at the first operator; longer operators win over their beginnings. False: there is none. */
bool condition_split(struct slice text, struct slice *name, enum condition_op *op, struct slice *operand);
/* An operand of < <= > >= such as -12.5, in units of 1/EVENT_SCALE. False: it is none that they represent. */
bool condition_number(struct slice text, int64_t *number);
/* False: EX_CONFIG, "found …, expected …"; *c is then unchanged. */
bool condition_parse(struct condition *c, struct slice text, struct err *e) MUST_CHECK;
/* Can an event have one of these texts, the operand of an operator = or !=? False, EX_CONFIG, for what would
 * silently match nothing: status=5xx, bytes=1MB, path==/x, path=~^/x, status=>500, host=10.0.0.0/8. Stored
 * definitions are not checked, since they may be older. `f`: FIELD_COUNT if they are of no field. */
bool condition_check_texts(enum field f, enum condition_op op, struct slice operand,
                           struct err *e) MUST_CHECK;
bool condition_holds(const struct condition *c, const struct event *ev);
/* Adds the condition in its one spelling, which condition_parse() reads back to the same condition. */
void condition_print(const struct condition *c, struct text *out);
