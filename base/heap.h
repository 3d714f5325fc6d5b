/* heap.h - keeps the greatest of many items: a heap with the least of them in front.
 *
 * Ties : an item that is not greater than the least one kept is refused.
 * Owner: the caller's array, which has place for `room` items. An item is copied by its bytes.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* Is `a` less than `b`? */
typedef bool heap_less_fn(const void *a, const void *b);

/* Adds the item, if there are fewer than `room`; otherwise replaces items[0], if that is less. Inline, so
 * that the compiler knows `bytes` and `less`. */
static inline void heap_offer(void *items, size_t *count, size_t room, const void *item, size_t bytes,
                              heap_less_fn *less)
{
    char *base = items;
    size_t at = 0;
    if (*count < room) {
        for (at = (*count)++; at > 0 && less(item, base + (at - 1) / 2 * bytes); at = (at - 1) / 2)
            memcpy(base + at * bytes, base + (at - 1) / 2 * bytes, bytes);
    } else {
        if (room == 0 || !less(base, item))
            return;
        for (size_t child; (child = 2 * at + 1) < room; at = child) {
            child += child + 1 < room && less(base + (child + 1) * bytes, base + child * bytes);
            if (!less(base + child * bytes, item))
                break;
            memcpy(base + at * bytes, base + child * bytes, bytes);
        }
    }
    memcpy(base + at * bytes, item, bytes);
}
