/* json_paths.h - the trie of json.c: names under which a value's members are looked for.
 */
#pragma once

#include "ingest/json.h"

#include <endian.h>

#define JSON_NO_PATH (-1)

/* A name, by its length and first 8 bytes (zeros before shorter ones), which is all of most names. */
struct json_name {
    uint64_t word;
    const char *ptr;
    size_t len;
    struct json_node *node; /* NULL: an empty slot */
};

struct json_node {
    struct json_name *names; /* open addressing; NULL: none */
    unsigned shift;          /* 64 - log2(slots) */
    size_t name_count;
    int path;                        /* its number, or JSON_NO_PATH */
    uint64_t below[JSON_PATH_WORDS]; /* the paths through it */
};

struct json_paths {
    struct json_node root;
    char *pointers[JSON_PATHS_MAX]; /* as added; */
    size_t lengths[JSON_PATHS_MAX];
    size_t count;
    unsigned depth_max;
};

/* Of a name of one byte or more, where eight may be read. */
static inline uint64_t json_name_word(const char *p, size_t len)
{
    uint64_t word;
    memcpy(&word, p, sizeof word);
    word = le64toh(word);
    return len >= sizeof word ? word : word << (64 - 8 * len);
}

static inline size_t json_name_slot(const struct json_node *node, uint64_t word, size_t len)
{
    return (size_t)((word + len) * UINT64_C(0x9E3779B97F4A7C15) >> node->shift);
}

/* NULL: there is no such name. Pre: node->names != NULL; `word` is the name's. */
static inline const struct json_node *json_node_find(const struct json_node *node, uint64_t word,
                                                     struct slice name)
{
    size_t last = ((size_t)1 << (64 - node->shift)) - 1;
    for (size_t i = json_name_slot(node, word, name.len);; i = (i + 1) & last) {
        const struct json_name *n = &node->names[i];
        if (n->node == NULL)
            return NULL;
        if (n->word == word && n->len == name.len &&
            (name.len <= sizeof word || memcmp(n->ptr, name.ptr, name.len) == 0))
            return n->node;
    }
}
