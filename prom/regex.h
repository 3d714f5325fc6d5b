/* regex.h - the regular expressions of =~ and !~, by PCRE2; as in Prometheus they are anchored at both ends.
 * Used by select.c.
 *
 * Syntax  : Perl's, which has nearly all of RE2's. `\pN`, `(?i)`, `(?P<name>…)` mean the same; `\z` is the
 *           end; RE2's `\C` is refused. Features that RE2 lacks (backreferences, look-ahead) work.
 * Limits  : REGEX_STEPS_MAX steps for one text, since backtracking may take exponentially many; REGEX_KIB_MAX
 *           of memory. Each attempt takes its step limit from the budget: 160, then five times as many.
 * Errors  : EX_USAGE: the pattern is invalid, or a text exceeds the limits; EX_UNAVAILABLE: the budget is
 *           spent; EX_OSFILE: PCRE2 is not installed; EX_OSERR: no memory.
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
