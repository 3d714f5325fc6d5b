#include "store/sqlite/tight.h"

#include "base/bits.h"

#define SHIFT_BITS    4 /* of a histogram */
#define SLOT_BITS     12
#define RANK_BITS     6
#define IS_ENTRIES    1 /* first byte of a packed distinct count (distinct.c) */
#define IS_REGISTERS  2
#define HAS_REGISTERS (DISTINCT_ENTRIES_MAX + 1) /* in place of a number of entries */
#define COUNT_MAX     ((uint64_t)UINT32_MAX)     /* greater ones choose no shift, which is below 32 */
_Static_assert(2 * HISTOGRAM_SLOTS <= 1 << SLOT_BITS, "a slot in zigzag has so many bits");

static unsigned log2_of(uint64_t number)
{
    return 63 - (unsigned)__builtin_clzll(number | 1);
}

/* The shift of the gaps of entries. They are bits of a hash, so they lie evenly. */
static unsigned entry_shift(uint64_t count)
{
    return DISTINCT_ENTRY_BITS - 1 - log2_of(count);
}

/* ---- histograms */

/* The buckets of a histogram, ascending. */
static size_t list_buckets(const struct histogram *h, struct histogram_bucket *to)
{
    size_t count = 0;
    for (uint32_t i = 0; h->counts != NULL && i < h->room; i++) {
        if (h->counts[i] > 0)
            to[count++] = (struct histogram_bucket){h->first + (int32_t)i, h->counts[i]};
    }
    for (size_t i = 0; h->counts == NULL && i < HISTOGRAM_FEW && h->few_counts[i] > 0; i++, count++) {
        size_t at = count;
        for (; at > 0 && to[at - 1].slot > h->few[i]; at--)
            to[at] = to[at - 1];
        to[at] = (struct histogram_bucket){h->few[i], h->few_counts[i]};
    }
    return count;
}

/* One bucket of one event: most series have no more of them in most minutes. */
static size_t put_one_event(int32_t slot, uint8_t *to)
{
    const uint64_t bits = 3 | varint_zigzag(slot) << 2 | (uint64_t)1 << (2 + SLOT_BITS);
    to[0] = (uint8_t)bits;
    to[1] = (uint8_t)(bits >> 8);
    return 2;
}

/* Reads what put_one_event() writes. False: it is something else. */
static inline bool get_one_event(struct slice tight, uint64_t *slot)
{
    if (tight.len != 2)
        return false;
    const uint64_t bits = (uint64_t)(uint8_t)tight.ptr[0] | (uint64_t)(uint8_t)tight.ptr[1] << 8;
    *slot = bits >> 2 & ((1 << SLOT_BITS) - 1);
    return (bits & 3) == 3 && bits >> (2 + SLOT_BITS) == 1;
}

/* Returns false if it has too many buckets, or more bytes than packed ones. */
static bool put_histogram(const struct histogram *h, struct bits_out *b)
{
    struct histogram_bucket list[2 * HISTOGRAM_SLOTS];
    const size_t count = list_buckets(h, list);
    if (count == 0 || count >= TIGHT_OTHER)
        return false;
    const uint64_t first = varint_zigzag(list[0].slot), gaps = count - 1;
    uint64_t packed = varint_size(first), more = 0;
    for (size_t i = 0; i < count; i++) {
        const uint64_t events = (uint64_t)list[i].count;
        packed +=
            varint_size(events) + (i > 0 ? varint_size((uint64_t)(list[i].slot - list[i - 1].slot - 1)) : 0);
        more += events <= COUNT_MAX ? events - 1 : COUNT_MAX;
    }
    b->end = b->p + packed;
    const uint64_t between = (uint64_t)(list[count - 1].slot - list[0].slot) - gaps;
    const unsigned gap_shift = count > 1 ? log2_of(between / gaps) : 0;
    const unsigned count_shift = log2_of(more / count);
    bits_put_gamma(b, count);
    bits_put_gamma(b, count_shift + 1);
    bits_put(b, gap_shift, count > 1 ? SHIFT_BITS : 0);
    bits_put(b, first, SLOT_BITS);
    bits_put_rice(b, (uint64_t)list[0].count - 1, count_shift);
    for (size_t i = 1; i < count; i++) {
        bits_put_rice(b, (uint64_t)(list[i].slot - list[i - 1].slot - 1), gap_shift);
        bits_put_rice(b, (uint64_t)list[i].count - 1, count_shift);
    }
    return true;
}

