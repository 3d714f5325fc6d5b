/* float_text.h - floats of binary formats: read from their bits, and printed with the fewest digits that read
 * back as the same number. Decoders call it, since fields are texts.
 */
#pragma once

#include "base/arena.h"

#include <stdint.h>

#define FLOAT_TEXT_BYTES 32

/* The number that has these bits of IEEE 754; `is_small`: the lower 32 are a float's. */
double float_of_bits(uint64_t bits, bool is_small);
/* Prints a number; `is_small`: with the precision of a float of 32 bits. Returns the length; a NUL follows.
 * Pre: the number is finite; `out` has FLOAT_TEXT_BYTES. */
size_t float_text_print(double number, bool is_small, char *out);
/* Prints the double that has these bits into `memory`. One that is no number is NaN, Infinity or -Infinity: a
 * text that is none, so that a value is a reject. */
struct slice float_text_of(struct arena *memory, uint64_t bits);
