#include "store/sqlite/tight.h"

#include "base/bits.h"
#include "base/mem.h"
#include "store/sqlite/tight_one.h"

/* Of a histogram. */
#define SHIFT_BITS    4
#define SLOT_BITS     TIGHT_SLOT_BITS
#define SLOT_ESCAPE   TIGHT_SLOT_ESCAPE
#define SHIFT_MAX     15
#define FINE_BITS     17 /* of a slot of a schema above 4 */
#define RANK_BITS     TIGHT_RANK_BITS
#define IS_ENTRIES    1 /* first byte of a packed distinct count (distinct.c) */
#define IS_REGISTERS  2
#define HAS_REGISTERS (DISTINCT_ENTRIES_MAX + 1) /* in place of a number of entries */
#define BUCKETS_MAX   (2 * HISTOGRAM_SLOTS - 1)
#define MOST_BUCKETS  128                    /* of most histograms: eight octaves */
#define COUNT_MAX     ((uint64_t)UINT32_MAX) /* greater ones choose no shift, which is below 32 */
_Static_assert(2 * HISTOGRAM_SLOTS <= TIGHT_SLOT_ESCAPE, "a slot in zigzag has so many bits");
_Static_assert(2 * HISTOGRAM_SLOT_END <= 1 << FINE_BITS, "a slot in zigzag has so many bits");
_Static_assert(BUCKETS_MAX < TIGHT_OTHER, "a number of buckets says what it is");

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
    for (uint32_t i = 0; h->counts != NULL && i < histogram_places(h); i++) {
        if (histogram_count_at(h, i) > 0)
            to[count++] = (struct histogram_bucket){histogram_slot_at(h, i), histogram_count_at(h, i)};
    }
    for (uint32_t i = 0; h->counts == NULL && i < HISTOGRAM_FEW && histogram_few_count(h, i) > 0;
         i++, count++) {
        const struct histogram_bucket own = {histogram_few_slot(h, i), histogram_few_count(h, i)};
        size_t at = count;
        for (; at > 0 && to[at - 1].slot > own.slot; at--)
            to[at] = to[at - 1];
        to[at] = own;
    }
    return count;
}

/* The bytes of two numbers as varints. */
static inline size_t two_varints_size(uint64_t a, uint64_t b)
{
    return LIKELY((a | b) < 0x80) ? 2 : varint_size(a) + varint_size(b);
}

/* The gap before a bucket, and its count. */
static inline void put_bucket(struct bits_out *b, uint64_t gap, unsigned gap_shift, uint64_t more,
                              unsigned count_shift)
{
    const uint64_t gap_high = gap >> gap_shift, more_high = more >> count_shift;
    if (LIKELY(gap_high + gap_shift + more_high + count_shift < 31)) { /* at once */
        const unsigned bits = (unsigned)gap_high + 1 + gap_shift;
        const uint64_t first = (uint64_t)1 << gap_high | (gap & (((uint64_t)1 << gap_shift) - 1))
                                                             << (gap_high + 1);
        const uint64_t second = (uint64_t)1 << more_high | (more & (((uint64_t)1 << count_shift) - 1))
                                                               << (more_high + 1);
        bits_put(b, first | second << bits, bits + (unsigned)more_high + 1 + count_shift);
        return;
    }
    bits_put_rice(b, gap, gap_shift);
    bits_put_rice(b, more, count_shift);
}

/* Writing fails if it takes more bytes than packed ones. Pre: count > 0. */
static void put_buckets(const struct histogram_bucket *list, size_t count, struct bits_out *b)
{
    const uint64_t first = varint_zigzag(list[0].slot), gaps = count - 1;
    uint64_t packed = two_varints_size(first, (uint64_t)list[0].count), more = 0;
    for (size_t i = 0; i < count; i++) {
        const uint64_t events = (uint64_t)list[i].count;
        packed += i > 0 ? two_varints_size((uint64_t)(list[i].slot - list[i - 1].slot - 1), events) : 0;
        more += events <= COUNT_MAX ? events - 1 : COUNT_MAX;
    }
    b->end = b->p + packed;
    const uint64_t between = (uint64_t)(list[count - 1].slot - list[0].slot) - gaps;
    const unsigned wide = count > 1 ? log2_of(between / gaps) : 0;
    const unsigned gap_shift = wide < SHIFT_MAX ? wide : SHIFT_MAX;
    const unsigned count_shift = log2_of(more / count);
    bits_put_gamma(b, count);
    bits_put_gamma(b, count_shift + 1);
    bits_put(b, gap_shift, count > 1 ? SHIFT_BITS : 0);
    bits_put(b, first < SLOT_ESCAPE ? first : SLOT_ESCAPE, SLOT_BITS);
    if (first >= SLOT_ESCAPE)
        bits_put(b, first, FINE_BITS);
    bits_put_rice(b, (uint64_t)list[0].count - 1, count_shift);
    for (size_t i = 1; i < count; i++)
        put_bucket(b, (uint64_t)(list[i].slot - list[i - 1].slot - 1), gap_shift, (uint64_t)list[i].count - 1,
                   count_shift);
}

