/* json_paths.h - what json_read() looks for: pointers (RFC 6901), as a trie of the names that lead to them.
 *
 * Callers make paths and hand them on; the trie itself is for json.c, which walks it while it reads.
 */
#pragma once

#include "ingest/decode/json_found.h"

#include <endian.h>

struct json_paths;

struct json_paths *json_paths_new(unsigned depth_max);
void json_paths_free(struct json_paths *paths);
/* The number of a pointer (json_pointer.h), the same for the same one. Pre: it is good, and of less than
 * JSON_PATHS_MAX. */
size_t json_paths_add(struct json_paths *paths, struct slice pointer);

/* ---- the trie */

/* More than paths, so that some are empty; most names are in the slot where they are looked for. */
#define JSON_SLOTS_LOG2 8
#define JSON_SLOTS      (1u << JSON_SLOTS_LOG2)

/* A name by its first 8 bytes, zeros before shorter ones: which is all of most names. */
struct json_slot {
    uint64_t word;
    struct json_node *node; /* NULL: empty */
};

struct json_node {
    struct json_slot *slots; /* of its members' names, by open addressing; NULL: none */
    struct slice name;       /* its own */
    unsigned path;           /* its number, or JSON_NO_PATH; and what follows from it: */
    unsigned word;           /* of json_found's bits */
    uint64_t bit;
    size_t offset;                   /* of its value in json_found */
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

static inline size_t json_name_slot(uint64_t word)
{
    return (size_t)(word * UINT64_C(0x9E3779B97F4A7C15) >> (64 - JSON_SLOTS_LOG2));
}

/* Stands for all that is not looked for: what is found is put where nobody looks. */
extern const struct json_node json_nothing;

/* json_nothing: there is no such name. Pre: node->slots != NULL; `word` is the name's. */
const struct json_node *json_node_find(const struct json_node *node, uint64_t word, struct slice name);
