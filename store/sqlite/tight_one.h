/* tight_one.h - the tight bytes (tight.h) of a sketch of one event or one text. Most series have no more in
 * most minutes, so their bits are written and read at once, without a call. The bits are those that tight.h
 * describes.
 */
#pragma once

#include "aggregate/sketch.h"
#include "base/varint.h"

#include <endian.h>
#include <string.h>

#define TIGHT_SLOT_BITS   12
#define TIGHT_SLOT_ESCAPE 4095 /* in place of a slot of a schema above 4 */
#define TIGHT_RANK_BITS   6
#define TIGHT_ONE_MAX     8 /* bytes that may be written, though fewer count */

/* One bucket of one event. */
static inline size_t tight_put_event(int32_t slot, uint8_t *to)
{
    const uint64_t bits = 3 | varint_zigzag(slot) << 2 | (uint64_t)1 << (2 + TIGHT_SLOT_BITS);
    to[0] = (uint8_t)bits;
    to[1] = (uint8_t)(bits >> 8);
    return 2;
}

/* Reads what tight_put_event() writes. False: it is something else. */
static inline bool tight_get_event(struct slice tight, uint64_t *slot)
{
    if (tight.len != 2)
        return false;
    const uint64_t bits = (uint64_t)(uint8_t)tight.ptr[0] | (uint64_t)(uint8_t)tight.ptr[1] << 8;
    *slot = bits >> 2 & ((1 << TIGHT_SLOT_BITS) - 1);
    return (bits & 3) == 3 && bits >> (2 + TIGHT_SLOT_BITS) == 1;
}

/* One text. Returns 0 if it takes no fewer bytes than usual. */
static inline size_t tight_put_text(uint32_t entry, uint8_t *to)
{
    const unsigned shift = DISTINCT_ENTRY_BITS - 1, rank = entry & ((1 << TIGHT_RANK_BITS) - 1);
    const uint64_t bits = entry >> TIGHT_RANK_BITS, high = bits >> shift,
                   low = bits & (((uint64_t)1 << shift) - 1);
    const unsigned before = 2 + (unsigned)high + shift, size = (before + rank + 7) / 8;
    if (size > sizeof bits || size > 1 + varint_size(entry))
        return 0;
    const uint64_t all =
        htole64(1 | (uint64_t)2 << high | low << (2 + high) | (uint64_t)1 << (before + rank - 1));
    memcpy(to, &all, sizeof all);
    return size;
}

/* Reads what tight_put_text() writes. False: it is something else. */
static inline bool tight_get_text(struct slice tight, uint64_t *entry)
{
    const unsigned shift = DISTINCT_ENTRY_BITS - 1;
    uint64_t all = 0;
    if (tight.len < 4 || tight.len > sizeof all)
        return false;
    memcpy(&all, tight.ptr, 4);
    for (size_t i = 4; i < tight.len; i++)
        ((uint8_t *)&all)[i] = (uint8_t)tight.ptr[i];
    all = le64toh(all);
    const unsigned high = (all & 2) != 0 ? 0 : 1, before = 2 + high + shift;
    const uint64_t behind = all >> before;
    if ((all & 1) == 0 || (high == 1 && (all & 4) == 0) || behind == 0 || (behind & (behind - 1)) != 0)
        return false;
    const unsigned rank = (unsigned)__builtin_ctzll(behind) + 1;
    const uint64_t bits = (uint64_t)high << shift | (all >> (2 + high) & (((uint64_t)1 << shift) - 1));
    *entry = bits << TIGHT_RANK_BITS | rank;
    return (before + rank + 7) / 8 == tight.len;
}

/* Writes up to TIGHT_ONE_MAX bytes, of which it returns how many count. 0: it is another sketch, for
 * tight_put(). */
static inline size_t tight_put_one(enum sketch_kind kind, const union sketch *s, uint8_t *to)
{
    if (kind == SKETCH_HISTOGRAM) {
        const struct histogram *h = &s->histogram;
        return h->counts == NULL && h->few[1] == 0 && histogram_few_count(h, 0) == 1 &&
                       histogram_unit(histogram_few_slot(h, 0)) == HISTOGRAM_SCHEMA
                   ? tight_put_event(histogram_few_slot(h, 0), to)
                   : 0;
    }
    const struct distinct *d = &s->distinct;
    return d->mask == 0 && d->count == 1 ? tight_put_text(d->few[0], to) : 0;
}
