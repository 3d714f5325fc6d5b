/* hide.h - takes the addresses of clients out of events and rejected lines, for `derive.anonymise`. derived.c
 * and chains call it.
 *
 *   IPv4   192.0.2.17           →  192.0.2.0
 *   IPv6   2001:db8:1:2::3      →  2001:db8:1::
 *
 * Text    : whatever looks like an address is taken for one, so a version such as 1.2.3.4 is hidden, too. A
 *           run of hexadecimal digits, colons and points is one of IPv6 if it has "::" or seven colons, or a
 *           point behind six.
 * Misses  : addresses that are written otherwise, as with %2E or as a part of a name, 1-2-3-4.isp.example.
 * Cost    : one pass over the text; a copy only if it has an address.
 */
#pragma once

#include "base/arena.h"

#include <stdbool.h>

/* The text without addresses: the text itself, or a copy in the arena, which is not longer. *column, which
 * counts bytes of the text from 1, moves with its byte; NULL: there is none. */
struct slice hide_addresses(struct slice text, struct arena *memory, size_t *column);
