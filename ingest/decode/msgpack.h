/* msgpack.h - writes a value of MessagePack as JSON, so that the next step of a chain reads it. chain.c calls
 * it.
 *
 *   [EventTime, {record}]   as Fluent Bit writes: the record, with the time as its first member "@timestamp"
 *   {record}, [{record}, …]
 *
 * Values  : a time (extension 0 of Fluentd, or -1) is the number of seconds since 1970. Another extension, or
 *           a float that is no number, is null. Binary data are a string. Keys must be strings.
 * Owner   : the JSON is in `memory`: at most MSGPACK_GROWTH bytes for each byte.
 * Source  : the MessagePack specification; the event format in Fluentd's forward protocol.
 */
#pragma once

#include "base/arena.h"

#define MSGPACK_DEPTH_MAX 64
#define MSGPACK_GROWTH    6

/* Takes the value at the beginning of `bytes`; returns the byte behind it. NULL: it is broken or too deep,
 * and *at says where. */
const char *msgpack_to_json(struct slice bytes, struct arena *memory, struct slice *json, const char **at);
