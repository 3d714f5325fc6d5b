/* document.h - the YAML document of a configuration file, and the list of its problems.
 *
 *   bytes → size, UTF-8 → libyaml's events (syntax, depth, aliases) → libyaml's document
 *
 * Why twice : libyaml's document resolves aliases, so that a node may contain itself. So the events are
 *             checked first, and a file with an alias is refused.
 * Problems  : broken syntax, aliases, depth or a second document make the document unreadable and end the
 *             reading. Every other problem is noted, so that all problems of a file are reported at once.
 * Owner     : nodes and slices belong to the document, until document_close().
 */
#pragma once

#include "base/check.h"
#include "base/slice.h"
#include "base/suggest.h"
#include "base/text.h"

#include <yaml.h>

#define DOCUMENT_DEPTH_MAX   8
#define DOCUMENT_ENTRIES_MAX 1000 /* in one mapping or list */
#define DOCUMENT_PATH_BYTES  384

struct document {
    const char *file;
    struct text *problems; /* a line each */
    size_t problem_count;
    yaml_document_t yaml;
};

/* One `key: value` of a mapping. */
struct pair {
    yaml_node_t *key, *value;
    struct slice name;
    char path[DOCUMENT_PATH_BYTES]; /* the keys that lead to it: "sources.access.path" */
};

/* False: there is no document, and at least one problem; the caller must still call document_close(). */
bool document_open(struct document *d, struct slice bytes, const char *file,
                   struct text *problems) MUST_CHECK;
void document_close(struct document *d);
/* NULL: the file is empty. */
yaml_node_t *document_root(struct document *d);

/* Notes "FILE:LINE:COLUMN: PATH: …"; `path` "": there is none. */
void document_problem(struct document *d, yaml_mark_t at, const char *path, const char *format, ...)
    PRINTF_LIKE(4, 5);

struct slice document_scalar(const yaml_node_t *node);
/* Is it `key:` with nothing after it? */
bool document_is_nothing(const yaml_node_t *node);
/* A description of the node for an error: "a list", or the text in quotes. */
const char *document_describe(const yaml_node_t *node, char buf[SUGGEST_QUOTE_BYTES]);
/* Is the node a mapping (list) of at most DOCUMENT_ENTRIES_MAX entries, or nothing, which counts as an empty
 * one? If not, a problem is noted. */
bool document_is_mapping(struct document *d, yaml_node_t *node, const char *path, const char *expected);
bool document_is_list(struct document *d, yaml_node_t *node, const char *path, const char *expected);
/* The first good pair from *i on; *i moves past it. A key that is no text, or that repeats another key, is
 * skipped and noted as a problem. */
bool document_next(struct document *d, yaml_node_t *map, const char *path, size_t *i, struct pair *pr);
/* The first pair of that name; notes no problems of other pairs. */
bool document_find(struct document *d, yaml_node_t *map, const char *path, const char *name, struct pair *pr);
/* The path of a key under `parent`. */
void document_path(const char *parent, struct slice name, char path[DOCUMENT_PATH_BYTES]);
/* The path of the item with this index in the list `parent`. */
void document_item_path(const char *parent, size_t index, char path[DOCUMENT_PATH_BYTES]);
/* The item at *i of a list. */
yaml_node_t *document_next_item(struct document *d, yaml_node_t *list, size_t *i);