/* The first slot, zigzag. */
static inline uint64_t read_first_slot(struct bits_in *b)
{
    const uint64_t slot = bits_get(b, SLOT_BITS);
    return LIKELY(slot != SLOT_ESCAPE) ? slot : bits_get(b, FINE_BITS);
}

/* A histogram that is being read. */
struct bucket_reader {
    struct bits_in *bits;
    unsigned count_shift, gap_shift;
    int64_t slot; /* of the last bucket */
};

static struct bucket_reader begin_buckets(struct bits_in *b, uint64_t count)
{
    struct bucket_reader r = {.bits = b};
    r.count_shift = (unsigned)(bits_get_gamma(b) - 1) & 31;
    r.gap_shift = count > 1 ? (unsigned)bits_get(b, SHIFT_BITS) : 0;
    r.slot = varint_unzigzag(read_first_slot(b));
    return r;
}

/* False: it is damaged. */
static inline bool read_bucket(struct bucket_reader *r, bool is_first, struct histogram_bucket *bucket)
{
    if (!is_first) {
        const uint64_t gap = bits_get_rice(r->bits, r->gap_shift);
        r->slot = gap > 2 * HISTOGRAM_SLOT_END ? HISTOGRAM_SLOT_END : r->slot + 1 + (int64_t)gap;
    }
    const uint64_t more = bits_get_rice(r->bits, r->count_shift);
    *bucket = (struct histogram_bucket){(int32_t)r->slot, (int64_t)more + 1};
    return !r->bits->failed && more < INT64_MAX && histogram_has_slot(r->slot);
}

/* False: it is damaged. */
static bool read_buckets(struct bits_in *b, uint64_t count, struct histogram_bucket list[BUCKETS_MAX])
{
    struct bucket_reader r = begin_buckets(b, count);
    for (uint64_t i = 0; i < count; i++) {
        if (!read_bucket(&r, i == 0, &list[i]))
            return false;
    }
    return bits_end(b);
}

/* Writes the buckets that are read and those of a histogram. False: they are damaged, or there are none. */
static bool join_buckets(struct bits_in *in, uint64_t count, const struct histogram *h, struct bits_out *out)
{
    struct histogram_bucket old[BUCKETS_MAX], new[BUCKETS_MAX], both[BUCKETS_MAX];
    size_t i = 0, k = 0, n = 0;
    if (histogram_is_fine(h) || !read_buckets(in, count, old))
        return false;
    const size_t more = list_buckets(h, new);
    while (i < count || k < more) {
        if (k == more || (i < count && old[i].slot < new[k].slot)) {
            both[n++] = old[i++];
        } else if (i == count || new[k].slot < old[i].slot) {
            both[n++] = new[k++];
        } else {
            both[n] = old[i++];
            if (__builtin_add_overflow(both[n].count, new[k++].count, &both[n].count))
                both[n].count = INT64_MAX;
            n++;
        }
    }
    put_buckets(both, n, out);
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
        varints_add(&v, i == 0 ? read_first_slot(b) : bits_get_rice(b, gap_shift));
        varints_add(&v, bits_get_rice(b, count_shift) + 1);
    }
    varints_flush(&v);
}

/* ---- distinct counts */

static inline void put_entry(struct bits_out *b, uint64_t gap, unsigned shift, unsigned rank)
{
    const uint64_t high = gap >> shift, low = gap & (((uint64_t)1 << shift) - 1);
    if (LIKELY(high + shift + rank < 32)) { /* at once */
        const unsigned before = (unsigned)high + 1 + shift;
        bits_put(b, (uint64_t)1 << high | low << (high + 1) | (uint64_t)1 << (before + rank - 1),
                 before + rank);
        return;
    }
    bits_put_rice(b, gap, shift);
    bits_put_unary(b, rank - 1);
}