/* Varints that are not added to a text yet. */
struct varints {
    struct text *to;
    uint8_t bytes[256], *p;
};

static void varints_flush(struct varints *v)
{
    text_add(v->to, (const char *)v->bytes, (size_t)(v->p - v->bytes));
    v->p = v->bytes;
}

static inline void varints_add(struct varints *v, uint64_t number)
{
    v->p = varint_put(v->p, number);
    if (v->p + VARINT_BYTES_MAX > v->bytes + sizeof v->bytes)
        varints_flush(v);
}

static void get_histogram(struct bits_in *b, uint64_t buckets, struct text *packed)
{
    struct varints v = {.to = packed};
    const unsigned count_shift = (unsigned)(bits_get_gamma(b) - 1) & 31;
    const unsigned gap_shift = buckets > 1 ? (unsigned)bits_get(b, SHIFT_BITS) : 0;
    v.p = v.bytes;
    for (uint64_t i = 0; i < buckets && !b->failed; i++) {
        varints_add(&v, i == 0 ? bits_get(b, SLOT_BITS) : bits_get_rice(b, gap_shift));
        varints_add(&v, bits_get_rice(b, count_shift) + 1);
    }
    varints_flush(&v);
}

/* ---- distinct counts */

/* One text. Returns 0 if it takes no fewer bytes than usual. */
static size_t put_one_text(uint32_t entry, uint8_t *to)
{
    const unsigned shift = DISTINCT_ENTRY_BITS - 1, rank = entry & ((1 << RANK_BITS) - 1);
    const uint64_t bits = entry >> RANK_BITS, high = bits >> shift, low = bits & (((uint64_t)1 << shift) - 1);
    const unsigned before = 2 + (unsigned)high + shift, size = (before + rank + 7) / 8;
    if (size > sizeof bits || size > 1 + varint_size(entry))
        return 0;
    const uint64_t all =
        htole64(1 | (uint64_t)2 << high | low << (2 + high) | (uint64_t)1 << (before + rank - 1));
    memcpy(to, &all, sizeof all);
    return size;
}

/* Reads what put_one_text() writes. False: it is something else. */
static inline bool get_one_text(struct slice tight, uint64_t *entry)
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
    *entry = bits << RANK_BITS | rank;
    return (before + rank + 7) / 8 == tight.len;
}

static void put_entries(const struct distinct *d, struct bits_out *b)
{
    uint32_t entries[DISTINCT_ENTRIES_MAX];
    const size_t count = distinct_sort(d, entries);
    const unsigned shift = entry_shift(count);
    uint64_t next = 0, packed = 1;
    for (size_t i = 0; i < count; i++)
        packed += varint_size(entries[i] - (i > 0 ? entries[i - 1] : 0));
    b->end = b->p + packed;
    bits_put_gamma(b, count);
    for (size_t i = 0; i < count; i++) {
        bits_put_rice(b, (entries[i] >> RANK_BITS) - next, shift);
        bits_put_unary(b, (entries[i] & ((1 << RANK_BITS) - 1)) - 1);
        next = (entries[i] >> RANK_BITS) + 1;
    }
}

static void get_entries(struct bits_in *b, uint64_t count, struct text *packed)
{
    const unsigned shift = entry_shift(count);
    struct varints v = {.to = packed};
    uint64_t next = 0, before = 0;
    v.p = v.bytes;
    *v.p++ = IS_ENTRIES;
    for (uint64_t i = 0; i < count && !b->failed; i++) {
        const uint64_t bits = next + bits_get_rice(b, shift);
        const uint64_t entry = (bits << RANK_BITS) + bits_get_unary(b) + 1;
        varints_add(&v, entry - before);
        before = entry;
        next = bits + 1;
    }
    varints_flush(&v);
}

