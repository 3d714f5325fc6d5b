#include "aggregate/distinct.h"

#include "base/varint.h"

#include <math.h>
#include <string.h>

#define PLACES_MIN      16
#define IS_ENTRIES      1
#define IS_REGISTERS    2
#define SORT_FEW        24 /* entries that are sorted by insertion alone */
#define SORT_BITS       8
#define ENTRY_BYTES_MAX 5          /* of 32 bits, as a varint */
#define JOINED          UINT64_MAX /* follows the last entry */
/* Bits of an entry's 26 that are behind the register's number. */
#define BEHIND_BITS     (DISTINCT_ENTRY_BITS - DISTINCT_REGISTER_BITS)

static void add_to_register(uint8_t registers[DISTINCT_REGISTERS], uint32_t entry)
{
    const uint32_t top = entry >> 6, behind = top & ((1u << BEHIND_BITS) - 1);
    const int rank =
        behind != 0 ? __builtin_clz(behind) - (32 - BEHIND_BITS) + 1 : BEHIND_BITS + (int)(entry & 63);
    uint8_t *to = &registers[top >> BEHIND_BITS];
    *to = rank > *to ? (uint8_t)rank : *to;
}

const uint32_t *distinct_entries(const struct distinct *d, uint32_t *places)
{
    ASSERT(d->mask != DISTINCT_MANY);
    *places = d->mask > 0 ? d->mask + 1 : d->count;
    return d->mask > 0 ? d->entries : d->few;
}

void distinct_ranks(const struct distinct *d, uint8_t ranks[DISTINCT_REGISTERS])
{
    uint32_t places;
    if (d->mask == DISTINCT_MANY) {
        memcpy(ranks, d->registers, DISTINCT_REGISTERS);
        return;
    }
    const uint32_t *entries = distinct_entries(d, &places);
    memset(ranks, 0, DISTINCT_REGISTERS);
    for (uint32_t i = 0; i < places; i++) {
        if (entries[i] != 0)
            add_to_register(ranks, entries[i]);
    }
}

static void make_registers(struct distinct *d, struct arena *arena)
{
    if (d->mask == DISTINCT_MANY)
        return;
    uint8_t *registers = arena_add(arena, DISTINCT_REGISTERS);
    distinct_ranks(d, registers);
    *d = (struct distinct){.registers = registers, .mask = DISTINCT_MANY};
}

bool distinct_add_register(struct distinct *d, struct arena *arena, int64_t number, int64_t rank)
{
    if (number < 0 || number >= DISTINCT_REGISTERS || rank < 1 || rank > DISTINCT_RANK_MAX)
        return false;
    make_registers(d, arena);
    uint8_t *to = &d->registers[number];
    *to = rank > *to ? (uint8_t)rank : *to;
    return true;
}

/* The place of an entry with the same 26 bits, or the empty one for it. */
static uint32_t *place_of(uint32_t *entries, uint32_t mask, uint32_t entry)
{
    uint32_t at = (entry >> 6) & mask;
    while (entries[at] != 0 && !distinct_same_bits(entries[at], entry))
        at = (at + 1) & mask;
    return &entries[at];
}

static APART void make_places(struct distinct *d, struct arena *arena)
{
    uint32_t had, places = PLACES_MIN;
    const uint32_t *old = distinct_entries(d, &had);
    while (places < had * 2)
        places *= 2;
    uint32_t *entries = arena_add(arena, places * sizeof *entries);
    memset(entries, 0, places * sizeof *entries);
    for (uint32_t i = 0; i < had; i++) {
        if (old[i] != 0)
            *place_of(entries, places - 1, old[i]) = old[i];
    }
    d->entries = entries;
    d->mask = places - 1;
}

void distinct_add_entry(struct distinct *d, struct arena *arena, uint32_t entry)
{
    if (d->mask == DISTINCT_MANY) {
        add_to_register(d->registers, entry);
        return;
    }
    if (d->mask == 0 && distinct_add_few(d, entry))
        return;
    if (d->count * 4 >= (d->mask + 1) * 3)
        make_places(d, arena);
    uint32_t *to = place_of(d->entries, d->mask, entry);
    d->count += *to == 0;
    *to = entry > *to ? entry : *to;
    if (d->count > DISTINCT_ENTRIES_MAX)
        make_registers(d, arena);
}

void distinct_unite(struct distinct *d, struct arena *arena, const struct distinct *other)
{
    uint32_t places;
    if (other->mask == DISTINCT_MANY) {
        make_registers(d, arena);
        for (size_t i = 0; i < DISTINCT_REGISTERS; i++)
            d->registers[i] = other->registers[i] > d->registers[i] ? other->registers[i] : d->registers[i];
        return;
    }
    const uint32_t *entries = distinct_entries(other, &places);
    for (uint32_t i = 0; i < places; i++) {
        if (entries[i] != 0)
            distinct_add_entry(d, arena, entries[i]);
    }
}

