/* regex.h - the expressions of =~ and !~: anchored at both ends, as in Prometheus, by PCRE2.
 *
 * Syntax  : Perl's, of which RE2's is nearly a part. `\pN`, `(?i)`, `(?P<name>…)` mean the same; `\z` is the
 *           end; RE2's `\C` is refused. What RE2 has not (backreferences, look-ahead) works.
 * Limits  : REGEX_STEPS_MAX steps for one text, since going back may take exponentially many, and
 *           REGEX_KIB_MAX of memory; of the budget, what is tried: 160, then five times as many.
 * Errors  : EX_USAGE: it is none, or takes more than that; EX_UNAVAILABLE: the budget is spent.
 * Threads : one at a time.
 */
#pragma once

#include "base/slice.h"
#include "prom/budget.h"

#define REGEX_STEPS_MAX 20000
#define REGEX_KIB_MAX   16384

struct regex;

/* NULL on failure. */
struct regex *regex_new(struct slice pattern, struct err *e) MUST_CHECK;
void regex_free(struct regex *r);
bool regex_matches(const struct regex *r, struct slice text, struct budget *b, bool *matches,
                   struct err *e) MUST_CHECK;
