/* distinct.h - how many different texts there were, by HyperLogLog. Shards count in it; stores and queries
 * merge it.
 *
 *   hash      | 12 bits: the register | 14 bits | 38 bits |      64 bits of XXH3, without a seed
 *   entry     | 26 bits               | rank of the 38 bits, 6 bits |
 *   register  rank of the last 52 bits, the greatest that was seen
 *
 *   A rank is the number of zeros before the first one, plus 1. Up to DISTINCT_ENTRIES_MAX entries are kept
 *   as they are; the registers of more can be computed from them.
 *
 * Error : up to DISTINCT_ENTRIES_MAX exact, but for one in about 300 such counts, which is 1 too small.
 *         Above, 1.6 % (standard error), whatever the number.
 * Merge : sets of entries are united, of registers the greater is taken. So the state depends only on the set
 *         of texts: on no order, number of writers, or repetition.
 * Owner : entries and registers are in the arena that the caller names; they are freed with it.
 * Source: P. Flajolet et al., HyperLogLog, 2007; S. Heule et al., HyperLogLog in Practice, 2013 (entries);
 *         O. Ertl, New cardinality estimation algorithms for HyperLogLog sketches, 2017 (the estimator).
 */
#pragma once

#include "base/arena.h"
#include "base/check.h"
#include "base/slice.h"
#include "base/text.h"

#include <stdint.h>

#define DISTINCT_REGISTER_BITS 12
#define DISTINCT_REGISTERS     (1 << DISTINCT_REGISTER_BITS)
#define DISTINCT_ENTRY_BITS    26 /* bits of the hash that an entry has as they are */
#define DISTINCT_ENTRIES_MAX   700
#define DISTINCT_FEW           4
#define DISTINCT_RANK_MAX      (64 - DISTINCT_REGISTER_BITS + 1) /* of a register */
#define DISTINCT_MANY          UINT32_MAX
#define DISTINCT_PACKED_MAX    (1 + DISTINCT_REGISTERS * 6 / 8) /* bytes of packed registers */

struct distinct {
    union {
        uint32_t *entries;          /* open addressing by their 26 bits; 0: an empty place. If mask + 1 is
                                       the count, they are a list, ascending, without empty places */
        uint8_t *registers;         /* if mask is DISTINCT_MANY */
        uint32_t few[DISTINCT_FEW]; /* if mask is 0: the entries, in order of arrival. Many cells have few */
    };
    uint32_t count, mask;
};

/* Adds an entry: to the entries, or to its register. */
void distinct_add_entry(struct distinct *d, struct arena *arena, uint32_t entry);
/* Adds the texts of another one. It keeps no memory of it. */
void distinct_unite(struct distinct *d, struct arena *arena, const struct distinct *other);
/* Adds these entries, in any order and some of them more than once, to an empty one. Pre: `scratch` has room
 * for as many; both are overwritten. */
void distinct_add_list(struct distinct *d, struct arena *arena, uint32_t *entries, uint32_t *scratch,
                       size_t count);
/* Copies its entries, in any order; returns how many there are. Pre: it has no registers; there is room. */
size_t distinct_list(const struct distinct *d, uint32_t *to);
/* Sorts its entries, ascending; returns how many there are. Pre: it has no registers. */
size_t distinct_sort(const struct distinct *d, uint32_t sorted[DISTINCT_ENTRIES_MAX]);
/* Adds a rank to a register; entries become registers. False: there is no such register, or no such rank. */
bool distinct_add_register(struct distinct *d, struct arena *arena, int64_t number, int64_t rank);
/* Its entries, in *places places, of which some are 0. Pre: it has no registers. */
const uint32_t *distinct_entries(const struct distinct *d, uint32_t *places);
/* The greatest rank of each register, also of entries; 0: none. */
void distinct_ranks(const struct distinct *d, uint8_t ranks[DISTINCT_REGISTERS]);

/* Is it an entry that some hash has? */
static inline bool distinct_entry_is_valid(uint64_t entry)
{
    return entry <= UINT32_MAX && (entry & 63) != 0 && (entry & 63) <= 64 - DISTINCT_ENTRY_BITS + 1;
}

static inline uint32_t distinct_entry(uint64_t hash)
{
    const uint64_t rest = hash << DISTINCT_ENTRY_BITS | (uint64_t)1 << (DISTINCT_ENTRY_BITS - 1);
    return (uint32_t)(hash >> (64 - DISTINCT_ENTRY_BITS) << 6) | (uint32_t)(__builtin_clzll(rest) + 1);
}

/* Do they have the same 26 bits of the hash? */
static inline bool distinct_same_bits(uint32_t entry, uint32_t other)
{
    return (entry ^ other) < 1 << 6;
}

/* Adds an entry to the few; false: there is no room. */
static inline bool distinct_add_few(struct distinct *d, uint32_t entry)
{
    for (uint32_t i = 0; i < d->count; i++) {
        if (distinct_same_bits(d->few[i], entry)) {
            d->few[i] = entry > d->few[i] ? entry : d->few[i];
            return true;
        }
    }
    if (d->count == DISTINCT_FEW)
        return false;
    d->few[d->count++] = entry;
    return true;
}

static inline void distinct_add(struct distinct *d, struct arena *arena, uint64_t hash)
{
    const uint32_t entry = distinct_entry(hash);
    if (d->mask == 0) {
        if (UNLIKELY(!distinct_add_few(d, entry)))
            distinct_add_entry(d, arena, entry);
        return;
    }
    if (d->mask != DISTINCT_MANY) {
        if (d->entries[(entry >> 6) & d->mask] != entry)
            distinct_add_entry(d, arena, entry);
        return;
    }
    const uint64_t rest = hash << DISTINCT_REGISTER_BITS | (uint64_t)1 << (DISTINCT_REGISTER_BITS - 1);
    const uint8_t rank = (uint8_t)(__builtin_clzll(rest) + 1);
    uint8_t *to = &d->registers[hash >> (64 - DISTINCT_REGISTER_BITS)];
    *to = rank > *to ? rank : *to;
}

/* Packs it: the entries as `1` and varints of their differences, ascending; or `2` and the registers, four in
 * three bytes. The same set of texts has the same bytes. Without texts there are no bytes. */
void distinct_pack(const struct distinct *d, struct text *out);
/* Unites it with a packed one. False: it is damaged; `d` is then partly changed. */
bool distinct_merge(struct distinct *d, struct arena *arena, struct slice packed);
/* Appends the union of two packed ones, if it has few texts. False: distinct_merge() must do it; nothing was
 * appended. */
bool distinct_join(struct slice a, struct slice b, struct text *out);
/* About how many different texts were added. */
int64_t distinct_count(const struct distinct *d);
