/* histogram.h - counts of numbers by size, in buckets that grow by 2^(1/16): the layout of Prometheus' native
 * histograms with schema 4. Shards count in it; stores and queries merge it.
 *
 *   slot    ... -1            0     1 ... HISTOGRAM_SLOTS - 1
 *   holds   negative numbers  zero  (2^((i-1)/16), 2^(i/16)], i = slot - HISTOGRAM_SLOT_OF_ONE
 *
 * Schema: a lower schema has wider buckets. Each has the slot of its end, as `i` is a multiple of the width;
 *         the slots between two of them are never used. So histograms merge whatever their schema is: in
 *         buckets as wide as the widest ones, by histogram_widen() of each slot, before or after they merge.
 * Zero  : numbers up to a limit on either side of zero, and the limit itself, may count as zero.
 * Error : every number of a bucket is at most 2.2 % away from histogram_value() of its slot, and for
 *         fractions another half a millionth; of schema 3, 4.5 %. A bucket of one number is exact.
 * Merge : counts of a slot are added. So the result depends on no order, and is the same bits everywhere.
 * Table : a number's slot is found by its highest six bits and a table of integers, without floats. So it is
 *         the same on every machine.
 * Owner : the counts are in the arena that the caller names; they are freed with it.
 * Source: https://prometheus.io/docs/specs/native_histograms/
 */
#pragma once

#include "aggregate/number.h"
#include "base/arena.h"
#include "base/check.h"
#include "base/slice.h"
#include "base/text.h"

#include <stdint.h>

#define HISTOGRAM_SCHEMA      4 /* the default, and the highest */
#define HISTOGRAM_SCHEMA_MIN  (-4)
#define HISTOGRAM_OCTAVE      16 /* slots of an octave */
/* The slot of the bucket that ends with 1. The smallest number, a millionth, has slot 1. */
#define HISTOGRAM_SLOT_OF_ONE 319
#define HISTOGRAM_SLOTS       (HISTOGRAM_SLOT_OF_ONE + 63 * HISTOGRAM_OCTAVE + 1)

/* The ends of the buckets, for numbers in units of 1/scale. */
struct histogram_layout {
    int64_t scale;
    int schema;
    int32_t width; /* slots of a bucket */
    int64_t zero;  /* the greatest number that counts as zero */
    /* The greatest number of each slot, or of one before it if it is not used; `zero` before the first. */
    int64_t last[HISTOGRAM_SLOTS];
    /* By a number's highest bit, and the five below it: a slot not above its own. */
    uint16_t first_slot[64][32];
};

#define HISTOGRAM_FEW 4

/* Slots on one side of zero, without their sign: `room` of them, from `first` on. */
struct histogram_side {
    int32_t first;
    uint32_t room; /* 0: there are none */
};

struct histogram_sides {
    struct histogram_side above, below; /* of numbers above zero, and below it */
};

/* Each side has its own room: zeros are normal, and the slot of 1 is 319 slots away from theirs. */
struct histogram {
    /* Of the slots above zero; before them the zeros, and before those the slots below zero, all ascending.
     * NULL: there are few slots. Many cells have few events. */
    int64_t *counts;
    union {
        struct histogram_sides sides;
        struct {
            int16_t few[HISTOGRAM_FEW];         /* the slots, in order of arrival */
            uint16_t few_counts[HISTOGRAM_FEW]; /* of each; 0: there is none */
        };
    };
};

/* Pre: scale is 1 or EVENT_SCALE, zero >= 0. It lives as long as the process. Any thread. */
const struct histogram_layout *histogram_layout(int64_t scale, int schema, int64_t zero);

static inline int32_t histogram_slot_above_0(const struct histogram_layout *l, uint64_t number)
{
    const int bit = 63 - __builtin_clzll(number);
    int32_t slot = l->first_slot[bit][number << (63 - bit) >> 58 & 31];
    while (number > (uint64_t)l->last[slot])
        slot++;
    return slot;
}

/* The slot of a number, in units of 1/scale. */
static inline int32_t histogram_slot(const struct histogram_layout *l, int64_t number)
{
    if (LIKELY(number > 0))
        return histogram_slot_above_0(l, (uint64_t)number);
    return number == 0 ? 0 : -histogram_slot_above_0(l, number > INT64_MIN ? (uint64_t)-number : INT64_MAX);
}

/* The slot of the bucket that ends with 2^(index/16). If no number can be in it, the slot of its middle,
 * rounded; or the greatest slot. Pre: index is a multiple of the width; the scale is EVENT_SCALE. */
int32_t histogram_slot_of_index(const struct histogram_layout *l, int64_t index);
/* All indexes up to the first have slot 0; all from the second on have the greatest slot. */
#define HISTOGRAM_INDEX_MIN (-HISTOGRAM_SLOT_OF_ONE - HISTOGRAM_OCTAVE)
#define HISTOGRAM_INDEX_MAX (HISTOGRAM_SLOTS - 1 - HISTOGRAM_SLOT_OF_ONE)

/* Adds to a slot that is not among the few, or has no room. */
void histogram_add_more(struct histogram *h, struct arena *arena, int32_t slot, int64_t count);
/* Adds all of another one, in buckets of `width` slots; 1: in its own. It keeps no memory of it. */
void histogram_unite(struct histogram *h, struct arena *arena, const struct histogram *other, int32_t width);

