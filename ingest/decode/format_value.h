/* format_value.h - values of a compiled format that are not just bytes of the line: numbers in another unit,
 * lists, JSON's escapes. format_run.c calls it.
 *
 * Owner : what is written anew is in `memory`.
 */
#pragma once

#include "base/arena.h"

#include <stdint.h>

static inline bool format_value_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* The first `stop`, or the end; with `escapes`, a backslash spares the byte behind it. Sets *odd if it passes
 * an odd byte (scan.h). */
const char *format_value_find(const char *p, const char *end, char stop, bool escapes, bool *odd);
/* Undoes the escapes of [*from, *to), which then is in `memory`. False: the escape at *from is broken. */
bool format_value_undo_json(struct arena *memory, const char **from, const char **to);
/* Prints a number of units of 1/EVENT_SCALE with as many decimals as it needs. */
struct slice format_value_print(struct arena *memory, int64_t value);
/* The end of the sign, digits and points at `p`. */
const char *format_value_number_end(const char *p, const char *end);
/* The number, in units of 1/EVENT_SCALE, of a text in units of `scale` such ones. False: it is none, or out
 * of range. */
bool format_value_parse(struct slice text, int scale, int64_t *value);
/* Moves *p behind ", " or " : " between the elements of a list. False: neither is there. */
bool format_value_skip_separator(const char **p, const char *end);
