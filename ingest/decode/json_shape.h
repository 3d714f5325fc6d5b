/* json_shape.h - the names of the last value that was read, as they were written: events of one producer have
 * the same ones in the same order, so most are known by one comparison, with all that is between two values.
 *
 *   {"name":"x","value":1, "tags": {"userid":"rick"}}
 *    ^^^^^^^   ^^^^^^^^^   ^^^^^^^^  ^^^^^^^^^         four entries
 *
 * Sound : what a name means depends on its bytes, on where in the trie its object is, and on whether it is
 *         the first one: all of which are compared. More space may follow it than before.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#define JSON_SHAPE_MAX   64
#define JSON_SHAPE_BYTES 32 /* longer ones are not kept */

struct json_node;

struct json_shape_name {
    char text[JSON_SHAPE_BYTES]; /* from behind the value before, or "{", to the value */
    unsigned mask;               /* a bit for each of the first 16 bytes of it */
    ptrdiff_t len;
    uintptr_t place; /* json_shape_place(); 0: none */
    const struct json_node *member;
};

struct json_shape {
    struct json_shape_name names[JSON_SHAPE_MAX];
};

/* Are these the bytes of a name that is known, in [p, end)? */
static inline bool json_shape_is_at(const struct json_shape_name *n, const char *p, const char *end)
{
#ifdef __SSE2__
    if (end - p >= JSON_SHAPE_BYTES) {
        __m128i low = _mm_cmpeq_epi8(_mm_loadu_si128((const __m128i *)(const void *)p),
                                     _mm_loadu_si128((const __m128i *)(const void *)n->text));
        if (n->len <= 16)
            return ((unsigned)_mm_movemask_epi8(low) & n->mask) == n->mask;
    }
#endif
    return n->len <= end - p && memcmp(p, n->text, (size_t)n->len) == 0;
}

/* Of a name, the first or a later one, in an object. */
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
    n->mask = n->len < 16 ? (1u << n->len) - 1 : 0xFFFF;
    n->member = member;
}
