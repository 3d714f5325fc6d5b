/* first_lines.h - reads the first lines of a file, for `tallyd explain` and `tallyd detect`.
 *
 * Lines : without their line feed; the last one may lack it. A line over line_max may be cut behind its
 *         first line_max + 1 bytes, which show that it is too long.
 */
#pragma once

#include "base/err.h"
#include "base/slice.h"

#define FIRST_LINES_MAX 1000000

/* Takes a line, numbered from 1; it is valid until the call returns. False: *e of first_lines() is set. */
typedef bool first_lines_fn(void *context, struct slice line, size_t number);

/* "-" is standard input. False: the file cannot be read, or `take` returned false. */
bool first_lines(const char *path, size_t line_max, size_t count, first_lines_fn *take, void *context,
                 struct err *e) MUST_CHECK;
/* Parses the value of --lines: 1 to FIRST_LINES_MAX. */
bool first_lines_parse(const char *name, const char *value, size_t *lines, struct err *e) MUST_CHECK;
