/* chain_field.h - puts a text from JSON or a message into an event as one of its fields. chain.c and
 * json_step.c call it.
 *
 * Text    : its bytes are literal, a backslash stands for itself (event.h). It must live as long as the
 *           event.
 * Derived : a request also sets method, target, path and protocol if it is HTTP; a target also sets the path
 *           (clf_request_path()). A path with a query or a server's name is a target, and sets both.
 *           Put fields in the order of enum field, so that explicit fields override derived ones.
 * Absent  : "" and "-" in a built-in field change nothing.
 * Numbers : the value must be a number, otherwise it is rejected. A text that is no status (up to three
 *           digits, also 200.0) or no size is absent, since a log may call anything `status`; the event's
 *           `unfit` bit is set. An own
 *           field has a number if its text is a number in range, or a list of them, "0.120, 1.380": its
 *           sum.
 */
#pragma once

#include "ingest/event.h"
#include "ingest/reject.h"

/* `is_plain`: the caller knows that no byte of the text is odd. Returns the reason why the text does not fit;
 * REJECT_COUNT: it fits. */
enum reject_reason chain_field_put(struct event *ev, enum field f, struct slice text, bool is_plain);

/* The built-in fields that are just texts. */
#define CHAIN_FIELD_TEXTS                                                                                \
    (~(~(uint64_t)0 << FIELD_COUNT) & ~((uint64_t)1 << FIELD_REQUEST) & ~((uint64_t)1 << FIELD_TARGET) & \
     ~((uint64_t)1 << FIELD_STATUS) & ~((uint64_t)1 << FIELD_BYTES) & ~((uint64_t)1 << FIELD_VALUE))

/* Puts one of CHAIN_FIELD_TEXTS, but not a path, or an own one. Pre: the text is plain, and neither "" nor
 * "-". */
static inline void chain_field_put_plain(struct event *ev, enum field f, struct slice text)
{
    ev->field[f] = text;
    ev->present |= (uint64_t)1 << f;
    ev->odd &= ~((uint64_t)1 << f);
}