static void put_registers(const uint8_t ranks[DISTINCT_REGISTERS], struct bits_out *b)
{
    uint64_t least = UINT64_MAX, sum = 0;
    for (int i = 0; i < DISTINCT_REGISTERS; i++) {
        least = ranks[i] < least ? ranks[i] : least;
        sum += ranks[i];
    }
    const unsigned shift = sum - least * DISTINCT_REGISTERS > 2 * DISTINCT_REGISTERS;
    b->end = b->p + DISTINCT_PACKED_MAX;
    bits_put_gamma(b, HAS_REGISTERS);
    bits_put(b, least, RANK_BITS);
    bits_put(b, shift, 1);
    for (int i = 0; i < DISTINCT_REGISTERS; i++)
        bits_put_rice(b, ranks[i] - least, shift);
}

static bool get_registers(struct bits_in *b, struct text *packed)
{
    uint8_t bytes[DISTINCT_PACKED_MAX] = {IS_REGISTERS};
    struct bits_out out = {.p = bytes + 1, .end = bytes + sizeof bytes};
    const uint64_t least = bits_get(b, RANK_BITS);
    const unsigned shift = (unsigned)bits_get(b, 1);
    for (int i = 0; i < DISTINCT_REGISTERS && !b->failed; i++) {
        const uint64_t rank = least + bits_get_rice(b, shift);
        if (rank >> RANK_BITS != 0)
            return false;
        bits_put(&out, rank, RANK_BITS);
    }
    text_add(packed, (const char *)bytes, sizeof bytes);
    return true;
}

static bool get_distinct(struct bits_in *b, uint64_t count, struct text *packed)
{
    if (count < HAS_REGISTERS)
        get_entries(b, count, packed);
    return count < HAS_REGISTERS || (count == HAS_REGISTERS && get_registers(b, packed));
}

/* ---- writing */

/* Writes the packed sketch as it is. */
static size_t put_other(enum sketch_kind kind, const union sketch *s, uint8_t *to, struct text *work)
{
    struct bits_out b = {.p = to, .end = to + TIGHT_BYTES_MORE};
    text_clear(work);
    sketch_pack(kind, s, work);
    if (work->len == 0)
        return 0;
    bits_put_gamma(&b, TIGHT_OTHER);
    uint8_t *const end = bits_finish(&b);
    memcpy(end, work->ptr, work->len);
    return (size_t)(end - to) + work->len;
}

size_t tight_put(enum sketch_kind kind, const union sketch *s, uint8_t *to, struct text *work)
{
    struct bits_out b = {.p = to, .end = to};
    bool good = true;
    if (kind == SKETCH_HISTOGRAM) {
        const struct histogram *h = &s->histogram;
        if (h->counts == NULL && h->few_counts[0] == 1 && h->few_counts[1] == 0)
            return put_one_event(h->few[0], to);
        good = put_histogram(h, &b);
    } else if (s->distinct.mask == 0 && s->distinct.count == 1) {
        const size_t size = put_one_text(s->distinct.few[0], to);
        if (size > 0)
            return size;
        put_entries(&s->distinct, &b);
    } else if (s->distinct.mask == DISTINCT_MANY) {
        put_registers(s->distinct.registers, &b);
    } else if (s->distinct.count > 0) {
        put_entries(&s->distinct, &b);
    } else {
        good = false;
    }
    const uint8_t *const end = bits_finish(&b);
    return good && !b.failed ? (size_t)(end - to) : put_other(kind, s, to, work);
}

/* ---- reading into a sketch */

