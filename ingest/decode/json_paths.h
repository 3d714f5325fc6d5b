/* json_paths.h - the pointers (RFC 6901) that json_read() looks for, as a trie of their names.
 *
 * Callers make paths and pass them to json_read(). Only json.c walks the trie, while it reads.
 */
#pragma once

#include "base/load.h"
#include "ingest/decode/json_found.h"

#include <endian.h>

struct json_paths;

struct json_paths *json_paths_new(unsigned depth_max);
void json_paths_free(struct json_paths *paths);
/* Adds a pointer and returns its number; the same pointer gets the same number. Pre: json_pointer_is_good(),
 * and fewer than JSON_PATHS_MAX pointers. */
size_t json_paths_add(struct json_paths *paths, struct slice pointer);

/* ---- the trie */

/* More slots than paths, so that some stay empty; most names are in the first slot that a lookup tries. */
#define JSON_SLOTS_LOG2 8
#define JSON_SLOTS      (1u << JSON_SLOTS_LOG2)

/* A member's name, found by its first 8 bytes; most names have no more. */
struct json_slot {
    uint64_t word;          /* json_name_word() of the name */
    struct json_node *node; /* has the whole name; NULL: empty */
};

struct json_node {
    struct json_slot *slots;         /* its members' names, by open addressing; NULL: none */
    struct slice name;               /* its own name */
    unsigned path;                   /* its path's number, or JSON_NO_PATH */
    unsigned word;                   /* index of the path's word in json_found.bits */
    uint64_t bit;                    /* the path's bit in that word */
    size_t offset;                   /* offset of the path's value in struct json_found */
    uint64_t below[JSON_PATH_WORDS]; /* bits of the paths through it */
};

struct json_paths {
    struct json_node root;
    char *pointers[JSON_PATHS_MAX]; /* as added */
    size_t lengths[JSON_PATHS_MAX];
    size_t count;
    unsigned depth_max;
};

/* The first 8 bytes of a name; zeros stand before a shorter one. Pre: the name has one byte or more, and
 * eight bytes may be read. */
static inline uint64_t json_name_word(const char *p, size_t len)
{
    uint64_t word = le64toh(load64(p));
    return len >= sizeof word ? word : word << (64 - 8 * len);
}

static inline size_t json_name_slot(uint64_t word)
{
    return (size_t)(word * UINT64_C(0x9E3779B97F4A7C15) >> (64 - JSON_SLOTS_LOG2));
}

/* The node of a name that is in no path. Its `path` is JSON_NO_PATH, so its value is dropped. */
extern const struct json_node json_nothing;

/* Finds a member's node; json_nothing: there is no such name. Pre: node->slots != NULL; `word` is the
 * name's. */
const struct json_node *json_node_find(const struct json_node *node, uint64_t word, struct slice name);
