/* proto_schema.h - the messages that .proto files define, compiled for decoding. The registry and the
 * configuration make it from the texts; ingest/decode/protobuf.c reads data by it.
 *
 * Order   : messages and enums are in the order of their definitions. Fields of a message are sorted by
 *           number.
 * Labels  : names are kept in the quotes of JSON, since data are written as JSON. They are spelled as in the
 *           text, not in lowerCamelCase.
 * Default : a field that a writer leaves out if it has the default value (proto3 without `optional`) has
 *           `has_default`. Defaults of proto2 are for programs: such a field is absent.
 * Known   : Google's timestamp, duration, wrappers, empty, any, struct and field_mask need not be given.
 * Left out: groups; of editions, each feature that differs from the defaults of edition 2023.
 * Owner   : proto_schema_free() frees. It does not change once it is made: any thread may read it.
 * Errors  : EX_DATAERR: a text cannot be used, or a type is not defined.
 * Source  : protobuf.dev, "Language Specification" of proto2, proto3 and editions.
 */
#pragma once

#include "base/err.h"
#include "base/slice.h"
#include "base/text.h"

#include <stdint.h>

#define PROTO_DEPTH_MAX 64 /* messages within messages, of definitions and of data */
#define PROTO_TYPES_MAX 65536
#define PROTO_PARTS_MAX 262144 /* fields and values of enums */
#define PROTO_NONE      UINT32_MAX

enum proto_kind {
    PROTO_DOUBLE,
    PROTO_FLOAT,
    PROTO_INT32,
    PROTO_INT64,
    PROTO_UINT32,
    PROTO_UINT64,
    PROTO_SINT32,
    PROTO_SINT64,
    PROTO_FIXED32,
    PROTO_FIXED64,
    PROTO_SFIXED32,
    PROTO_SFIXED64,
    PROTO_BOOL,
    PROTO_TEXT,
    PROTO_BYTES,
    PROTO_SCALAR_COUNT,
    PROTO_ENUM = PROTO_SCALAR_COUNT,
    PROTO_MESSAGE
};

/* A field of a message, or a value of an enum. */
struct proto_part {
    uint32_t label_at, label_len; /* in `labels`: a field's name and colon, a value's name; in quotes */
    int32_t number;
    /* of a field: */
    enum proto_kind kind;
    uint32_t type;  /* index of its message or enum */
    uint32_t oneof; /* number of its oneof in the schema, from 1; 0: none */
    bool is_repeated, is_map, has_default;
};

/* How a message is written as JSON. */
enum proto_form {
    PROTO_OBJECT,
    PROTO_SECONDS, /* google.protobuf.Timestamp and Duration: a number of seconds */
    PROTO_WRAPPED  /* google.protobuf.StringValue and its like: the value */
};

struct proto_message {
    enum proto_form form;
    uint32_t parent;       /* message that it is defined in; PROTO_NONE: a file */
    bool is_entry;         /* whether it is the entry of a map, which has no definition of its own */
    uint32_t first, count; /* its parts */
};

struct proto_enum {
    uint32_t first, count; /* its parts; the first one is the default */
};

struct proto_schema {
    struct proto_message *messages;
    struct proto_enum *enums;
    struct proto_part *parts;
    struct text labels;
    size_t message_count, message_capacity, enum_count, enum_capacity, part_count, part_capacity;
    uint32_t main; /* first message of the last text */
    uint32_t oneofs;
};

/* Compiles the texts; earlier ones are those that later ones import. NULL: *e says why. */
struct proto_schema *proto_schema_new(const struct slice *texts, size_t count, struct err *e) MUST_CHECK;
void proto_schema_free(struct proto_schema *s);
/* The message of the last text that is number `index` among those that are defined directly in `parent`;
 * `parent` PROTO_NONE: in the file. Serialisers differ in whether they count the entries of maps. Returns
 * PROTO_NONE if there is no such message, or if the two ways of counting lead to different ones. */
uint32_t proto_schema_find(const struct proto_schema *s, uint32_t parent, uint32_t index);
