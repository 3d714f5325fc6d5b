/* regex_syntax.h - refuses in a regular expression what RE2, the syntax of Prometheus, lacks: look-around,
 * backreferences, possessive and atomic parts, recursion, conditions and verbs. Called by regex.c.
 *
 * Why     : RE2 lacks them since no engine can match them in linear time. In PCRE2 one step of them may read
 *           a text any number of times, so a limit of steps does not bound their time.
 * Not here: whether the rest of the expression is right. PCRE2 says that when it compiles it.
 * Errors  : EX_PROTOCOL: the byte, what is there, and that RE2 lacks it.
 */
#pragma once

#include "base/err.h"
#include "base/slice.h"

#define REGEX_REPEAT_MAX 1000 /* of x{n}, as in RE2 */

struct regex_shape {
    size_t class_bytes; /* length of the longest [class]: what PCRE2 may look at for one character */
};

bool regex_syntax_check(struct slice pattern, struct regex_shape *shape, struct err *e) MUST_CHECK;
