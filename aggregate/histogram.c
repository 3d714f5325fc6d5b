#include "aggregate/histogram.h"

#include "aggregate/powers.h"
#include "base/mem.h"
#include "base/varint.h"

#include <pthread.h>
#include <string.h>

#define ROOM_MIN    15     /* of a side. With the zeros' count it is a power of two */
#define VALUE_LIMIT 100000 /* values have five digits */

/* All layouts that were asked for, the newest first. */
static struct made {
    struct made *next;
    struct histogram_layout layout;
} * all_made;

/* The slots of a bucket. */
static int32_t width_of(int unit, int schema)
{
    return schema < unit ? 1 << (unit - schema) : 1;
}

static void fill_first_nths(struct histogram_layout *l)
{
    uint16_t nth = 0; /* it has the numbers that count as zero */
    for (int bit = 0; bit < 64; bit++) {
        for (int next = 0; next < 32; next++) {
            uint64_t least =
                bit >= 5 ? (uint64_t)(32 + next) << (bit - 5) : (uint64_t)(32 + next) >> (5 - bit);
            while (nth < HISTOGRAM_NTHS(l->unit) - 1 && (uint64_t)l->last[nth] < least)
                nth++;
            l->first_nth[bit][next] = nth;
        }
    }
}

static void fill_layout(struct histogram_layout *l)
{
    const int32_t width = width_of(l->unit, l->schema);
    l->last[0] = l->zero;
    for (int32_t nth = 1; nth < HISTOGRAM_NTHS(l->unit); nth++) {
        const int32_t index = nth - histogram_nth_of_one(l->unit);
        const int64_t last = index % width == 0 ? powers_floor(index, l->unit, l->scale) : 0;
        l->last[nth] = last < l->last[nth - 1] ? l->last[nth - 1] : last;
    }
    l->last[HISTOGRAM_NTHS(l->unit) - 1] = INT64_MAX;
    fill_first_nths(l);
}

static struct made *make_layout(int64_t scale, int schema, int64_t zero)
{
    const int unit = schema > HISTOGRAM_SCHEMA ? schema : HISTOGRAM_SCHEMA;
    struct made *made = xcalloc(1, sizeof *made + (size_t)HISTOGRAM_NTHS(unit) * sizeof made->layout.last[0]);
    made->layout = (struct histogram_layout){.scale = scale,
                                             .schema = schema,
                                             .unit = unit,
                                             .first = histogram_slot_of_nth(1, unit) - 1,
                                             .zero = zero};
    fill_layout(&made->layout);
    return made;
}

const struct histogram_layout *histogram_layout(int64_t scale, int schema, int64_t zero)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    ASSERT((scale == 1 || scale == EVENT_SCALE) && schema >= HISTOGRAM_SCHEMA_MIN &&
           schema <= HISTOGRAM_SCHEMA_MAX && zero >= 0);
    pthread_mutex_lock(&lock);
    struct made *made = all_made;
    while (made != NULL &&
           (made->layout.scale != scale || made->layout.schema != schema || made->layout.zero != zero))
        made = made->next;
    if (made == NULL) {
        made = make_layout(scale, schema, zero);
        made->next = all_made;
        all_made = made;
    }
    pthread_mutex_unlock(&lock);
    return &made->layout;
}

/* index / 2^bits, rounded up. */
static int32_t divide_up(int32_t index, int bits)
{
    return index > 0 ? (index + (1 << bits) - 1) >> bits : -(-index >> bits);
}

int32_t histogram_index(int32_t slot, int schema)
{
    const int unit = histogram_unit(slot);
    ASSERT(schema <= unit);
    return divide_up(abs(histogram_nth(slot)) - histogram_nth_of_one(unit), unit - schema);
}

/* The middle of the bucket of an index of the layout's schema, by the logarithm, rounded; in units of
 * 1/EVENT_SCALE. */
static int128 middle_of(const struct histogram_layout *l, int64_t index)
{
    return powers_round(2 * index - 1, l->schema + 1, EVENT_SCALE);
}

int64_t histogram_index_min(const struct histogram_layout *l)
{
    const int32_t width = width_of(l->unit, l->schema);
    return -((histogram_nth_of_one(l->unit) + (1 << l->unit) + width - 1) / width);
}

int64_t histogram_index_max(const struct histogram_layout *l)
{
    return divide_up(63 << l->unit, l->unit - l->schema);
}

