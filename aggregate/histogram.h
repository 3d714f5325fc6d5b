/* histogram.h - counts of numbers by size, in buckets that grow by 2^(2^-schema): the layouts of Prometheus'
 * native histograms, of schema 4 unless another is asked for. Shards count in it; stores and queries merge
 * it.
 *
 *   slot    ... -1            0     1 ... HISTOGRAM_SLOTS - 1
 *   holds   negative numbers  zero  (2^((i-1)/16), 2^(i/16)], i = slot - HISTOGRAM_SLOT_OF_ONE
 *
 * Schema: a lower schema has wider buckets. Up to schema 4 a bucket has the slot of its end, as above; slots
 *         between two ends are never used. A schema from 5 to 8 has slots of its own: from 2^(schema + 7) on,
 *         nth by nth as above. So a slot alone says which bucket it is, and histograms merge whatever their
 *         schemas are: in buckets of the lowest one, by histogram_widen() of each slot, before or after they
 *         merge. "Schema HISTOGRAM_SCHEMA_MAX" widens nothing, so it asks for buckets as they are.
 * Zero  : numbers up to a limit on either side of zero, and the limit itself, may count as zero.
 * Error : every number of a bucket is at most 2^(2^-schema / 2) - 1 away from histogram_value() of its slot,
 *         2.2 % with schema 4; and half a unit of the fifth digit, and for fractions half a millionth. A
 *         bucket of one number is exact.
 * Merge : counts of a slot are added. So the result depends on no order, and is the same bits everywhere.
 * Table : a number's slot is found by its highest six bits and a table of integers, without floats. So it is
 *         the same on every machine (powers.h).
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
#include <stdlib.h>

#define HISTOGRAM_SCHEMA      4 /* the default */
#define HISTOGRAM_SCHEMA_MIN  (-4)
#define HISTOGRAM_SCHEMA_MAX  8
/* The slot of the bucket that ends with 1, up to schema 4. The smallest number, a millionth, has slot 1. */
#define HISTOGRAM_SLOT_OF_ONE 319
/* Slots of a schema from 4 on, nth from 0: 20 octaves below 1, 63 above. */
#define HISTOGRAM_NTHS(unit)  (83 << (unit))
#define HISTOGRAM_SLOTS       HISTOGRAM_NTHS(HISTOGRAM_SCHEMA)
#define HISTOGRAM_NTHS_MAX    HISTOGRAM_NTHS(HISTOGRAM_SCHEMA_MAX)
#define HISTOGRAM_FIRST(unit) (1 << ((unit) + 7)) /* the slot of nth 0, above schema 4 */
#define HISTOGRAM_SLOT_END    (HISTOGRAM_FIRST(HISTOGRAM_SCHEMA_MAX) + HISTOGRAM_NTHS_MAX)

