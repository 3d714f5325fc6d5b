#include "aggregate/histogram.h"

#include "base/mem.h"
#include "base/varint.h"

#include <math.h>
#include <pthread.h>
#include <string.h>

#define ROOM_MIN    15     /* of a side. With the zeros' count it is a power of two */
#define VALUE_LIMIT 100000 /* values have five digits */

/* 2^(k/16) and 2^((2k+1)/32), times 2^62. */
static const uint64_t ends[HISTOGRAM_OCTAVE] = {
    0x4000000000000000, 0x42d561b3e6243d8a, 0x45cae0f1f545eb73, 0x48e1e9b9d588e19b,
    0x4c1bf828c6dc54b7, 0x4f7a993048d088d6, 0x52ff6b54d8a89c75, 0x56ac1f752150a563,
    0x5a827999fcef3242, 0x5e8451cfac061b5f, 0x62b39508aa836d6e, 0x6712460a8fc24071,
    0x6ba27e656b4eb57a, 0x70666f76154a7088, 0x75606373ee921c97, 0x7a92be8a92436616};
static const uint64_t middles[HISTOGRAM_OCTAVE] = {
    0x4166c34c5615d0eb, 0x444c0740496d4293, 0x47521cc5a2e6a9e0, 0x4a7a77d47f7b84b0,
    0x4dc69cdceaa72a9c, 0x513821818624b40c, 0x54d0ad5a753e077c, 0x5891fac0e95612c7,
    0x5c7dd7a3b17dcf74, 0x6096266533384a2b, 0x64dcdec3371793d1, 0x69540ec8f895722d,
    0x6dfddbcbed791baa, 0x72dc8373be41a454, 0x77f25ccdee6d7ae5, 0x7d41d96db915019d};

/* All layouts that were asked for, the newest first. */
static struct made {
    struct histogram_layout layout;
    struct made *next;
} * all_made;

static int32_t octave_of(int32_t index)
{
    return index >= 0 ? index / HISTOGRAM_OCTAVE : -((HISTOGRAM_OCTAVE - 1 - index) / HISTOGRAM_OCTAVE);
}

/* scale × 2^(index/16) by a table of 16 powers. `rounds`: to the nearest, else the fraction is cut off. */
static int128 power(const uint64_t table[HISTOGRAM_OCTAVE], int32_t index, int64_t scale, bool rounds)
{
    const int32_t octave = octave_of(index);
    const int128 product = (int128)table[index - octave * HISTOGRAM_OCTAVE] * scale;
    const int shift = 62 - octave;
    if (shift <= 0)
        return product << -shift;
    return (product + (rounds ? (int128)1 << (shift - 1) : 0)) >> shift;
}

static void fill_first_slots(struct histogram_layout *l)
{
    uint16_t slot = 0; /* it has the numbers that count as zero */
    for (int bit = 0; bit < 64; bit++) {
        for (int next = 0; next < 32; next++) {
            uint64_t least =
                bit >= 5 ? (uint64_t)(32 + next) << (bit - 5) : (uint64_t)(32 + next) >> (5 - bit);
            while (slot < HISTOGRAM_SLOTS - 1 && (uint64_t)l->last[slot] < least)
                slot++;
            l->first_slot[bit][next] = slot;
        }
    }
}

static void fill_layout(struct histogram_layout *l)
{
    l->last[0] = l->zero;
    for (int32_t slot = 1; slot < HISTOGRAM_SLOTS; slot++) {
        const int32_t index = slot - HISTOGRAM_SLOT_OF_ONE;
        const int128 last = index % l->width == 0 ? power(ends, index, l->scale, false) : 0;
        const int64_t before = l->last[slot - 1];
        l->last[slot] = last < before ? before : last < INT64_MAX ? (int64_t)last : INT64_MAX;
    }
    l->last[HISTOGRAM_SLOTS - 1] = INT64_MAX;
    fill_first_slots(l);
}

