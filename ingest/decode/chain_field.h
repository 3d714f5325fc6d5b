/* chain_field.h - puts a text into an event as one of its fields: what the fields of JSON and of messages
 * share.
 *
 * Text    : its bytes are literal, a backslash stands for itself (event.h). It must live as long as the
 *           event.
 * Derived : a request brings method, target, path and protocol where it is HTTP; a target brings the path.
 *           To have the more explicit win, put fields in the order of enum field.
 * Absent  : "-" in a built-in field, and "" where a number is needed, change nothing.
 * Numbers : status (up to three digits), bytes and value must be numbers, or are rejected; an own field has
 *           one where its text is one in range.
 */
#pragma once

#include "ingest/event.h"
#include "ingest/reject.h"

/* `is_plain`: the caller knows that none of its bytes is odd. Returns the reason for which the text does not
 * fit; REJECT_COUNT where it does. */
enum reject_reason chain_field_put(struct event *ev, enum field f, struct slice text, bool is_plain);

/* The same for what is just a text, is plain, and not "-". Fields that need more have no bit here. */
#define CHAIN_FIELD_TEXTS                                                                                \
    (~(~(uint64_t)0 << FIELD_COUNT) & ~((uint64_t)1 << FIELD_REQUEST) & ~((uint64_t)1 << FIELD_TARGET) & \
     ~((uint64_t)1 << FIELD_STATUS) & ~((uint64_t)1 << FIELD_BYTES) & ~((uint64_t)1 << FIELD_VALUE))

static inline void chain_field_put_plain(struct event *ev, enum field f, struct slice text)
{
    ev->field[f] = text;
    ev->present |= (uint64_t)1 << f;
    ev->odd &= ~((uint64_t)1 << f);
}
