/* json_found.h - what json_read() finds in a text: values, by the numbers of the paths that led to them.
 */
#pragma once

#include "base/slice.h"
#include "ingest/decode/json_shape.h"

#include <stdint.h>

#define JSON_PATHS_MAX  192
#define JSON_PATH_WORDS (JSON_PATHS_MAX / 64)
/* Where a value goes that is not looked for, so that nobody has to ask. */
#define JSON_NO_PATH    JSON_PATHS_MAX

enum json_type {
    JSON_NULL,
    JSON_ARRAY,
    JSON_OBJECT,
    JSON_FALSE, /* from here on what may be a field's text */
    JSON_TRUE,
    JSON_NUMBER,
    JSON_PLAIN_STRING,  /* no byte of it is odd (event.h) */
    JSON_ODD_STRING,    /* some are, but it has no escapes */
    JSON_ESCAPED_STRING /* for json_unescape() */
};

struct json_value {
    struct slice text; /* as written; a string's without its quotes */
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

/* What was found, by the number of its path; and what helps to read the next value. Zeros at first; used with
 * the same paths always. */
struct json_found {
    uint64_t bits[JSON_PATH_WORDS + 1];
    struct json_value values[JSON_PATHS_MAX + 1]; /* valid where its bit is set */
    struct json_shape shape;
};

static inline const struct json_value *json_found_get(const struct json_found *found, size_t path)
{
    return (found->bits[path / 64] >> path % 64) & 1 ? &found->values[path] : NULL;
}