const struct histogram_layout *histogram_layout(int64_t scale, int schema, int64_t zero)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    ASSERT((scale == 1 || scale == EVENT_SCALE) && schema >= HISTOGRAM_SCHEMA_MIN &&
           schema <= HISTOGRAM_SCHEMA && zero >= 0);
    pthread_mutex_lock(&lock);
    struct made *made = all_made;
    while (made != NULL &&
           (made->layout.scale != scale || made->layout.schema != schema || made->layout.zero != zero))
        made = made->next;
    if (made == NULL) {
        made = xcalloc(1, sizeof *made);
        made->layout = (struct histogram_layout){
            .scale = scale, .schema = schema, .width = 1 << (HISTOGRAM_SCHEMA - schema), .zero = zero};
        fill_layout(&made->layout);
        made->next = all_made;
        all_made = made;
    }
    pthread_mutex_unlock(&lock);
    return &made->layout;
}

/* The middle of the bucket that ends with 2^(index/16), by the logarithm, rounded; in units of
 * 1/EVENT_SCALE. */
static int128 middle_of(const struct histogram_layout *l, int32_t index)
{
    return l->width == 1 ? power(middles, index - 1, EVENT_SCALE, true)
                         : power(ends, index - l->width / 2, EVENT_SCALE, true);
}

int32_t histogram_slot_of_index(const struct histogram_layout *l, int64_t index)
{
    if (index <= HISTOGRAM_INDEX_MIN)
        return 0;
    const int32_t slot =
        index < HISTOGRAM_INDEX_MAX ? (int32_t)index + HISTOGRAM_SLOT_OF_ONE : HISTOGRAM_SLOTS - 1;
    if (slot > 0 && l->last[slot] == INT64_MAX)
        return histogram_slot(l, INT64_MAX);
    if (slot > 0 && l->last[slot] > l->last[slot - 1])
        return slot;
    return histogram_slot(l, (int64_t)middle_of(l, (int32_t)index));
}

static int32_t side_end(const struct histogram_side *side)
{
    return side->first + (int32_t)side->room;
}

/* Has a side cover the slots of another one, too. */
static void cover_side(struct histogram_side *side, const struct histogram_side *other)
{
    if (other->room == 0)
        return;
    if (side->room == 0) {
        *side = *other;
        return;
    }
    const int32_t end = side_end(side) > side_end(other) ? side_end(side) : side_end(other);
    side->first = side->first < other->first ? side->first : other->first;
    side->room = (uint32_t)(end - side->first);
}

static void cover_slot(struct histogram_sides *sides, int32_t slot)
{
    cover_side(slot < 0 ? &sides->below : &sides->above,
               &(struct histogram_side){slot < 0 ? -slot : slot, slot != 0});
}

void histogram_cover(struct histogram_sides *sides, const struct histogram *h)
{
    for (int i = 0; h->counts == NULL && i < HISTOGRAM_FEW && h->few_counts[i] > 0; i++)
        cover_slot(sides, h->few[i]);
    if (h->counts != NULL) {
        cover_side(&sides->above, &h->sides.above);
        cover_side(&sides->below, &h->sides.below);
    }
}

void histogram_make_room(struct histogram *h, struct arena *arena, const struct histogram_sides *sides)
{
    ASSERT(h->counts == NULL && h->few_counts[0] == 0);
    h->sides = *sides;
    const size_t bytes = histogram_places(h) * sizeof *h->counts;
    int64_t *counts = arena_add(arena, bytes);
    memset(counts, 0, bytes);
    h->counts = counts + sides->below.room + 1;
}

/* Leaves a side more room where it grows: away from zero or towards it, or on both sides if it is new. */
static void leave_room(struct histogram_side *side, const struct histogram_side *old)
{
    uint32_t room = ROOM_MIN;
    while (room < side->room)
        room = 2 * room + 1;
    const int32_t more = (int32_t)(room - side->room);
    const int32_t before = old->room == 0 ? more / 2 : side->first < old->first ? more : 0;
    side->first = side->first > before ? side->first - before : 1;
    side->room = side->room > 0 ? room : 0;
}

/* Makes room for a slot, and for those that it has. */
static void grow(struct histogram *h, struct arena *arena, int32_t slot)
{
    const struct histogram old = *h;
    const struct histogram_sides had = old.counts != NULL ? old.sides : (struct histogram_sides){0};
    struct histogram_sides sides = {0};
    histogram_cover(&sides, &old);
    cover_slot(&sides, slot);
    leave_room(&sides.above, &had.above);
    leave_room(&sides.below, &had.below);
    *h = (struct histogram){0};
    histogram_make_room(h, arena, &sides);
    histogram_unite(h, arena, &old, 1);
}

