/* base64.h - decodes base64 (RFC 4648). Nothing here fails. */
#pragma once

#include "base/slice.h"

/* The six bits of a digit; -1: it is none. */
int base64_sextet(char c);
/* Decodes up to the first byte that is no digit, such as `=`, and up to `bytes_max` bytes. Returns how many
 * bytes it made: at most three quarters of the text. */
size_t base64_decode(struct slice text, char *out, size_t bytes_max);
