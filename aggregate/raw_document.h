/* raw_document.h - encodes an event as a typed BSON document, ready to be stored.
 *
 *   { _id: "kafka:access/3/0000000000000004711", host: "127.0.0.1", logname: null, user: "frank",
 *     time: ISODate("2000-10-10T20:55:36Z"), request: "GET /apache_pb.gif HTTP/1.0", path: "/apache_pb.gif",
 *     status: 200, response_size: NumberLong(2326), referrer: "http://www.example.com/start.html",
 *     user_agent: "Mozilla/4.08 [en] (Win98; I ;Nav)", v: 1 }
 *
 * `_id`   : source, partition ("" for files) and offset. The second and further events of a record add their
 *           number in it, as ".000001". It is one text, so that every server sorts it alike and any shell can
 *           ask for a range. Its digits are padded, so that the documents of a partition sort by offset.
 *           An event that is stored again gets the same `_id`.
 * Fields  : fields of a log line have the names above, and are null if the line has "-". Other fields of the
 *           event (vhost, port, name, value, a source's own) keep their names. An own field whose name is
 *           used above, or is v, gets an underscore behind its name.
 * Types   : status is int, response_size long. value, and own fields that spell a number as it is printed
 *           (-17, 0.25), are long if whole, otherwise double. `007`, `1.10`, `1e5`, and fractions of more
 *           than six places or 15 digits stay texts. Text is settled as a dimension's is (dimension.h), but
 *           never cut.
 * Many    : a value that stands for many numbers is a document with the names of OTLP: { count, sum, min,
 *           max, scale, zero_count, positive: { offset, bucket_counts }, negative }, without those that it
 *           does not have. Of one with gaps, bucket_counts is a document { "-3": 12, "17": 5 } by index, and
 *           there is no offset.
 * Limits  : offsets below 2^45, as for record_order() (record.h).
 */
#pragma once

#include "aggregate/raw.h"
#include "base/text.h"
#include "ingest/event.h"

#define RAW_SCHEMA 1

/* Precedes each document in a buffer. */
struct raw_head {
    int64_t at_ms;
    uint32_t number; /* the source's number (struct raw) */
    uint32_t len;    /* bytes of the document */
};

/* Adds head and document of an event to `out`; `prefix` is the beginning of its `_id`. */
void raw_document_add(struct text *out, const struct raw *r, struct slice prefix, const struct event *ev);
/* Parts of a document, for recent_document.h. The name of a field: up to FIELD_NAME_BYTES + 1 bytes with its
 * NUL. */
void raw_document_name(enum field f, char *name);
/* Is the field stored as another type than a text? Pre: the event has it. */
bool raw_document_is_typed(const struct event *ev, enum field f);
void raw_document_field(struct text *out, const char *name, const struct event *ev, enum field f);
void raw_document_text(struct text *out, const char *name, struct slice s);
/* "kafka:access/3/" */
void raw_document_prefix(struct text *out, const char *source, const char *partition);
