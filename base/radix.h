/* radix.h - sorts (key, index) pairs by key: stable, least significant digit first. The stores sort the cells
 * of a batch by it.
 *
 * Cost: one pass per 11-bit digit in which the keys differ; a digit that all keys share costs nothing.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct radix_item {
    uint64_t key;
    uint32_t index;
};

/* `scratch` has room for `count` items. Returns the array that holds the result: `items` or `scratch`. */
struct radix_item *radix_sort(struct radix_item *items, struct radix_item *scratch, size_t count);
