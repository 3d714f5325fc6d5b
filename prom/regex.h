/* regex.h - the regular expressions of =~ and !~, by PCRE2; as in Prometheus they are anchored at both ends.
 * Used by select.c and relabel.c.
 *
 * Syntax  : RE2's, as PCRE2 understands it; what RE2 lacks is refused (regex_syntax.h), and so is `\C`. `\z`
 *           is the end.
 * Limits  : for one text REGEX_STEPS_MAX steps, since backtracking may take exponentially many; fewer if
 *           steps × bytes of the text × items of the longest class would pass REGEX_LOOKS_MAX, some tens of
 *           ms; and PCRE_KIB_MAX of memory. Each attempt takes its step limit from the budget: 160, then five
 *           times as many.
 * Errors  : EX_PROTOCOL: the pattern is invalid. EX_USAGE: a text exceeds the limits; EX_UNAVAILABLE: the
 *           budget is spent; EX_OSFILE: PCRE2 is not installed.
 * Threads : one at a time.
 */
#pragma once

#include "base/slice.h"
#include "prom/budget.h"

#define REGEX_STEPS_MAX 20000
#define REGEX_LOOKS_MAX 10000000

struct regex;

/* NULL on failure. */
struct regex *regex_new(struct slice pattern, struct err *e) MUST_CHECK;
void regex_free(struct regex *r);
bool regex_matches(const struct regex *r, struct slice text, struct budget *b, bool *matches,
                   struct err *e) MUST_CHECK;
/* The text that a group matched, by number or name, of the last text that matched, which is still there;
 * empty: none. */
struct slice regex_group(const struct regex *r, struct slice name);
