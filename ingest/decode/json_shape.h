/* json_shape.h - a cache of the names in the JSON value that was read last, as they were written. Events of
 * one producer have the same names in the same order. So one comparison recognises most names, with all bytes
 * between two values. json.c uses it.
 *
 *   {"name":"x","value":1, "tags": {"userid":"rick"}}
 *    ^^^^^^^   ^^^^^^^^^   ^^^^^^^^  ^^^^^^^^^         four entries
 *
 * Sound : the meaning of a name depends on its bytes, on its object's node in the trie, and on whether it is
 *         the object's first name. All three are compared. More space may follow the name than in the cache.
 */
#pragma once

#include "ingest/scan.h"

#include <stddef.h>
#include <string.h>

#define JSON_SHAPE_MAX   64
#define JSON_SHAPE_BYTES 32 /* longer names are not cached */

struct json_node;

struct json_shape_name {
    char text[JSON_SHAPE_BYTES]; /* bytes from behind the last value, or "{", to the next value */
    scan_stops mask;             /* the bits of scan_same() for its first SCAN_STEP bytes */
    ptrdiff_t len;
    uintptr_t place; /* json_shape_place(); 0: empty entry */
    const struct json_node *member;
};

struct json_shape {
    struct json_shape_name names[JSON_SHAPE_MAX];
};

/* Does [p, end) begin with the bytes of the cached name? */
static inline bool json_shape_is_at(const struct json_shape_name *n, const char *p, const char *end)
{
#ifdef SCAN_BITS
    if (n->len <= SCAN_STEP && end - p >= SCAN_STEP)
        return (scan_same(p, n->text) & n->mask) == n->mask;
#endif
    return n->len <= end - p && memcmp(p, n->text, (size_t)n->len) == 0;
}

/* The place of a name: its object, and whether it is the first name there. */
static inline uintptr_t json_shape_place(const struct json_node *object, bool is_first)
{
    return (uintptr_t)object | 2 | is_first;
}

static inline void json_shape_keep(struct json_shape_name *n, uintptr_t place, const char *from,
                                   const char *to, const struct json_node *member)
{
    n->place = 0;
    if (to - from > JSON_SHAPE_BYTES)
        return;
    n->place = place;
    n->len = to - from;
    memcpy(n->text, from, (size_t)n->len);
#ifdef SCAN_BITS
    n->mask = n->len < SCAN_STEP ? ((scan_stops)1 << SCAN_BITS * n->len) - 1 : SCAN_ALL;
#endif
    n->member = member;
}