/* Writing fails if it takes more bytes than packed ones. Pre: count > 0. */
static void put_entries(const uint32_t *entries, size_t count, struct bits_out *b)
{
    const unsigned shift = entry_shift(count);
    uint8_t *const begin = b->p;
    uint64_t next = 0, packed = 1;
    uint32_t before = 0;
    b->end = b->p + 1 + count * VARINT_BYTES_MAX;
    bits_put_gamma(b, count);
    for (size_t i = 0; i < count; i++) {
        const uint32_t entry = entries[i];
        packed += varint_size(entry - before);
        put_entry(b, (entry >> RANK_BITS) - next, shift, entry & ((1 << RANK_BITS) - 1));
        next = (entry >> RANK_BITS) + 1;
        before = entry;
    }
    b->end = begin + packed;
    b->failed |= b->p > b->end;
}

/* False: it is damaged. */
static bool read_entries(struct bits_in *b, uint64_t count, uint32_t entries[DISTINCT_ENTRIES_MAX])
{
    const unsigned shift = entry_shift(count);
    uint64_t next = 0;
    for (uint64_t i = 0; i < count; i++) {
        const uint64_t bits = next + bits_get_rice(b, shift), rank = bits_get_unary(b) + 1;
        const uint64_t entry = bits << RANK_BITS | rank;
        if (b->failed || bits >> DISTINCT_ENTRY_BITS != 0 || rank >> RANK_BITS != 0 ||
            !distinct_entry_is_valid(entry))
            return false;
        entries[i] = (uint32_t)entry;
        next = bits + 1;
    }
    return bits_end(b);
}