void histogram_add_more(struct histogram *h, struct arena *arena, int32_t slot, int64_t count)
{
    ASSERT(slot > -HISTOGRAM_SLOTS && slot < HISTOGRAM_SLOTS);
    if (h->counts == NULL || histogram_room_of(h, slot) == NULL)
        grow(h, arena, slot);
    histogram_add(h, arena, slot, count);
}

static int32_t slot_of_width(int32_t slot, int32_t width)
{
    return width == 1 ? slot : histogram_widen(slot, width);
}

void histogram_unite(struct histogram *h, struct arena *arena, const struct histogram *other, int32_t width)
{
    for (int i = 0; other->counts == NULL && i < HISTOGRAM_FEW && other->few_counts[i] > 0; i++)
        histogram_add(h, arena, slot_of_width(other->few[i], width), other->few_counts[i]);
    for (uint32_t i = 0; other->counts != NULL && i < histogram_places(other); i++) {
        if (histogram_count_at(other, i) != 0)
            histogram_add(h, arena, slot_of_width(histogram_slot_at(other, i), width),
                          histogram_count_at(other, i));
    }
}

struct histogram_walk histogram_walk(const struct histogram *h)
{
    struct histogram_walk w = {0};
    if (h->counts != NULL) {
        w.histogram = h;
        w.count = histogram_places(h);
        return w;
    }
    for (; w.count < HISTOGRAM_FEW && h->few_counts[w.count] > 0; w.count++) {
        uint32_t at = w.count;
        for (; at > 0 && w.few[at - 1].slot > h->few[w.count]; at--)
            w.few[at] = w.few[at - 1];
        w.few[at] = (struct histogram_bucket){h->few[w.count], h->few_counts[w.count]};
    }
    return w;
}

bool histogram_next(struct histogram_walk *w, struct histogram_bucket *b)
{
    const struct histogram *h = w->histogram;
    while (h != NULL && w->next < w->count && histogram_count_at(h, w->next) == 0)
        w->next++;
    if (w->next == w->count)
        return false;
    *b = h == NULL ? w->few[w->next]
                   : (struct histogram_bucket){histogram_slot_at(h, w->next), histogram_count_at(h, w->next)};
    w->next++;
    return true;
}

void histogram_pack(const struct histogram *h, struct text *out)
{
    uint8_t bytes[2 * VARINT_BYTES_MAX];
    struct histogram_walk w = histogram_walk(h);
    struct histogram_bucket b;
    for (int32_t before = INT32_MIN; histogram_next(&w, &b); before = b.slot) {
        uint8_t *p =
            varint_put(bytes, before == INT32_MIN ? varint_zigzag(b.slot) : (uint64_t)(b.slot - before - 1));
        p = varint_put(p, (uint64_t)b.count);
        text_add(out, (const char *)bytes, (size_t)(p - bytes));
    }
}

/* Walks a packed histogram. Returns the bytes behind the next slot; NULL: it is damaged. *slot is the slot
 * before, INT32_MIN at first. */
static const uint8_t *next_slot(const uint8_t *p, const uint8_t *end, int32_t *slot, int64_t *count)
{
    uint64_t gap, n;
    if ((p = varint_get(p, end, &gap)) == NULL || (p = varint_get(p, end, &n)) == NULL || n == 0 ||
        n > INT64_MAX || gap > 4 * HISTOGRAM_SLOTS)
        return NULL;
    int64_t next = *slot == INT32_MIN ? varint_unzigzag(gap) : *slot + 1 + (int64_t)gap;
    if (next <= -HISTOGRAM_SLOTS || next >= HISTOGRAM_SLOTS)
        return NULL;
    *slot = (int32_t)next;
    *count = (int64_t)n;
    return p;
}

bool histogram_merge(struct histogram *h, struct arena *arena, struct slice packed, int32_t width)
{
    const uint8_t *p = (const uint8_t *)packed.ptr, *end = packed.len > 0 ? p + packed.len : p;
    int32_t slot = INT32_MIN;
    int64_t count;
    while (p < end) {
        if ((p = next_slot(p, end, &slot, &count)) == NULL)
            return false;
        histogram_add(h, arena, width == 1 ? slot : histogram_widen(slot, width), count);
    }
    return true;
}

