#include "base/radix.h"

#include <string.h>

#define DIGIT_BITS 11
#define DIGITS     (1u << DIGIT_BITS)

static void sort_digit(const struct radix_item *from, struct radix_item *to, size_t count, unsigned shift)
{
    uint32_t place[DIGITS];
    memset(place, 0, sizeof place);
    for (size_t i = 0; i < count; i++)
        place[(from[i].key >> shift) & (DIGITS - 1)]++;
    uint32_t sum = 0;
    for (size_t d = 0; d < DIGITS; d++) {
        uint32_t n = place[d];
        place[d] = sum;
        sum += n;
    }
    for (size_t i = 0; i < count; i++)
        to[place[(from[i].key >> shift) & (DIGITS - 1)]++] = from[i];
}

struct radix_item *radix_sort(struct radix_item *items, struct radix_item *scratch, size_t count)
{
    if (count == 0)
        return items;
    uint64_t differ = 0;
    for (size_t i = 1; i < count; i++)
        differ |= items[i].key ^ items[0].key;
    for (unsigned shift = 0; shift < 64; shift += DIGIT_BITS) {
        if (((differ >> shift) & (DIGITS - 1)) == 0)
            continue;
        sort_digit(items, scratch, count, shift);
        struct radix_item *swap = items;
        items = scratch;
        scratch = swap;
    }
    return items;
}
