/* derived.h - makes the fields of derive.h for the events of one chain. chain.c calls it.
 *
 * Owner   : texts lie in the event, in memory of the process, or in a memo, until derived_flush(); undone
 *           escapes lie in the arena of the chain.
 * Cost    : a field that is made of a text costs a lookup of that text, once for all fields that are made of
 *           it. A field of the time costs a comparison. No allocation for a text that was seen before.
 * Threads : one at a time.
 * Errors  : none.
 */
#pragma once

#include "base/arena.h"
#include "ingest/derive/derive.h"

struct derived;

/* `own`: bit per enum field that the source provides by itself; these are not made. NULL: there is nothing to
 * make or to hide. The settings and the arena are borrowed. Pre: derive_open(). */
struct derived *derived_new(const struct derive *d, uint64_t own, struct arena *memory);
void derived_free(struct derived *dv);
/* Adds the fields to an event, and hides addresses in it. */
void derived_put(struct derived *dv, struct event *ev);
/* The most memory that the memos of one chain take, but for the texts between two flushes. */
size_t derived_bytes_max(const struct derive *d);
/* Bits of the fields that derived_put() made last. */
uint64_t derived_made(const struct derived *dv);
/* No event needs the texts any more. */
void derived_flush(struct derived *dv);