bool histogram_take(struct histogram *h, struct arena *arena, struct slice packed)
{
    const uint8_t *p = (const uint8_t *)packed.ptr, *end = packed.len > 0 ? p + packed.len : p;
    int32_t slot = INT32_MIN;
    int64_t count;
    if (h->counts == NULL)
        grow(h, arena, 0);
    while (p < end) {
        if ((p = next_slot(p, end, &slot, &count)) == NULL)
            return false;
        int64_t *from = histogram_room_of(h, slot);
        if (from == NULL || *from < count || *from == INT64_MAX)
            return false;
        *from -= count;
    }
    return true;
}

int64_t histogram_count(const struct histogram *h)
{
    int64_t sum = 0;
    struct histogram_walk w = histogram_walk(h);
    struct histogram_bucket b;
    while (histogram_next(&w, &b)) {
        if (__builtin_add_overflow(sum, b.count, &sum))
            return INT64_MAX;
    }
    return sum;
}

double histogram_end(int32_t slot)
{
    const int32_t index = slot - HISTOGRAM_SLOT_OF_ONE, octave = octave_of(index);
    return ldexp((double)ends[index - octave * HISTOGRAM_OCTAVE], octave - 62);
}

int32_t histogram_widen(int32_t slot, int32_t width)
{
    const int32_t size = slot < 0 ? -slot : slot, behind = (size - HISTOGRAM_SLOT_OF_ONE) % width;
    int32_t wide = behind > 0 ? size + width - behind : size - behind;
    if (wide > HISTOGRAM_SLOTS - 1)
        wide = HISTOGRAM_SLOTS - 1;
    return slot == 0 ? 0 : slot < 0 ? -wide : wide;
}

/* Round to five digits: more would only feign precision. */
static int128 round_digits(int128 value)
{
    int128 unit = 1;
    while (value / unit >= VALUE_LIMIT)
        unit *= 10;
    return (value + unit / 2) / unit * unit;
}

/* The numbers of a slot above 0, in units of 1/EVENT_SCALE. */
static void bounds_of(const struct histogram_layout *l, int32_t slot, int128 *least, int128 *most)
{
    const int64_t unit = EVENT_SCALE / l->scale;
    *least = ((int128)l->last[slot - 1] + 1) * unit;
    *most = (int128)l->last[slot] * unit;
}

int128 histogram_value(const struct histogram_layout *l, int32_t slot)
{
    int128 least, most;
    if (slot < 0)
        return -histogram_value(l, -slot);
    if (slot == 0)
        return 0;
    bounds_of(l, slot, &least, &most);
    const int128 middle = middle_of(l, slot - HISTOGRAM_SLOT_OF_ONE);
    if (middle <= least || least == most)
        return least;
    return round_digits(middle < most ? middle : most);
}

int32_t histogram_rank(const struct histogram *h, int64_t rank)
{
    struct histogram_walk w = histogram_walk(h);
    struct histogram_bucket b = {0};
    ASSERT(rank >= 1);
    while (histogram_next(&w, &b) && rank > b.count)
        rank -= b.count;
    return b.slot;
}

/* The rank is that of the least number that has this share of them up to itself. */
bool histogram_quantile(const struct histogram *h, const struct histogram_layout *l, int64_t quantile,
                        int128 *value)
{
    const int64_t count = histogram_count(h);
    const int128 rank = ((int128)quantile * count + EVENT_SCALE - 1) / EVENT_SCALE;
    if (count > 0)
        *value = histogram_value(l, histogram_rank(h, rank < 1 ? 1 : (int64_t)rank));
    return count > 0;
}

/* How many of a slot's `count` numbers are up to `limit`, if they lie evenly. */
static int64_t part_within(const struct histogram_layout *l, int32_t slot, int64_t count, int128 limit)
{
    int128 least, most;
    if (slot < 0)
        return count - part_within(l, -slot, count, -limit - 1);
    if (slot == 0)
        return limit >= 0 ? count : 0;
    bounds_of(l, slot, &least, &most);
    if (limit < least || limit >= most)
        return limit >= most ? count : 0;
    return (int64_t)(count * (limit - least + 1) / (most - least + 1));
}

int64_t histogram_within(const struct histogram *h, const struct histogram_layout *l, int128 limit)
{
    int64_t within = 0;
    struct histogram_walk w = histogram_walk(h);
    struct histogram_bucket b;
    while (histogram_next(&w, &b)) {
        if (__builtin_add_overflow(within, part_within(l, b.slot, b.count, limit), &within))
            return INT64_MAX;
    }
    return within;
}
