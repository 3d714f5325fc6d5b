/* otlp_json.h - writes OTLP in JSON as protobuf, so that one reader reads both. otlp.c calls it.
 *
 *   {"resourceLogs": [{"resource": …, "scopeLogs": [{"logRecords": [{"timeUnixNano": "…", …}]}]}]}
 *
 * Members : those that otlp.c and its like read; others are skipped, also those whose name has escapes. null
 *           is none.
 * Numbers : whole numbers may be in quotes, floats also "NaN", "Infinity" and "-Infinity".
 * Owner   : the message is in `memory`: at most OTLP_JSON_GROWTH bytes for each byte.
 * Source  : https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding
 */
#pragma once

#include "base/arena.h"
#include "ingest/reject.h"

#define OTLP_JSON_GROWTH 2

/* The place of a record, data point or metric in both. */
struct otlp_json_part {
    const char *message;
    struct slice json;
};

/* In the order of the message. All zeros at first; kept for the next message. */
struct otlp_json_parts {
    struct otlp_json_part *list;
    size_t count, capacity;
};

void otlp_json_parts_free(struct otlp_json_parts *parts);
/* Pre: `json` is well-formed, and not deeper than a stack bears. False: *why says why it is no OTLP. */
bool otlp_json_read(struct slice json, struct arena *memory, struct slice *message,
                    struct otlp_json_parts *parts, struct reject *why);
