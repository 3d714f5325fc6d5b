/* float_text.h - floats of binary formats: read from their bits, and printed with as few digits as tell them
 * from their neighbours. Decoders call it, since fields are texts.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FLOAT_TEXT_BYTES 32

/* The number whose bits of IEEE 754 these are; `is_small`: the lower 32 are a float. */
double float_of_bits(uint64_t bits, bool is_small);
/* A float of 32 bits (`is_small`) needs fewer digits. Returns the length; a NUL follows. Pre: the number is
 * finite; `out` has FLOAT_TEXT_BYTES. */
size_t float_text_print(double number, bool is_small, char *out);
