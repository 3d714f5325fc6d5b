/* document.h - the YAML document of a configuration file, and the list of what is wrong with it.
 *
 *   bytes → size, UTF-8 → libyaml's events (syntax, depth, aliases) → libyaml's document
 *
 * Why twice : libyaml's document resolves aliases, so that a node may hold itself; the events are looked at
 *             first, and a file with an alias goes no further.
 * Problems  : only what makes the document unreadable ends the reading (broken syntax, aliases, depth, a
 *             second document); everything else is noted, so that all of a file is told at once.
 * Owner     : nodes and slices belong to the document, until document_close().
 */
#pragma once

#include "base/check.h"
#include "base/slice.h"
#include "base/suggest.h"
#include "base/text.h"

#include <yaml.h>

#define DOCUMENT_DEPTH_MAX   8
#define DOCUMENT_ENTRIES_MAX 1000 /* of one mapping or list */
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

/* False: there is no document, and at least one problem; document_close() is due all the same. */
bool document_open(struct document *d, struct slice bytes, const char *file,
                   struct text *problems) MUST_CHECK;
void document_close(struct document *d);
/* NULL where the file holds nothing. */
yaml_node_t *document_root(struct document *d);

/* Note "FILE:LINE:COLUMN: PATH: …"; `path` is "" where there is none. */
void document_problem(struct document *d, yaml_mark_t at, const char *path, const char *format, ...)
    PRINTF_LIKE(4, 5);

struct slice document_scalar(const yaml_node_t *node);
/* Is it `key:` with nothing after it? */
bool document_is_nothing(const yaml_node_t *node);
/* What was found: "a list", or the text in quotes. */
const char *document_describe(const yaml_node_t *node, char buf[SUGGEST_QUOTE_BYTES]);
/* A mapping (list) of bearable size, or nothing, which counts as an empty one? Else a problem. */
bool document_is_mapping(struct document *d, yaml_node_t *node, const char *path, const char *expected);
bool document_is_list(struct document *d, yaml_node_t *node, const char *path, const char *expected);
/* The pair at *i, or the next good one; *i goes past it. Keys that are no text, and keys that were there
 * before, are problems and left out. */
bool document_next(struct document *d, yaml_node_t *map, const char *path, size_t *i, struct pair *pr);
/* The first pair of that name, without a word on what is wrong with others. */
bool document_find(struct document *d, yaml_node_t *map, const char *path, const char *name, struct pair *pr);
/* The path of a key under `parent`. */
void document_path(const char *parent, struct slice name, char path[DOCUMENT_PATH_BYTES]);
/* The item at *i of a list. */
yaml_node_t *document_next_item(struct document *d, yaml_node_t *list, size_t *i);
