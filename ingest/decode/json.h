/* json.h - reads one JSON value in one pass, and finds the values at many pointers (RFC 6901); no tree, no
 * allocation. json_step.c calls it; the result says whether the text is JSON.
 *
 *   paths ─▶ a trie of names (json_paths.h): { "log" ─▶ { "level", "file" ─▶ { "path" } }, "message" }
 *   text  ─▶ each member's name is looked up in the trie, along its path. A value found is a slice of the
 *            text as written; all others are only checked.
 *
 * Strict  : RFC 8259, with two exceptions. Bytes of strings need not be UTF-8: they are data, made safe when
 *           a dimension is settled. \uD800 to \uDFFF may stand alone, as the grammar allows: it becomes
 *           U+FFFD.
 * Twice   : if two members have one name, the last counts, with everything in it.
 * Limits  : nesting (depth_max), JSON_PATHS_MAX. A member's name that is written with escapes, in more than
 *           JSON_ESCAPED_NAME_MAX bytes, is in no path. No other length has a limit.
 * Threads : paths are read-only once complete.
 * Source  : the wide scan for the end of strings, as in simdjson; the rest is a plain recursive descent.
 */
#pragma once

#include "base/slice.h"
#include "ingest/decode/json_found.h"

#define JSON_ESCAPED_NAME_MAX 1024

enum json_result {
    JSON_OK,
    JSON_BAD, /* it is not well-formed */
    JSON_DEEP /* deeper than depth_max */
};

struct json_paths;

/* Reads the value at the start of `text`. *at is the byte behind it, or the first byte that does not fit. */
enum json_result json_read(const struct json_paths *paths, struct slice text, struct json_found *found,
                           const char **at);

/* The byte behind the escape at the backslash `p`. NULL: it is none, and *at is the first byte that does not
 * fit, or the end. */
const char *json_escape_end(const char *p, const char *end, const char **at);

/* Undoes the escapes of a string of json_read(). `out` needs text.len bytes; returns how many are used. */
size_t json_unescape(struct slice text, char *out);
