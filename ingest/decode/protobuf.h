/* protobuf.h - writes a message of Protocol Buffers as JSON, so that the next step of a chain reads it.
 * schema_step.c calls it.
 *
 * Values  : a field has the name of its definition. An enum is its name, or its number if that has none.
 *           Bytes are a string. A Timestamp or Duration is a number of seconds, a wrapper its value. A map is
 *           an object. A float that is no number is null.
 * Absent  : a field that is not there is absent, unless its writer leaves out default values
 *           (proto_schema.h). Unknown fields are skipped.
 * Twice   : the last value of a field that is not repeated counts, and the last one of a oneof. Two parts of
 *           one embedded message, which writers do not make, are a broken message.
 * Limits  : the JSON grows up to out->max.
 * Source  : protobuf.dev, "Encoding".
 */
#pragma once

#include "ingest/decode/json_write.h"
#include "ingest/schema/proto_schema.h"

enum proto_result {
    PROTO_IS_GOOD,
    PROTO_IS_BROKEN, /* the bytes do not fit the schema */
    PROTO_IS_DEEP,   /* nested deeper than PROTO_DEPTH_MAX */
    PROTO_IS_LONG    /* the JSON would be longer than out->max */
};

/* Memory for the fields of messages that are being read. All zeros: none yet. */
struct proto_scratch {
    struct proto_seen *list;
    size_t count, capacity;
};

void proto_scratch_fini(struct proto_scratch *s);
/* Takes the number of a message within its file, as serialisers of a registry write it before the message:
 * the index of the outermost one, and those of the ones in it. Returns the byte behind it; NULL: there is no
 * such message. */
const char *proto_take_index(const struct proto_schema *s, struct slice bytes, uint32_t *message);
/* Adds the message, which must be all of `bytes`. Otherwise *at says where it was given up. */
enum proto_result proto_to_json(const struct proto_schema *s, uint32_t message, struct slice bytes,
                                struct proto_scratch *scratch, struct json_out *out, const char **at);
