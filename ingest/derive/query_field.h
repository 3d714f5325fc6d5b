/* query_field.h - finds a parameter in the query of a target: /a?b=1&c=x%20y has b and c.
 *
 * Names   : compared byte by byte with the target's, without undoing escapes. The first of several counts.
 * Values  : as the URL Standard has forms: + is a space, %HH a byte. A % without two digits stands for
 *           itself. A parameter without a value, or with an empty one, is absent.
 * Escapes : in a target of a log with escapes (`is_escaped`), the value still has these; a backslash that %5C
 *           stands for becomes one of them.
 * Cost    : one pass over the query. The value is a slice of the target, or of the arena if it has a + or %.
 */
#pragma once

#include "base/arena.h"

#include <stdbool.h>

bool query_field(struct slice target, struct slice name, bool is_escaped, struct arena *memory,
                 struct slice *value);