/* Has sides cover those of another histogram, too. Zeros: they cover no slot. */
void histogram_cover(struct histogram_sides *sides, const struct histogram *h);
/* Makes room for these slots in an empty one, so that it need not grow. */
void histogram_make_room(struct histogram *h, struct arena *arena, const struct histogram_sides *sides);

/* The counts in memory, from the least slot to the greatest. Pre: there are not few slots. */
static inline uint32_t histogram_places(const struct histogram *h)
{
    return h->sides.below.room + 1 + h->sides.above.room;
}

/* The count at one of these places, and its slot. */
static inline int64_t histogram_count_at(const struct histogram *h, uint32_t place)
{
    return (h->counts - 1 - h->sides.below.room)[place];
}

static inline int32_t histogram_slot_at(const struct histogram *h, uint32_t place)
{
    const int32_t behind = (int32_t)place - (int32_t)h->sides.below.room; /* the zeros are at 0 */
    return behind > 0   ? behind - 1 + h->sides.above.first
           : behind < 0 ? behind + 1 - h->sides.below.first
                        : 0;
}

/* The count of a slot; NULL: it has no room. Pre: there are not few slots. */
static inline int64_t *histogram_room_of(const struct histogram *h, int32_t slot)
{
    const struct histogram_side *above = &h->sides.above, *below = &h->sides.below;
    if (LIKELY((uint32_t)(slot - above->first) < above->room))
        return &h->counts[slot - above->first];
    if (slot == 0)
        return &h->counts[-1];
    return (uint32_t)(-slot - below->first) < below->room ? &h->counts[slot + below->first - 2] : NULL;
}

static inline void histogram_add(struct histogram *h, struct arena *arena, int32_t slot, int64_t count)
{
    int64_t *to;
    if (h->counts == NULL) {
        for (int i = 0; i < HISTOGRAM_FEW; i++) {
            if (h->few_counts[i] != 0 && h->few[i] != slot)
                continue;
            if (UNLIKELY(count > UINT16_MAX - h->few_counts[i]))
                break;
            h->few[i] = (int16_t)slot;
            h->few_counts[i] = (uint16_t)(h->few_counts[i] + count);
            return;
        }
    } else if (LIKELY((to = histogram_room_of(h, slot)) != NULL)) {
        if (__builtin_add_overflow(*to, count, to))
            *to = INT64_MAX;
        return;
    }
    histogram_add_more(h, arena, slot, count);
}

/* Packs a histogram:  (slot-gap count)*  as varints, slots ascending, counts above 0. The first gap is the
 * slot, zigzag; others are slot - previous slot - 1. The same counts have the same bytes. */
void histogram_pack(const struct histogram *h, struct text *out);
/* Adds a packed one, in buckets of `width` slots; 1: as they are. False: it is damaged; `h` is then partly
 * changed. */
bool histogram_merge(struct histogram *h, struct arena *arena, struct slice packed, int32_t width);
/* Subtracts a packed one, which was merged before. False: it is damaged, or was not. */
bool histogram_take(struct histogram *h, struct arena *arena, struct slice packed);

/* A slot and the count of its numbers, which is above 0. */
struct histogram_bucket {
    int32_t slot;
    int64_t count;
};

/* A walk over the buckets of a histogram, slots ascending. The histogram must not change meanwhile. */
struct histogram_walk {
    const struct histogram *histogram; /* NULL: the few buckets are copied */
    uint32_t count, next;
    struct histogram_bucket few[HISTOGRAM_FEW];
};

struct histogram_walk histogram_walk(const struct histogram *h);
/* The next bucket; false: there are no more. */
bool histogram_next(struct histogram_walk *w, struct histogram_bucket *b);

int64_t histogram_count(const struct histogram *h);
/* The end of a bucket as a real number: 2^((slot - HISTOGRAM_SLOT_OF_ONE) / 16). It begins at the end of the
 * slot that is its width below, even if that is below 0. */
double histogram_end(int32_t slot);
/* The slot, of a histogram with wider buckets, of the bucket that holds the one of a slot. */
int32_t histogram_widen(int32_t slot, int32_t width);
/* The number as which those of a slot count: the middle of its bucket, in five digits and units of
 * 1/EVENT_SCALE. */
int128 histogram_value(const struct histogram_layout *l, int32_t slot);
/* The slot that holds the number of a rank, in ascending order. Pre: rank is from 1 to histogram_count(). */
int32_t histogram_rank(const struct histogram *h, int64_t rank);
/* The number that this share of the numbers does not exceed, as histogram_value() has it. `quantile` is from
 * 0 to 1, in units of 1/EVENT_SCALE. False: there are no numbers. */
bool histogram_quantile(const struct histogram *h, const struct histogram_layout *l, int64_t quantile,
                        int128 *value);
/* How many numbers are up to `limit`, which is in units of 1/EVENT_SCALE. The numbers of the bucket that
 * holds it count as lying evenly in it. */
int64_t histogram_within(const struct histogram *h, const struct histogram_layout *l, int128 limit);