int32_t histogram_slot_of_index(const struct histogram_layout *l, int64_t index)
{
    const int32_t most = HISTOGRAM_NTHS(l->unit) - 1;
    if (index <= histogram_index_min(l))
        return 0;
    const int32_t nth = index < histogram_index_max(l)
                            ? (int32_t)index * width_of(l->unit, l->schema) + histogram_nth_of_one(l->unit)
                            : most;
    if (nth > 0 && l->last[nth] == INT64_MAX)
        return histogram_slot(l, INT64_MAX);
    if (nth > 0 && l->last[nth] > l->last[nth - 1])
        return nth + l->first;
    return histogram_slot(l, (int64_t)middle_of(l, index));
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
    for (uint32_t i = 0; h->counts == NULL && i < HISTOGRAM_FEW && histogram_few_count(h, i) > 0; i++)
        cover_slot(sides, histogram_few_slot(h, i));
    if (h->counts != NULL) {
        cover_side(&sides->above, &h->sides.above);
        cover_side(&sides->below, &h->sides.below);
    }
}

void histogram_make_room(struct histogram *h, struct arena *arena, const struct histogram_sides *sides)
{
    ASSERT(histogram_is_empty(h));
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
    histogram_unite(h, arena, &old, HISTOGRAM_SCHEMA_MAX);
}

void histogram_add_more(struct histogram *h, struct arena *arena, int32_t slot, int64_t count)
{
    ASSERT(histogram_has_slot(slot));
    if (h->counts == NULL || histogram_room_of(h, slot) == NULL)
        grow(h, arena, slot);
    histogram_add(h, arena, slot, count);
}

void histogram_unite(struct histogram *h, struct arena *arena, const struct histogram *other, int schema)
{
    for (uint32_t i = 0; other->counts == NULL && i < HISTOGRAM_FEW && histogram_few_count(other, i) > 0; i++)
        histogram_add(h, arena, histogram_widen(histogram_few_slot(other, i), schema),
                      histogram_few_count(other, i));
    for (uint32_t i = 0; other->counts != NULL && i < histogram_places(other); i++) {
        if (histogram_count_at(other, i) != 0)
            histogram_add(h, arena, histogram_widen(histogram_slot_at(other, i), schema),
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
    for (; w.count < HISTOGRAM_FEW && histogram_few_count(h, w.count) > 0; w.count++) {
        const struct histogram_bucket own = {histogram_few_slot(h, w.count), histogram_few_count(h, w.count)};
        uint32_t at = w.count;
        for (; at > 0 && w.few[at - 1].slot > own.slot; at--)
            w.few[at] = w.few[at - 1];
        w.few[at] = own;
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
        n > INT64_MAX || gap > 4 * HISTOGRAM_SLOT_END)
        return NULL;
    int64_t next = *slot == INT32_MIN ? varint_unzigzag(gap) : *slot + 1 + (int64_t)gap;
    if (!histogram_has_slot(next))
        return NULL;
    *slot = (int32_t)next;
    *count = (int64_t)n;
    return p;
}

bool histogram_merge(struct histogram *h, struct arena *arena, struct slice packed, int schema)
{
    const uint8_t *p = (const uint8_t *)packed.ptr, *end = packed.len > 0 ? p + packed.len : p;
    int32_t slot = INT32_MIN;
    int64_t count;
    while (p < end) {
        if ((p = next_slot(p, end, &slot, &count)) == NULL)
            return false;
        histogram_add(h, arena, histogram_widen(slot, schema), count);
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
    const int unit = histogram_unit(slot);
    return powers_double(histogram_index(slot, unit), unit);
}

double histogram_begin(int32_t slot, int schema)
{
    const int unit = histogram_unit(slot);
    return powers_double(histogram_index(slot, unit) - width_of(unit, schema), unit);
}

int32_t histogram_widen(int32_t slot, int schema)
{
    const int unit = histogram_unit(slot), to = schema > HISTOGRAM_SCHEMA ? schema : HISTOGRAM_SCHEMA;
    if (schema >= unit || slot == 0)
        return slot;
    int32_t nth = histogram_index(slot, schema) * width_of(to, schema) + histogram_nth_of_one(to);
    if (nth > HISTOGRAM_NTHS(to) - 1)
        nth = HISTOGRAM_NTHS(to) - 1;
    return histogram_slot_of_nth(slot < 0 ? -nth : nth, to);
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
    const int32_t nth = slot - l->first;
    *least = ((int128)l->last[nth - 1] + 1) * unit;
    *most = (int128)l->last[nth] * unit;
}

int128 histogram_value(const struct histogram_layout *l, int32_t slot)
{
    int128 least, most;
    if (slot < 0)
        return -histogram_value(l, -slot);
    if (slot == 0)
        return 0;
    bounds_of(l, slot, &least, &most);
    const int128 middle = middle_of(l, histogram_index(slot, l->schema));
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