/* The ends of the buckets, for numbers in units of 1/scale. */
struct histogram_layout {
    int64_t scale;
    int schema;
    int unit;      /* the schema whose slots it has: 4, or a higher one */
    int32_t first; /* the slot of nth 0 */
    int64_t zero;  /* the greatest number that counts as zero */
    /* By a number's highest bit, and the five below it: an nth slot not above its own. */
    uint16_t first_nth[64][32];
    /* The greatest number of each nth slot; of one before it if it is not used; `zero` before the first. */
    int64_t last[];
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

#define HISTOGRAM_COUNT_BITS 15 /* of a count among the few; 0: there is none */
#define HISTOGRAM_COUNT_MAX  ((1 << HISTOGRAM_COUNT_BITS) - 1)
_Static_assert(HISTOGRAM_SLOT_END <= 1 << (31 - HISTOGRAM_COUNT_BITS), "a slot and its sign fit");

/* Each side has its own room: zeros are normal, and the slot of 1 is 319 slots away from theirs. */
struct histogram {
    /* Of the slots above zero; before them the zeros, and before those the slots below zero, all ascending.
     * NULL: there are few slots. Many cells have few events. */
    int64_t *counts;
    union {
        struct histogram_sides sides;
        struct {
            int32_t few[HISTOGRAM_FEW]; /* in order of arrival: a slot, and its count in the lowest bits */
        };
    };
};

/* Pre: there are few slots, and i < HISTOGRAM_FEW. */
static inline int32_t histogram_few_count(const struct histogram *h, uint32_t i)
{
    return h->few[i] & HISTOGRAM_COUNT_MAX;
}

/* The slot, if the count is not 0. */
static inline int32_t histogram_few_slot(const struct histogram *h, uint32_t i)
{
    return h->few[i] >> HISTOGRAM_COUNT_BITS;
}

static inline bool histogram_is_empty(const struct histogram *h)
{
    return h->counts == NULL && h->few[0] == 0;
}

/* Pre: scale is 1 or EVENT_SCALE, zero >= 0. It lives as long as the process. Any thread. */
const struct histogram_layout *histogram_layout(int64_t scale, int schema, int64_t zero);

static inline int32_t histogram_slot_above_0(const struct histogram_layout *l, uint64_t number)
{
    const int bit = 63 - __builtin_clzll(number);
    int32_t nth = l->first_nth[bit][number << (63 - bit) >> 58 & 31];
    while (number > (uint64_t)l->last[nth])
        nth++;
    return nth > 0 ? nth + l->first : 0;
}

/* The slot of a number, in units of 1/scale. */
static inline int32_t histogram_slot(const struct histogram_layout *l, int64_t number)
{
    if (LIKELY(number > 0))
        return histogram_slot_above_0(l, (uint64_t)number);
    return number == 0 ? 0 : -histogram_slot_above_0(l, number > INT64_MIN ? (uint64_t)-number : INT64_MAX);
}

/* The schema that has a slot; 4: it and all lower ones. */
static inline int histogram_unit(int32_t slot)
{
    const uint32_t size = (uint32_t)(slot < 0 ? -slot : slot);
    return size < HISTOGRAM_FIRST(HISTOGRAM_SCHEMA + 1) ? HISTOGRAM_SCHEMA : 24 - __builtin_clz(size);
}

/* Which slot of its schema it is, from 0; with the slot's sign. Slots whose schema is the same have gaps
 * between them only here, not around zero. */
static inline int32_t histogram_nth(int32_t slot)
{
    const int unit = histogram_unit(slot);
    const int32_t first = unit > HISTOGRAM_SCHEMA ? HISTOGRAM_FIRST(unit) : 0;
    return slot < 0 ? slot + first : slot - first;
}

/* The inverse. Pre: unit is from 4 to 8. */
static inline int32_t histogram_slot_of_nth(int32_t nth, int unit)
{
    const int32_t first = unit > HISTOGRAM_SCHEMA ? HISTOGRAM_FIRST(unit) : 0;
    return nth > 0 ? nth + first : nth < 0 ? nth - first : 0;
}

/* The nth slot of the bucket that ends with 1. */
static inline int32_t histogram_nth_of_one(int unit)
{
    return (20 << unit) - 1;
}

/* Is there such a slot? */
static inline bool histogram_has_slot(int64_t slot)
{
    return slot > -HISTOGRAM_SLOT_END && slot < HISTOGRAM_SLOT_END &&
           llabs(histogram_nth((int32_t)slot)) < HISTOGRAM_NTHS(histogram_unit((int32_t)slot));
}

/* The index in Prometheus of the bucket of a schema that holds a slot's, whatever its sign: it ends with
 * 2^(index / 2^schema). Pre: the slot is not 0, and has no lower schema. */
int32_t histogram_index(int32_t slot, int schema);
/* The slot of the bucket of an index of the layout's schema. If no number can be in it, the slot of its
 * middle, rounded; or the greatest slot. Pre: the scale is EVENT_SCALE. */
int32_t histogram_slot_of_index(const struct histogram_layout *l, int64_t index);
/* All indexes up to the first have slot 0; all from the second on have the greatest slot. */
int64_t histogram_index_min(const struct histogram_layout *l);
int64_t histogram_index_max(const struct histogram_layout *l);

/* Adds to a slot that is not among the few, or has no room. */
void histogram_add_more(struct histogram *h, struct arena *arena, int32_t slot, int64_t count);
/* Adds all of another one, in buckets of a schema, if its own are narrower. It keeps no memory of it. */
void histogram_unite(struct histogram *h, struct arena *arena, const struct histogram *other, int schema);

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

/* Has it slots of a schema above 4? */
static inline bool histogram_is_fine(const struct histogram *h)
{
    const struct histogram_side *above = &h->sides.above, *below = &h->sides.below;
    bool is_fine = false;
    for (uint32_t i = 0; h->counts == NULL && i < HISTOGRAM_FEW; i++)
        is_fine |= histogram_unit(histogram_few_slot(h, i)) > HISTOGRAM_SCHEMA;
    if (h->counts != NULL) /* others have less room than the slots before */
        is_fine = above->first + (int32_t)above->room > HISTOGRAM_FIRST(HISTOGRAM_SCHEMA + 1) ||
                  below->first + (int32_t)below->room > HISTOGRAM_FIRST(HISTOGRAM_SCHEMA + 1);
    return is_fine;
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
        for (uint32_t i = 0; i < HISTOGRAM_FEW; i++) {
            const int32_t own = histogram_few_count(h, i);
            if (own != 0 && histogram_few_slot(h, i) != slot)
                continue;
            if (UNLIKELY(count > HISTOGRAM_COUNT_MAX - own))
                break;
            h->few[i] = slot * (1 << HISTOGRAM_COUNT_BITS) + own + (int32_t)count;
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
/* Adds a packed one, in buckets of a schema, if its own are narrower. False: it is damaged; `h` is then
 * partly changed. */
bool histogram_merge(struct histogram *h, struct arena *arena, struct slice packed, int schema);
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
/* The end of a bucket as a real number: 2^(histogram_index() / 2^schema), of the slot's schema. */
double histogram_end(int32_t slot);
/* The begin of the bucket that ends with this slot. */
double histogram_begin(int32_t slot, int schema);
/* The slot, of a histogram of a schema, of the bucket that holds the one of a slot; the slot itself if its
 * buckets are as wide. */
int32_t histogram_widen(int32_t slot, int schema);
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