/* Writes the entries that are read and those of a distinct count. False: they are damaged, or too many. */
static bool join_entries(struct bits_in *in, uint64_t count, const struct distinct *d, struct bits_out *out)
{
    uint32_t old[DISTINCT_ENTRIES_MAX], new[DISTINCT_ENTRIES_MAX], both[2 * DISTINCT_ENTRIES_MAX];
    size_t i = 0, k = 0, n = 0;
    if (!read_entries(in, count, old))
        return false;
    const size_t more = distinct_sort(d, new);
    while (i < count || k < more) {
        const uint32_t entry = k == more || (i < count && old[i] < new[k]) ? old[i++] : new[k++];
        if (n > 0 && both[n - 1] >> RANK_BITS == entry >> RANK_BITS)
            both[n - 1] = entry; /* the greater rank comes last */
        else
            both[n++] = entry;
    }
    if (n > DISTINCT_ENTRIES_MAX)
        return false;
    put_entries(both, n, out);
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
        const uint64_t bits = next + bits_get_rice(b, shift), rank = bits_get_unary(b) + 1;
        const uint64_t entry = bits << RANK_BITS | rank;
        b->failed |= rank >> RANK_BITS != 0; /* it would make another entry */
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

/* False: it is damaged. */
static bool read_registers(struct bits_in *b, uint8_t ranks[DISTINCT_REGISTERS])
{
    const uint64_t least = bits_get(b, RANK_BITS);
    const unsigned shift = (unsigned)bits_get(b, 1);
    for (int i = 0; i < DISTINCT_REGISTERS; i++) {
        const uint64_t rank = least + bits_get_rice(b, shift);
        if (b->failed || rank > DISTINCT_RANK_MAX)
            return false;
        ranks[i] = (uint8_t)rank;
    }
    return bits_end(b);
}

/* Writes the registers that are read and those of a distinct count. False: they are damaged. */
static bool join_registers(struct bits_in *in, const struct distinct *d, struct bits_out *out)
{
    uint8_t ranks[DISTINCT_REGISTERS], more[DISTINCT_REGISTERS];
    if (!read_registers(in, ranks))
        return false;
    distinct_ranks(d, more);
    for (int i = 0; i < DISTINCT_REGISTERS; i++)
        ranks[i] = more[i] > ranks[i] ? more[i] : ranks[i];
    put_registers(ranks, out);
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

static size_t put_list(const struct histogram_bucket *list, size_t count, uint8_t *to)
{
    struct bits_out b = {.p = to, .end = to};
    if (count == 0 || count >= TIGHT_OTHER)
        return 0;
    put_buckets(list, count, &b);
    const uint8_t *const end = bits_finish(&b);
    return b.failed ? 0 : (size_t)(end - to);
}

/* With a small list, since most histograms have few buckets: a stack of ten pages would drive others from the
 * caches. */
static size_t __attribute__((noinline)) put_few_buckets(const struct histogram *h, uint8_t *to)
{
    struct histogram_bucket list[MOST_BUCKETS];
    return put_list(list, list_buckets(h, list), to);
}

static size_t __attribute__((noinline)) put_many_buckets(const struct histogram *h, uint8_t *to)
{
    struct histogram_bucket *list = xmalloc(histogram_places(h) * sizeof *list);
    const size_t len = put_list(list, list_buckets(h, list), to);
    free(list);
    return len;
}

/* Returns 0 if it is empty, or takes more bytes than packed ones. */
static size_t put_histogram(const struct histogram *h, uint8_t *to)
{
    return h->counts == NULL || histogram_places(h) <= MOST_BUCKETS ? put_few_buckets(h, to)
                                                                    : put_many_buckets(h, to);
}

/* The same of a distinct count. */
static size_t put_distinct(const struct distinct *d, uint8_t *to)
{
    struct bits_out b = {.p = to, .end = to};
    uint32_t entries[DISTINCT_ENTRIES_MAX];
    if (d->mask == DISTINCT_MANY) {
        put_registers(d->registers, &b);
    } else {
        const size_t count = distinct_sort(d, entries);
        if (count == 0)
            return 0;
        put_entries(entries, count, &b);
    }
    const uint8_t *const end = bits_finish(&b);
    return b.failed ? 0 : (size_t)(end - to);
}

size_t tight_put(enum sketch_kind kind, const union sketch *s, uint8_t *to, struct text *work)
{
    size_t len = tight_put_one(kind, s, to);
    if (len == 0)
        len = kind == SKETCH_HISTOGRAM ? put_histogram(&s->histogram, to) : put_distinct(&s->distinct, to);
    return len > 0 ? len : put_other(kind, s, to, work);
}

static bool join_distinct(struct bits_in *in, uint64_t count, const struct distinct *d, struct bits_out *out)
{
    if (count == HAS_REGISTERS)
        return join_registers(in, d, out);
    return count < HAS_REGISTERS && d->mask != DISTINCT_MANY && join_entries(in, count, d, out);
}

size_t tight_join(enum sketch_kind kind, struct slice tight, const union sketch *more, uint8_t *to)
{
    const uint8_t *begin = (const uint8_t *)tight.ptr;
    struct bits_in in = {.p = begin, .end = begin + tight.len};
    struct bits_out out = {.p = to, .end = to};
    const uint64_t count = bits_get_gamma(&in);
    const bool good = kind == SKETCH_HISTOGRAM
                          ? count <= BUCKETS_MAX && join_buckets(&in, count, &more->histogram, &out)
                          : join_distinct(&in, count, &more->distinct, &out);
    const uint8_t *const end = bits_finish(&out);
    return good && !out.failed ? (size_t)(end - to) : 0;
}

/* ---- reading into a sketch */

static bool merge_histogram(struct bits_in *b, uint64_t count, struct histogram *h, struct arena *arena)
{
    struct histogram_bucket bucket;
    struct bucket_reader r = begin_buckets(b, count);
    for (uint64_t i = 0; i < count; i++) {
        if (!read_bucket(&r, i == 0, &bucket))
            return false;
        histogram_add(h, arena, bucket.slot, bucket.count);
    }
    return bits_end(b);
}

static bool merge_entries(struct bits_in *b, uint64_t count, struct distinct *d, struct arena *arena)
{
    uint32_t entries[DISTINCT_ENTRIES_MAX];
    if (!read_entries(b, count, entries))
        return false;
    for (uint64_t i = 0; i < count; i++)
        distinct_add_entry(d, arena, entries[i]);
    return true;
}

bool tight_merge(enum sketch_kind kind, struct slice tight, union sketch *to, struct arena *arena,
                 struct text *work)
{
    const uint8_t *begin = (const uint8_t *)tight.ptr;
    struct bits_in b = {.p = begin, .end = begin + tight.len};
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
    if (kind == SKETCH_HISTOGRAM ? tight_get_event(tight, &one) : tight_get_text(tight, &one)) {
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
