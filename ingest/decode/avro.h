/* avro.h - writes a datum of Avro as JSON, so that the next step of a chain reads it. schema_step.c calls it.
 *
 * Values  : a union is the value of its branch. Bytes and fixed are strings. A decimal is a number; a
 *           timestamp or time of day is a number of seconds, a date as "2010-10-10", an enum its symbol. A
 *           float that is no number is null.
 * Limits  : the JSON grows up to out->max, whatever the datum claims: an array of a few bytes may claim 2^60
 *           elements without any.
 * Source  : the Apache Avro specification 1.11, "Binary encoding".
 */
#pragma once

#include "ingest/decode/json_write.h"
#include "ingest/schema/avro_schema.h"

enum avro_result {
    AVRO_IS_GOOD,
    AVRO_IS_BROKEN, /* the bytes do not fit the schema */
    AVRO_IS_DEEP,   /* nested deeper than AVRO_DEPTH_MAX */
    AVRO_IS_LONG    /* the JSON would be longer than out->max */
};

/* Adds the datum, which must be all of `bytes`. Otherwise *at says where it was given up. */
enum avro_result avro_to_json(const struct avro_schema *s, struct slice bytes, struct json_out *out,
                              const char **at);
