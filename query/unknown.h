/* unknown.h - the error about an unknown name: it suggests a similar name, and lists the names that exist. */
#pragma once

#include "aggregate/report.h"
#include "base/err.h"
#include "base/slice.h"

/* EX_USAGE: `unknown WHAT "given" (did you mean …?): there are a, b, c`; `names` has NULL at its end.
 * Returns false. */
bool unknown_name(struct err *e, const char *what, struct slice given, const char *const names[]);
/* The same of a dimension that the report does not have. */
bool unknown_dimension(struct err *e, const struct report *r, struct slice given) MUST_CHECK;
