/* json.h - reads one JSON value in one pass and finds what many pointers (RFC 6901) point to; no tree, no
 * allocation.
 *
 *   paths ─▶ a trie of names (json_paths.h): { "log" ─▶ { "level", "file" ─▶ { "path" } }, "message" }
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
#include "ingest/decode/json_found.h"

enum json_result {
    JSON_OK,
    JSON_BAD, /* it is not well-formed */
    JSON_DEEP /* deeper than depth_max */
};

struct json_paths;

/* The value that `text` begins with. *at is the byte behind it, or the one that does not fit. */
enum json_result json_read(const struct json_paths *paths, struct slice text, struct json_found *found,
                           const char **at);

/* A string of json_read() with its escapes undone, into as many bytes as it has; returns how many are used.
 */
size_t json_unescape(struct slice text, char *out);