static void sort_by_insertion(uint32_t *entries, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        const uint32_t entry = entries[i];
        size_t at = i;
        for (; at > 0 && entries[at - 1] > entry; at--)
            entries[at] = entries[at - 1];
        entries[at] = entry;
    }
}

/* Sorts entries, ascending, by way of a copy that has them in the order of their highest bits: entries are
 * bits of a hash, so a few have the same ones. Returns the one of the two places that has them. */
static uint32_t *sort_entries(uint32_t *entries, size_t count, uint32_t *copy)
{
    uint16_t ends[1 << SORT_BITS] = {0};
    if (count <= SORT_FEW) {
        sort_by_insertion(entries, count);
        return entries;
    }
    ASSERT(count <= UINT16_MAX);
    for (size_t i = 0; i < count; i++)
        ends[entries[i] >> (32 - SORT_BITS)]++;
    for (size_t i = 1; i < (size_t)1 << SORT_BITS; i++)
        ends[i] = (uint16_t)(ends[i] + ends[i - 1]);
    for (size_t i = 0; i < count; i++)
        copy[--ends[entries[i] >> (32 - SORT_BITS)]] = entries[i];
    sort_by_insertion(copy, count);
    return copy;
}

static bool is_list(const struct distinct *d)
{
    return d->mask > 0 && d->mask + 1 == d->count;
}

size_t distinct_list(const struct distinct *d, uint32_t *to)
{
    uint32_t places;
    const uint32_t *entries = distinct_entries(d, &places);
    size_t count = 0;
    if (places == d->count) { /* none is empty */
        for (; count < places; count++)
            to[count] = entries[count];
        return count;
    }
    for (uint32_t i = 0; i < places; i++) {
        to[count] = entries[i];
        count += entries[i] != 0;
        if (count == d->count)
            break;
    }
    return count;
}

size_t distinct_sort(const struct distinct *d, uint32_t sorted[DISTINCT_ENTRIES_MAX])
{
    uint32_t found[DISTINCT_ENTRIES_MAX];
    if (d->count <= SORT_FEW || is_list(d)) {
        const size_t count = distinct_list(d, sorted);
        if (!is_list(d))
            sort_by_insertion(sorted, count);
        return count;
    }
    const size_t count = distinct_list(d, found);
    (void)sort_entries(found, count, sorted);
    return count;
}

void distinct_add_list(struct distinct *d, struct arena *arena, uint32_t *entries, uint32_t *scratch,
                       size_t count)
{
    ASSERT(d->mask == 0 && d->count == 0);
    const uint32_t *sorted = sort_entries(entries, count, scratch);
    uint32_t *const kept = entries;
    size_t n = 0;
    for (size_t i = 0; i < count; i++) { /* of the same bits, the greater rank comes last */
        n -= n > 0 && kept[n - 1] >> 6 == sorted[i] >> 6;
        kept[n++] = sorted[i];
    }
    if (n > DISTINCT_ENTRIES_MAX) {
        make_registers(d, arena);
        for (size_t i = 0; i < n; i++)
            add_to_register(d->registers, kept[i]);
        return;
    }
    d->count = (uint32_t)n;
    uint32_t *to = d->few;
    if (n > DISTINCT_FEW) {
        to = d->entries = arena_add(arena, n * sizeof *d->entries);
        d->mask = (uint32_t)n - 1;
    }
    for (size_t i = 0; i < n; i++)
        to[i] = kept[i];
}

/* Pre: they are ascending, and up to DISTINCT_ENTRIES_MAX. */
static void put_entries(const uint32_t *entries, size_t count, struct text *out)
{
    uint8_t bytes[1 + DISTINCT_ENTRIES_MAX * ENTRY_BYTES_MAX], *p = bytes;
    uint32_t before = 0;
    *p++ = IS_ENTRIES;
    for (size_t i = 0; i < count; i++) {
        p = varint_put(p, entries[i] - before);
        before = entries[i];
    }
    text_add(out, (const char *)bytes, (size_t)(p - bytes));
}

static void pack_entries(const struct distinct *d, struct text *out)
{
    uint32_t sorted[DISTINCT_ENTRIES_MAX];
    put_entries(sorted, distinct_sort(d, sorted), out);
}

static void pack_registers(const struct distinct *d, struct text *out)
{
    text_putc(out, IS_REGISTERS);
    for (size_t i = 0; i < DISTINCT_REGISTERS; i += 4) {
        const uint8_t *r = &d->registers[i];
        const uint32_t four = (uint32_t)(r[0] | r[1] << 6 | r[2] << 12 | r[3] << 18);
        const char bytes[3] = {(char)four, (char)(four >> 8), (char)(four >> 16)};
        text_add(out, bytes, sizeof bytes);
    }
}

void distinct_pack(const struct distinct *d, struct text *out)
{
    if (d->mask == DISTINCT_MANY)
        pack_registers(d, out);
    else if (d->count > 0)
        pack_entries(d, out);
}

