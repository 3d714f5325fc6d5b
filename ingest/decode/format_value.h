/* format_value.h - values that are not just bytes of the line: numbers in another unit, lists, JSON's
 * escapes. format_run.c calls it for those of a compiled format, chain_field.c for lists of numbers.
 *
 * Owner : what is written anew is in `memory`.
 */
#pragma once

#include "base/arena.h"
#include "base/slice.h"

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

/* The numbers of a list. */
struct format_sum {
    int64_t value; /* in units of 1/EVENT_SCALE */
    size_t count;
    struct slice last;
};

/* Adds up a list of numbers, "0.120, 1.380 : 0.020", in which "-" and "" are none, and moves *p to its end.
 * False: the element at *p is no number of 0 or more, or the sum is out of range. */
bool format_value_add_up(const char **p, const char *end, struct format_sum *sum);
/* Moves *p behind ", " or " : " between the elements of a list. False: neither is there. */
bool format_value_skip_separator(const char **p, const char *end);
