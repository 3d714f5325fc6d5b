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
/* The source of a field of the last event, as derive_source() names it; NULL: the field was not made of
 * another, or `dv` is NULL. */
const char *derived_from(const struct derived *dv, enum field f);
/* Makes fields by this set of lists and databases from here on. Until then, it is the set that was open when
 * `dv` was made. `dv` may be NULL. Pre: the caller holds the set, and no event needs the texts. */
void derived_set_data(struct derived *dv, struct derive_data *data);
/* The builds of the lists and databases that make these fields. `dv` may be NULL. */
struct builds derived_builds(const struct derived *dv);
/* No event needs the texts any more. */
void derived_flush(struct derived *dv);