/* Reads the entry behind *entry, which is 0 at first. NULL: it is damaged. */
static const uint8_t *next_entry(const uint8_t *p, const uint8_t *end, uint64_t *entry)
{
    uint64_t gap;
    if ((p = varint_get(p, end, &gap)) == NULL || gap == 0 || gap > UINT32_MAX - *entry)
        return NULL;
    *entry += gap;
    return distinct_entry_is_valid(*entry) ? p : NULL;
}

static bool merge_entries(struct distinct *d, struct arena *arena, const uint8_t *p, const uint8_t *end)
{
    uint64_t entry = 0;
    for (size_t count = 0; p < end; count++) {
        if (count == DISTINCT_ENTRIES_MAX || (p = next_entry(p, end, &entry)) == NULL)
            return false;
        distinct_add_entry(d, arena, (uint32_t)entry);
    }
    return true;
}

static bool merge_registers(struct distinct *d, struct arena *arena, const uint8_t *p)
{
    make_registers(d, arena);
    for (size_t i = 0; i < DISTINCT_REGISTERS; i++) {
        const uint8_t *three = p + i / 4 * 3;
        const uint32_t four = (uint32_t)(three[0] | three[1] << 8 | three[2] << 16);
        const uint8_t rank = (four >> (i % 4 * 6)) & 63;
        if (rank > DISTINCT_RANK_MAX)
            return false;
        d->registers[i] = rank > d->registers[i] ? rank : d->registers[i];
    }
    return true;
}

bool distinct_merge(struct distinct *d, struct arena *arena, struct slice packed)
{
    const uint8_t *p = (const uint8_t *)packed.ptr;
    if (packed.len == 0)
        return true;
    if (p[0] == IS_ENTRIES && packed.len > 1)
        return merge_entries(d, arena, p + 1, p + packed.len);
    return p[0] == IS_REGISTERS && packed.len == DISTINCT_PACKED_MAX && merge_registers(d, arena, p + 1);
}

bool distinct_join(struct slice a, struct slice b, struct text *out)
{
    uint32_t joined[DISTINCT_ENTRIES_MAX];
    uint64_t entry[] = {0, 0};
    size_t count = 0;
    if (a.len < 2 || b.len < 2 || a.ptr[0] != IS_ENTRIES || b.ptr[0] != IS_ENTRIES)
        return false;
    const uint8_t *p[] = {(const uint8_t *)a.ptr + 1, (const uint8_t *)b.ptr + 1};
    const uint8_t *const end[] = {(const uint8_t *)a.ptr + a.len, (const uint8_t *)b.ptr + b.len};
    for (int k = 0; k < 2; k++) {
        if ((p[k] = next_entry(p[k], end[k], &entry[k])) == NULL)
            return false;
    }
    while (entry[0] != JOINED || entry[1] != JOINED) {
        const int k = entry[0] < entry[1] ? 0 : 1;
        const bool is_same = count > 0 && joined[count - 1] >> 6 == entry[k] >> 6;
        if (!is_same && count == DISTINCT_ENTRIES_MAX)
            return false;
        count += !is_same;
        joined[count - 1] = (uint32_t)entry[k]; /* of the same bits, the greater rank comes last */
        if (p[k] == end[k])
            entry[k] = JOINED;
        else if ((p[k] = next_entry(p[k], end[k], &entry[k])) == NULL)
            return false;
    }
    put_entries(joined, count, out);
    return true;
}

/* Sum over k of x^(2^k) × 2^(k-1), plus x, for the registers that are zero. */
static double sigma(double x)
{
    double y = 1, sum = x, before = -1;
    if (x == 1)
        return INFINITY;
    while (sum != before) {
        x *= x;
        before = sum;
        sum += x * y;
        y += y;
    }
    return sum;
}

/* The same idea for the registers at DISTINCT_RANK_MAX. */
static double tau(double x)
{
    double y = 1, sum = 1 - x, before = -1;
    if (x == 0 || x == 1)
        return 0;
    while (sum != before) {
        x = sqrt(x);
        before = sum;
        y /= 2;
        sum -= (1 - x) * (1 - x) * y;
    }
    return sum / 3;
}

int64_t distinct_count(const struct distinct *d)
{
    const double m = DISTINCT_REGISTERS;
    int64_t ranks[DISTINCT_RANK_MAX + 1] = {0};
    if (d->mask != DISTINCT_MANY)
        return d->count;
    for (size_t i = 0; i < DISTINCT_REGISTERS; i++)
        ranks[d->registers[i]]++;
    double z = m * tau(1 - (double)ranks[DISTINCT_RANK_MAX] / m);
    for (int rank = DISTINCT_RANK_MAX - 1; rank >= 1; rank--)
        z = (z + (double)ranks[rank]) / 2;
    z += m * sigma((double)ranks[0] / m);
    return (int64_t)llround(m * m / (2 * M_LN2 * z));
}
