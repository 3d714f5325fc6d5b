/* index.h - a hash table that finds the elements of a list which the caller keeps.
 *
 * Shape  : numbers 1, 2, … in order of addition, each with 32 bits of its element's hash; open addressing, at
 *          most half full. The caller compares the elements that index_next() finds, and chooses the hash.
 * Memory : 16 to 32 bytes an element. A table of zeros is empty and owns nothing; index_fini() frees.
 * Limits : UINT32_MAX elements. Elements are never taken out one by one.
 * Others : aggregate/shard.c has tables of its own, which it prefetches and which hold pointers.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct index_slot {
    uint32_t hash, number; /* number 0: empty */
};

struct index {
    struct index_slot *slots;
    size_t slot_count; /* power of two, or 0 */
    uint32_t count;
};

void index_fini(struct index *ix);
/* Forgets all elements, and keeps the memory. */
void index_clear(struct index *ix);
/* A hash for elements that are found by a text. */
uint64_t index_hash_text(const char *text);
/* Adds the next element; returns its number. */
uint32_t index_add(struct index *ix, uint64_t hash);

/* The next element of this hash; 0: there is none. *at begins as the hash:
 *
 *     size_t at = hash;
 *     while ((number = index_next(ix, hash, &at)) != 0 && !is_equal(number, key))
 *         ; */
static inline uint32_t index_next(const struct index *ix, uint64_t hash, size_t *at)
{
    while (ix->slot_count > 0) {
        const struct index_slot *s = &ix->slots[(*at)++ & (ix->slot_count - 1)];
        if (s->number == 0 || s->hash == (uint32_t)hash)
            return s->number;
    }
    return 0;
}
