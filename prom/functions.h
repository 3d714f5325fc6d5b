/* functions.h - the functions of PromQL by name: those that are answered, and why the others are not. Used by
 * parse_call.c, and by errors that name a function; cannot fail.
 */
#pragma once

#include "prom/ast.h"

struct function_entry {
    const char *name;
    /* A letter for each argument: r a range, v a vector, s a scalar, t a text. Those behind ? are optional;
     * the last one may repeat if * follows. */
    const char *arguments;
    enum value_type type;
    enum function id;
    size_t math; /* of FUNCTION_MATH */
};

/* NULL: there is no such function. */
const struct function_entry *functions_find(struct slice name);
const char *functions_name(enum function f);
/* Why Prometheus' function of this name is not answered; NULL: Prometheus has none. */
const char *functions_refusal(struct slice name);
/* The name of the function nearest to `name`, as ` (did you mean "rate"?)`, or "". */
const char *functions_hint(struct slice name, char *buf);

/* Does the function take a range? */
static inline bool function_takes_range(enum function f)
{
    return f >= FUNCTION_RATE && f <= FUNCTION_ABSENT_RANGE;
}
