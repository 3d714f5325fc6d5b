#include "verify/observations.h"

#include "base/mem.h"
#include "base/order.h"
#include "base/varint.h"

#include <math.h>
#include <stdlib.h>
#include <xxhash.h>

#define FIRST_OF_ENTRIES   1
#define FIRST_OF_REGISTERS 2

void observations_fini(struct observations *s)
{
    free(s->list);
    *s = (struct observations){0};
}

void observations_add(struct observations *s, struct observation observation)
{
    s->list = xgrow(s->list, &s->capacity, s->count + 1, sizeof *s->list);
    s->list[s->count++] = observation;
}

uint64_t observation_of_text(struct slice text)
{
    return XXH3_64bits(text.ptr, text.len);
}

static int compare_observations(const void *a, const void *b)
{
    const struct observation *one = a, *two = b;
    int order = order_int64(one->series, two->series);
    return order != 0 ? order : order_int64(one->time, two->time);
}

void observations_sort(struct observations *s)
{
    if (s->count > 0)
        qsort(s->list, s->count, sizeof *s->list, compare_observations);
}

static void put_varint(struct text *out, uint64_t number)
{
    uint8_t bytes[VARINT_BYTES_MAX];
    text_add(out, (const char *)bytes, (size_t)(varint_put(bytes, number) - bytes));
}

/* ---- histograms */

/* Set the greatest number of each slot above 0, in units of 1/scale. */
static void fill_ends(int64_t ends[HISTOGRAM_SLOTS], int64_t scale)
{
    ends[0] = 0;
    for (int slot = 1; slot < HISTOGRAM_SLOTS; slot++) {
        long double end =
            (long double)scale * exp2l((long double)(slot - HISTOGRAM_SLOT_OF_ONE) / HISTOGRAM_OCTAVE);
        ends[slot] = end < (long double)INT64_MAX ? (int64_t)end : INT64_MAX;
    }
}

/* The first slot that ends at the number or above it. */
static int64_t slot_of(const int64_t ends[HISTOGRAM_SLOTS], int64_t number)
{
    uint64_t size = number < 0 ? -(uint64_t)number : (uint64_t)number;
    int64_t below = -1, at = HISTOGRAM_SLOTS - 1;
    while (at - below > 1) {
        int64_t middle = (below + at) / 2;
        if ((uint64_t)ends[middle] >= size)
            at = middle;
        else
            below = middle;
    }
    return number < 0 ? -at : at;
}

static int compare_numbers(const void *a, const void *b)
{
    return order_int64((int64_t) * (const uint64_t *)a, (int64_t) * (const uint64_t *)b);
}

static void pack_numbers(uint64_t *values, size_t count, const int64_t ends[HISTOGRAM_SLOTS],
                         struct text *out)
{
    int64_t before = 0;
    qsort(values, count, sizeof *values, compare_numbers);
    for (size_t i = 0, next; i < count; i = next) {
        const int64_t slot = slot_of(ends, (int64_t)values[i]);
        for (next = i + 1; next < count && slot_of(ends, (int64_t)values[next]) == slot; next++)
            ;
        put_varint(out, i == 0 ? varint_zigzag(slot) : (uint64_t)(slot - before - 1));
        put_varint(out, next - i);
        before = slot;
    }
}

/* ---- distinct counts */

static int compare_hashes(const void *a, const void *b)
{
    const uint64_t one = *(const uint64_t *)a, two = *(const uint64_t *)b;
    return (one > two) - (one < two);
}

/* The number of zeros before the first one of the lowest `bits` bits, plus 1. */
static unsigned rank_of(uint64_t hash, unsigned bits)
{
    unsigned rank = 1;
    while (rank <= bits && (hash >> (bits - rank) & 1) == 0)
        rank++;
    return rank;
}

static void pack_registers(const uint64_t *hashes, size_t count, struct text *out)
{
    const unsigned rest = 64 - DISTINCT_REGISTER_BITS;
    unsigned ranks[DISTINCT_REGISTERS] = {0};
    uint8_t packed[DISTINCT_PACKED_MAX] = {FIRST_OF_REGISTERS};
    for (size_t i = 0; i < count; i++) {
        unsigned *most = &ranks[hashes[i] >> rest], rank = rank_of(hashes[i], rest);
        *most = rank > *most ? rank : *most;
    }
    for (size_t bit = 0; bit < (size_t)6 * DISTINCT_REGISTERS; bit++)
        packed[1 + bit / 8] |= (uint8_t)((ranks[bit / 6] >> bit % 6 & 1) << bit % 8);
    text_add(out, (const char *)packed, sizeof packed);
}

/* Each run of hashes with the same first bits is one entry, with the greatest rank. */
static void pack_texts(uint64_t *hashes, size_t count, struct text *out)
{
    const unsigned rest = 64 - DISTINCT_ENTRY_BITS;
    uint64_t entries[DISTINCT_ENTRIES_MAX];
    size_t entry_count = 0;
    qsort(hashes, count, sizeof *hashes, compare_hashes);
    for (size_t i = 0, next; i < count; i = next) {
        unsigned most = 0;
        for (next = i; next < count && hashes[next] >> rest == hashes[i] >> rest; next++) {
            unsigned rank = rank_of(hashes[next], rest);
            most = rank > most ? rank : most;
        }
        if (entry_count == DISTINCT_ENTRIES_MAX) {
            pack_registers(hashes, count, out);
            return;
        }
        entries[entry_count++] = hashes[i] >> rest << 6 | most;
    }
    text_putc(out, FIRST_OF_ENTRIES);
    for (size_t i = 0; i < entry_count; i++)
        put_varint(out, entries[i] - (i > 0 ? entries[i - 1] : 0));
}

void observations_pack(const struct observations *s, const struct measure *m, int64_t cell_ms,
                       enum span resolution, int64_t from_ms, struct pieces *into)
{
    int64_t ends[HISTOGRAM_SLOTS];
    uint64_t *values = xcalloc(s->count + 1, sizeof *values);
    struct text packed = {0};
    if (m->kind == MEASURE_HISTOGRAM)
        fill_ends(ends, field_scale(m->field));
    for (size_t i = 0, count; i < s->count; i += count) {
        const uint32_t series = s->list[i].series;
        const int64_t bucket_ms = span_floor(resolution, s->list[i].time * cell_ms);
        const int64_t end_ms = span_next(resolution, bucket_ms);
        for (count = 0; i + count < s->count && s->list[i + count].series == series &&
                        s->list[i + count].time * cell_ms < end_ms;
             count++)
            values[count] = s->list[i + count].value;
        if (bucket_ms < from_ms)
            continue;
        text_clear(&packed);
        if (m->kind == MEASURE_HISTOGRAM)
            pack_numbers(values, count, ends, &packed);
        else
            pack_texts(values, count, &packed);
        pieces_add(into, series, bucket_ms, text_slice(&packed));
    }
    text_fini(&packed);
    free(values);
}
