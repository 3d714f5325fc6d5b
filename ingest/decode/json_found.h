/* json_found.h - the values that json_read() finds in a text, by the numbers of their paths.
 */
#pragma once

#include "base/slice.h"
#include "ingest/decode/json_shape.h"

#include <stdint.h>

#define JSON_PATHS_MAX  192
#define JSON_PATH_WORDS (JSON_PATHS_MAX / 64)
/* The index for values that no path leads to: json_read() writes them there and needs no test. */
#define JSON_NO_PATH    JSON_PATHS_MAX

enum json_type {
    JSON_NULL,
    JSON_ARRAY,
    JSON_OBJECT,
    JSON_FALSE, /* this type and those below can be a field's text */
    JSON_TRUE,
    JSON_NUMBER,
    JSON_PLAIN_STRING,  /* without odd bytes (event.h) */
    JSON_ODD_STRING,    /* with odd bytes, but without escapes */
    JSON_ESCAPED_STRING /* with escapes: needs json_unescape() */
};

struct json_value {
    struct slice text; /* as written; a string without its quotes */
    enum json_type type;
};

static inline bool json_type_is_text(enum json_type type)
{
    return type >= JSON_FALSE;
}

static inline bool json_type_is_string(enum json_type type)
{
    return type >= JSON_PLAIN_STRING;
}

/* The values found, by the numbers of their paths, and the shape that speeds up reading the next value. Zeros
 * at first; always used with the same paths. */
struct json_found {
    uint64_t bits[JSON_PATH_WORDS + 1];
    struct json_value values[JSON_PATHS_MAX + 1]; /* each valid if its bit is set */
    struct json_shape shape;
};

static inline const struct json_value *json_found_get(const struct json_found *found, size_t path)
{
    return (found->bits[path / 64] >> path % 64) & 1 ? &found->values[path] : NULL;
}
