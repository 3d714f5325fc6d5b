/* line_regex.h - finds the parts of a line by a regular expression with named groups. text_step.c calls it.
 *
 *   (?<host>\S+) \[(?<time>[^]]+)\] (?<status>\d+) .*
 *
 * Syntax  : PCRE2's. The expression must match the whole line. It sees bytes, not characters.
 * Absent  : a group that took no part in the match has no text.
 * Bounded : a line of n bytes may take 1,000 + 4 n steps, at most LINE_REGEX_STEPS_MAX; if it takes more, it
 *           is a reject. PCRE2 counts steps; one takes some ns. In the worst case it looks at the rest of the
 *           line, as a lookahead can.
 * Slow    : if the system forbids code that is made at run time, PCRE2 interprets. A line then costs four
 *           times as much, and may take four times the steps, since it has more of them.
 * Cost    : no allocation for a line. PCRE2 compiles to machine code: 130 ns for a line of combined.
 * Threads : one at a time; each chain makes its own.
 * Errors  : EX_CONFIG: the expression is wrong; EX_OSFILE: PCRE2 is not installed.
 */
#pragma once

#include "ingest/decode/part_names.h"
#include "ingest/decode/parts.h"

#define LINE_REGEX_STEPS_MAX 20000

struct line_regex;

/* Reads the names of the groups. Their numbers are those of the groups. */
bool line_regex_names(struct slice pattern, struct part_names *names, struct err *e) MUST_CHECK;

/* Pre: line_regex_names() takes the pattern. */
struct line_regex *line_regex_new(struct slice pattern);
void line_regex_free(struct line_regex *lr);
/* Makes it put the text of a group into this slot. Pre: fewer than PARTS_SLOTS groups. */
void line_regex_add(struct line_regex *lr, unsigned group, unsigned slot);
/* False: *reason, and *at is the line's beginning. */
bool line_regex_read(struct line_regex *lr, struct slice line, struct parts *ps, enum reject_reason *reason,
                     const char **at);
