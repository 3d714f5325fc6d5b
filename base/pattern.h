/* pattern.h - texts with `*` for any run of bytes, and `|` between alternatives: /blog*|*.html
 *
 * Cost: no allocation, linear in the text and the pattern (memmem), whatever a client sends. */
#pragma once

#include "base/slice.h"

/* Does the whole text match one of the alternatives? An empty alternative matches nothing. */
bool pattern_any(struct slice patterns, struct slice text);
