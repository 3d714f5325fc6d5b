/* json.h - reads one JSON value in one pass and finds what many pointers (RFC 6901) point to; no tree, no
 * allocation.
 *
 *   paths ─▶ a trie of names: { "log" ─▶ { "level", "file" ─▶ { "path" } }, "message" }
 *   text  ─▶ each member's name is looked up where the trie has gone along; what is found is a slice of the
 *            text as written, the rest is only checked.
 *
 * Strict  : RFC 8259, but that bytes of strings need not be UTF-8 (they are data, made safe where they are
 *           stored), and that \uD800 to \uDFFF may stand alone, as the grammar has it (it is U+FFFD then).
 * Twice   : of two members of one name the last counts, with all that is in it.
 * Limits  : nesting (depth_max), JSON_PATHS_MAX; none on lengths.
 * Threads : paths are read-only once complete.
 * Source  : the wide scan for the end of strings, as in simdjson; the rest is a plain recursive descent.
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

enum json_result {
    JSON_OK,
    JSON_BAD, /* it is not well-formed */
    JSON_DEEP /* deeper than depth_max */
};

struct json_paths;

struct json_paths *json_paths_new(unsigned depth_max);
void json_paths_free(struct json_paths *paths);
/* The number of a pointer (json_pointer.h), the same for the same one. Pre: it is good, and of less than
 * JSON_PATHS_MAX. */
size_t json_paths_add(struct json_paths *paths, struct slice pointer);

/* The value that `text` begins with. *at is the byte behind it, or the one that does not fit. */
enum json_result json_read(const struct json_paths *paths, struct slice text, struct json_found *found,
                           const char **at);

/* A string of json_read() with its escapes undone, into as many bytes as it has; returns how many are used.
 */
size_t json_unescape(struct slice text, char *out);

static inline const struct json_value *json_found_get(const struct json_found *found, size_t path)
{
    return (found->bits[path / 64] >> path % 64) & 1 ? &found->values[path] : NULL;
}
