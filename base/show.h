/* show.h - text of others made safe for a terminal: bytes that are not UTF-8, control characters, and
 * invisible characters that turn or hide the text around them become \xHH. File names, logs and servers may
 * hold any of them.
 */
#pragma once

#include "base/slice.h"

#include <stdbool.h>

#define SHOW_BYTES 1024

/* May a terminal get the character at `p` as it is? *len: its bytes, at least one. Pre: p < end. */
bool show_is_safe(const char *p, const char *end, size_t *len);
/* Writes as much of `s` as `room` bytes hold, whole characters only, and a NUL. Returns its length. */
size_t show_into(char *out, size_t room, struct slice s);
/* The text in `buf`, cut at SHOW_BYTES, to print by %s. */
const char *show(const char *text, char buf[SHOW_BYTES]);