static bool merge_histogram(struct bits_in *b, uint64_t buckets, struct histogram *h, struct arena *arena)
{
    const unsigned count_shift = (unsigned)(bits_get_gamma(b) - 1) & 31;
    const unsigned gap_shift = buckets > 1 ? (unsigned)bits_get(b, SHIFT_BITS) : 0;
    int64_t slot = varint_unzigzag(bits_get(b, SLOT_BITS));
    for (uint64_t i = 0; i < buckets; i++) {
        if (i > 0) {
            const uint64_t gap = bits_get_rice(b, gap_shift);
            slot = gap > 2 * HISTOGRAM_SLOTS ? HISTOGRAM_SLOTS : slot + 1 + (int64_t)gap;
        }
        const uint64_t more = bits_get_rice(b, count_shift);
        if (b->failed || more >= INT64_MAX || slot <= -HISTOGRAM_SLOTS || slot >= HISTOGRAM_SLOTS)
            return false;
        histogram_add(h, arena, (int32_t)slot, (int64_t)more + 1);
    }
    return bits_end(b);
}

static bool merge_entries(struct bits_in *b, uint64_t count, struct distinct *d, struct arena *arena)
{
    const unsigned shift = entry_shift(count);
    uint64_t next = 0;
    for (uint64_t i = 0; i < count; i++) {
        const uint64_t bits = next + bits_get_rice(b, shift), rank = bits_get_unary(b) + 1;
        const uint64_t entry = bits << RANK_BITS | rank;
        if (b->failed || bits >> DISTINCT_ENTRY_BITS != 0 || rank >> RANK_BITS != 0 ||
            !distinct_entry_is_valid(entry))
            return false;
        distinct_add_entry(d, arena, (uint32_t)entry);
        next = bits + 1;
    }
    return bits_end(b);
}

bool tight_merge(enum sketch_kind kind, struct slice tight, union sketch *to, struct arena *arena,
                 struct text *work)
{
    const uint8_t *begin = (const uint8_t *)tight.ptr;
    struct bits_in b = {.p = begin, .end = begin + tight.len};
    uint64_t one;
    if (kind == SKETCH_HISTOGRAM && get_one_event(tight, &one) && one >> 1 < HISTOGRAM_SLOTS - 1) {
        histogram_add(&to->histogram, arena, (int32_t)varint_unzigzag(one), 1);
        return true;
    }
    const uint64_t count = bits_get_gamma(&b);
    if (kind == SKETCH_HISTOGRAM && count < TIGHT_OTHER)
        return merge_histogram(&b, count, &to->histogram, arena);
    if (kind == SKETCH_DISTINCT && count < HAS_REGISTERS)
        return merge_entries(&b, count, &to->distinct, arena);
    text_clear(work);
    return tight_get(kind, tight, work) && sketch_merge(kind, to, arena, text_slice(work));
}

/* ---- reading into bytes */

bool tight_get(enum sketch_kind kind, struct slice tight, struct text *packed)
{
    const uint8_t *begin = (const uint8_t *)tight.ptr;
    struct bits_in b = {.p = begin, .end = begin + tight.len};
    uint8_t packed_one[1 + VARINT_BYTES_MAX], *p = packed_one;
    uint64_t one;
    if (kind == SKETCH_HISTOGRAM ? get_one_event(tight, &one) : get_one_text(tight, &one)) {
        if (kind == SKETCH_DISTINCT)
            *p++ = IS_ENTRIES;
        p = varint_put(p, one);
        if (kind == SKETCH_HISTOGRAM)
            *p++ = 1;
        text_add(packed, (const char *)packed_one, (size_t)(p - packed_one));
        return true;
    }
    const uint64_t count = bits_get_gamma(&b);
    if (count >= TIGHT_OTHER) {
        if (count == TIGHT_OTHER && tight.len > TIGHT_BYTES_MORE)
            text_add(packed, tight.ptr + TIGHT_BYTES_MORE, tight.len - TIGHT_BYTES_MORE);
        return count == TIGHT_OTHER;
    }
    if (kind == SKETCH_DISTINCT)
        return get_distinct(&b, count, packed) && bits_end(&b);
    get_histogram(&b, count, packed);
    return bits_end(&b);
}
