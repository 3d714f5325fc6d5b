/* float_text.h - prints a float with as few digits as tell it from its neighbours. Decoders of binary formats
 * call it, since fields are texts.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define FLOAT_TEXT_BYTES 32

/* A float of 32 bits (`is_small`) needs fewer digits. Returns the length; a NUL follows. Pre: the number is
 * finite; `out` has FLOAT_TEXT_BYTES. */
size_t float_text_print(double number, bool is_small, char *out);
