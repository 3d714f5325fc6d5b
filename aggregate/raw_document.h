/* raw_document.h - an event as a document: BSON, typed, ready to be stored.
 *
 *   { _id: "kafka:access/3/0000000000000004711", host: "127.0.0.1", logname: null, user: "frank",
 *     time: ISODate("2000-10-10T20:55:36Z"), request: "GET /apache_pb.gif HTTP/1.0", path: "/apache_pb.gif",
 *     status: 200, response_size: NumberLong(2326), referrer: "http://www.example.com/start.html",
 *     user_agent: "Mozilla/4.08 [en] (Win98; I ;Nav)", v: 1 }
 *
 * `_id`   : source, partition ("" of files) and offset; of a record's second event and further ones also
 *           their number in it, as ".000001". One text, so that every server sorts it alike and any shell can
 *           ask for a range of it; of so many digits, that the documents of a partition sort by offset.
 *           Whoever stores an event again gives it the same `_id`.
 * Fields  : those of a log line under the names above, null where the line has "-"; others that the event has
 *           (vhost, port, name, value, a source's own) under theirs. An own one called as one above, or v,
 *           has an underscore behind its name.
 * Types   : status int, response_size long; of value, and of own fields that are written as a number is read
 *           back (-17, 0.25), long where whole, else double. `007`, `1.10`, `1e5`, and what has more than six
 *           places or 15 digits beside a point, stay texts. Text is settled as a dimension's is
 *           (dimension.h), but never cut.
 * Limits  : of order (record.h): offsets below 2^45.
 */
#pragma once

#include "aggregate/raw.h"
#include "base/text.h"
#include "ingest/event.h"

#define RAW_SCHEMA 1

/* Stands before each document of a buffer. */
struct raw_head {
    int64_t at_ms;
    uint32_t number; /* of the source */
    uint32_t len;    /* of the document */
};

/* Adds head and document of an event to `out`; `prefix` is what its `_id` begins with. */
void raw_document_add(struct text *out, const struct raw *r, struct slice prefix, const struct event *ev);
/* "kafka:access/3/" */
void raw_document_prefix(struct text *out, const char *source, const char *partition);
