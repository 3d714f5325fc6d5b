#include "store/sqlite/tight.h"

#include "base/bits.h"
#include "base/varint.h"

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

/* The next bucket of a packed histogram. NULL: there is none, or none that can be written. */
static const uint8_t *next_bucket(const uint8_t *p, const uint8_t *end, uint64_t *gap, uint64_t *count)
{
    if ((p = varint_get(p, end, gap)) == NULL || (p = varint_get(p, end, count)) == NULL ||
        *gap >= 1 << SLOT_BITS || *count == 0)
        return NULL;
    return p;
}

static bool put_histogram(struct bits_out *b, struct slice packed)
{
    const uint8_t *const begin = (const uint8_t *)packed.ptr, *const end = begin + packed.len, *p = begin;
    uint64_t gap, count, buckets = 0, gaps = 0, more = 0;
    for (; p < end; buckets++) {
        if ((p = next_bucket(p, end, &gap, &count)) == NULL)
            return false;
        gaps += buckets > 0 ? gap : 0;
        more += count <= COUNT_MAX ? count - 1 : COUNT_MAX;
    }
    if (buckets == 0 || buckets >= TIGHT_OTHER)
        return false;
    const unsigned gap_shift = buckets > 1 ? log2_of(gaps / (buckets - 1)) : 0;
    const unsigned count_shift = log2_of(more / buckets);
    bits_put_gamma(b, buckets);
    bits_put_gamma(b, count_shift + 1);
    bits_put(b, gap_shift, buckets > 1 ? SHIFT_BITS : 0);
    for (p = begin; p < end;) {
        const bool is_first = p == begin;
        p = next_bucket(p, end, &gap, &count);
        if (is_first)
            bits_put(b, gap, SLOT_BITS);
        else
            bits_put_rice(b, gap, gap_shift);
        bits_put_rice(b, count - 1, count_shift);
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

static bool put_entries(struct bits_out *b, const uint8_t *p, const uint8_t *end)
{
    uint32_t entries[DISTINCT_ENTRIES_MAX];
    uint64_t gap, entry = 0, count = 0, next = 0;
    for (; p < end; entries[count++] = (uint32_t)entry) {
        if (count == DISTINCT_ENTRIES_MAX || (p = varint_get(p, end, &gap)) == NULL || gap > UINT32_MAX)
            return false;
        entry += gap;
        if (!distinct_entry_is_valid(entry) || entry >> RANK_BITS < next)
            return false;
        next = (entry >> RANK_BITS) + 1;
    }
    if (count == 0)
        return false;
    const unsigned shift = entry_shift(count);
    next = 0;
    bits_put_gamma(b, count);
    for (uint64_t i = 0; i < count; i++) {
        bits_put_rice(b, (entries[i] >> RANK_BITS) - next, shift);
        bits_put_unary(b, (entries[i] & ((1 << RANK_BITS) - 1)) - 1);
        next = (entries[i] >> RANK_BITS) + 1;
    }
    return true;
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

static bool put_registers(struct bits_out *b, struct slice packed)
{
    uint8_t ranks[DISTINCT_REGISTERS];
    struct bits_in in = {.p = (const uint8_t *)packed.ptr + 1,
                         .end = (const uint8_t *)packed.ptr + packed.len};
    uint64_t least = UINT64_MAX, sum = 0;
    for (int i = 0; i < DISTINCT_REGISTERS; i++) {
        ranks[i] = (uint8_t)bits_get(&in, RANK_BITS);
        least = ranks[i] < least ? ranks[i] : least;
        sum += ranks[i];
    }
    if (!bits_end(&in))
        return false;
    const unsigned shift = sum - least * DISTINCT_REGISTERS > 2 * DISTINCT_REGISTERS;
    bits_put_gamma(b, HAS_REGISTERS);
    bits_put(b, least, RANK_BITS);
    bits_put(b, shift, 1);
    for (int i = 0; i < DISTINCT_REGISTERS; i++)
        bits_put_rice(b, ranks[i] - least, shift);
    return true;
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

static bool put_distinct(struct bits_out *b, struct slice packed)
{
    const uint8_t *p = (const uint8_t *)packed.ptr;
    if (p[0] == IS_ENTRIES)
        return put_entries(b, p + 1, p + packed.len);
    return p[0] == IS_REGISTERS && put_registers(b, packed);
}

static bool get_distinct(struct bits_in *b, uint64_t count, struct text *packed)
{
    if (count < HAS_REGISTERS)
        get_entries(b, count, packed);
    return count < HAS_REGISTERS || (count == HAS_REGISTERS && get_registers(b, packed));
}

/* ---- either */

size_t tight_put(enum sketch_kind kind, struct slice packed, uint8_t *to)
{
    struct bits_out b = {.p = to, .end = to + packed.len};
    const bool good = kind == SKETCH_HISTOGRAM ? put_histogram(&b, packed) : put_distinct(&b, packed);
    uint8_t *end = bits_finish(&b);
    if (good && !b.failed)
        return (size_t)(end - to);
    b = (struct bits_out){.p = to, .end = to + TIGHT_BYTES_MORE};
    bits_put_gamma(&b, TIGHT_OTHER);
    end = bits_finish(&b);
    memcpy(end, packed.ptr, packed.len);
    return (size_t)(end - to) + packed.len;
}

bool tight_get(enum sketch_kind kind, struct slice tight, struct text *packed)
{
    const uint8_t *begin = (const uint8_t *)tight.ptr;
    struct bits_in b = {.p = begin, .end = begin + tight.len};
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
