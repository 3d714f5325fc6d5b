/* recent_document.h - encodes an event as one of the newest of its series: a BSON document for recent.h.
 * Shards call it for each event that may be among the newest, so it neither allocates nor formats on the
 * usual path; the recount calls it, too.
 *
 *   { time: ISODate("2000-10-10T20:55:36Z"), at: "kafka:access/3/0000000000000004711", host: "127.0.0.1",
 *     request: "GET /apache_pb.gif HTTP/1.0", status: 200, response_size: NumberLong(2326) }
 *
 * `at`   : what `_id` is in a raw document (raw_document.h).
 * Fields : those that the event has, by the names and types of raw documents; `at_` and `cut_` for own fields
 *          of these names. Without a list of fields: all built-in ones, with the request, or else method,
 *          target or path, and protocol.
 * Limits : a text is settled and cut to RECENT_TEXT_BYTES as a dimension's is. A field that does not fit into
 *          RECENT_FIELD_BYTES of all is left out; then there is `cut: true`.
 * Threads: each has a room of its own.
 */
#pragma once

#include "aggregate/recent.h"
#include "ingest/event.h"

#define RECENT_FIELD_BYTES 1024
#define RECENT_TEXT_BYTES  256

/* Working memory. Zeros: unused. */
struct recent_room {
    char bytes[RECENT_EVENT_BYTES];
    struct text odd; /* fields that are not written at once */
};

void recent_room_fini(struct recent_room *room);
/* The document, which lies in `room`. `place`: that of raw_document_prefix(). */
struct slice recent_document(struct recent_room *room, const enum field *fields, size_t field_count,
                             struct slice place, const struct event *ev);
