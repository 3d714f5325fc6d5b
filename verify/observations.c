#include "verify/observations.h"

#include "aggregate/powers.h"
#include "base/mem.h"
#include "base/order.h"
#include "base/varint.h"

#include <stdlib.h>
#include <xxhash.h>

/* The octaves that a distribution may have: 2^-22 is less than half a millionth, and 2^44 millions are no
 * int64. */
#define OCTAVE_OF_NONE     (-22)
#define OCTAVE_OF_LAST     44
/* Slots are numbered by buckets of this schema, if a histogram has no narrower ones. */
#define SLOTS_UNIT         4
#define OCTAVES_BELOW      20 /* octaves of slots below 1, and above it */
#define OCTAVES_ABOVE      63
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

/* The greatest number of each slot from 0 on, in units of the field; it is that of the slot before if no
 * bucket ends there. */
struct ends {
    int unit;      /* the schema by which slots are numbered: 4, or a higher one */
    int32_t count; /* 20 octaves below 1, 63 above */
    int64_t *list; /* owned */
};

/* The ends of a histogram's slots, in time buckets of a resolution. */
static struct ends make_ends(const struct measure *m, enum span resolution)
{
    const int schema = m->layouts[resolution]->schema, unit = schema > SLOTS_UNIT ? schema : SLOTS_UNIT;
    struct ends e = {unit, (OCTAVES_BELOW + OCTAVES_ABOVE) << unit, NULL};
    e.list = xcalloc((size_t)e.count, sizeof *e.list);
    e.list[0] = m->layout->zero;
    for (int32_t i = 1; i < e.count; i++) {
        const int32_t index = i + 1 - (OCTAVES_BELOW << unit);
        const int64_t end = powers_floor(index, unit, field_scale(m->field));
        e.list[i] = e.list[i - 1];
        if ((schema >= unit || index % (1 << (unit - schema)) == 0) && end > e.list[i])
            e.list[i] = end;
    }
    return e;
}

/* The first slot that ends at the number or above it. Slots of a unit above SLOTS_UNIT begin at
 * 2^(unit + 7). */
static int64_t slot_of(const struct ends *e, int64_t number)
{
    const uint64_t size = number < 0 ? -(uint64_t)number : (uint64_t)number;
    int64_t below = -1, at = e->count - 1;
    while (at - below > 1) {
        int64_t middle = (below + at) / 2;
        if ((uint64_t)e->list[middle] >= size)
            at = middle;
        else
            below = middle;
    }
    if (at > 0 && e->unit > SLOTS_UNIT)
        at += (int64_t)1 << (e->unit + 7);
    return number < 0 ? -at : at;
}

/* A value, or the slot of a number, and how often it came. */
struct tally {
    uint64_t value, count;
};

static int compare_slots(const void *a, const void *b)
{
    return order_int64((int64_t)((const struct tally *)a)->value, (int64_t)((const struct tally *)b)->value);
}

static void pack_numbers(struct tally *numbers, size_t count, const struct ends *ends, struct text *out)
{
    int64_t before = 0;
    for (size_t i = 0; i < count; i++)
        numbers[i].value = (uint64_t)slot_of(ends, (int64_t)numbers[i].value);
    qsort(numbers, count, sizeof *numbers, compare_slots);
    for (size_t i = 0, next; i < count; i = next) {
        const int64_t slot = (int64_t)numbers[i].value;
        uint64_t sum = 0;
        for (next = i; next < count && (int64_t)numbers[next].value == slot; next++)
            sum += numbers[next].count;
        put_varint(out, i == 0 ? varint_zigzag(slot) : (uint64_t)(slot - before - 1));
        put_varint(out, sum);
        before = slot;
    }
}

/* ---- distributions */

/* A number of EVENT_SCALE in the bucket of an index of the schema; if it has none, its middle, rounded. */
static int64_t number_of(const struct measure *m, int64_t index)
{
    const int schema = m->layout->schema;
    const int64_t below = powers_floor(index - 1, schema, EVENT_SCALE);
    const int64_t end = powers_floor(index, schema, EVENT_SCALE);
    return end > below || end == INT64_MAX ? end
                                           : (int64_t)powers_round(2 * index - 1, schema + 1, EVENT_SCALE);
}

/* The index of the bucket that ends with an octave, or of the last one before that. */
static int64_t index_of_octave(int octave, int schema)
{
    return schema >= 0 ? octave * ((int64_t)1 << schema) : octave >> -schema;
}

static int64_t divide_up(int64_t number, int64_t by)
{
    return number > 0 ? (number + by - 1) / by : 0;
}

static int64_t divide_down(int64_t number, int64_t by)
{
    return number / by - (number % by < 0);
}

/* Adds the `count` numbers of a bucket of a distribution. A bucket that is wider than the histogram's
 * consists of `parts` of them. The k-th number is within the first j of them if (k + 1/2) / count is below
 * j / parts. */
static void add_bucket(struct observations *s, struct observation one, const struct measure *m, int64_t index,
                       int64_t count, int scale, int sign)
{
    const int schema = m->layout->schema;
    const int64_t narrower = scale > schema ? (int64_t)1 << (scale - schema) : 1;
    const int64_t parts = scale < schema ? (int64_t)1 << (schema - scale) : 1;
    const int64_t first = divide_down(index, narrower) * parts;
    const int64_t none = index_of_octave(OCTAVE_OF_NONE, schema);
    const int64_t last = index_of_octave(OCTAVE_OF_LAST, schema) + 1;
    for (int64_t j = 1, done = 0; j <= parts; j++) {
        if (first + j < none) /* numbers before are 0 */
            j = none - first < parts ? none - first : parts;
        if (first + j > last) /* numbers behind are too large */
            j = parts;
        int64_t within = divide_up(2 * count * j - parts, 2 * parts);
        one.count = (uint64_t)(within - done);
        done = within;
        if (one.count == 0)
            continue;
        one.value = (uint64_t)(sign * number_of(m, first + j));
        observations_add(s, one);
    }
}

void observations_add_many(struct observations *s, struct observation one, const struct measure *m,
                           const struct distribution *d)
{
    one.value = 0;
    one.count = (uint64_t)d->zeros;
    if (d->zeros > 0)
        observations_add(s, one);
    for (int side = 0; side < DISTRIBUTION_SIDES; side++) {
        const struct slice counts = d->sides[side].counts;
        const uint8_t *p = (const uint8_t *)counts.ptr, *end = counts.len > 0 ? p + counts.len : p;
        uint64_t count = 0, gap = 0;
        for (int64_t index = d->sides[side].offset; p < end; index++) {
            if (d->sides[side].has_gaps)
                p = varint_get(p, end, &gap);
            index += (int64_t)gap;
            p = varint_get(p, end, &count);
            if (count > 0)
                add_bucket(s, one, m, index, (int64_t)count, d->scale, side == DISTRIBUTION_ABOVE_0 ? 1 : -1);
        }
    }
}

/* ---- distinct counts */

static int compare_hashes(const void *a, const void *b)
{
    const uint64_t one = ((const struct tally *)a)->value, two = ((const struct tally *)b)->value;
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

static void pack_registers(const struct tally *hashes, size_t count, struct text *out)
{
    const unsigned rest = 64 - DISTINCT_REGISTER_BITS;
    unsigned ranks[DISTINCT_REGISTERS] = {0};
    uint8_t packed[DISTINCT_PACKED_MAX] = {FIRST_OF_REGISTERS};
    for (size_t i = 0; i < count; i++) {
        unsigned *most = &ranks[hashes[i].value >> rest], rank = rank_of(hashes[i].value, rest);
        *most = rank > *most ? rank : *most;
    }
    for (size_t bit = 0; bit < (size_t)6 * DISTINCT_REGISTERS; bit++)
        packed[1 + bit / 8] |= (uint8_t)((ranks[bit / 6] >> bit % 6 & 1) << bit % 8);
    text_add(out, (const char *)packed, sizeof packed);
}

/* Each run of hashes with the same first bits is one entry, with the greatest rank. */
static void pack_texts(struct tally *hashes, size_t count, struct text *out)
{
    const unsigned rest = 64 - DISTINCT_ENTRY_BITS;
    uint64_t entries[DISTINCT_ENTRIES_MAX];
    size_t entry_count = 0;
    qsort(hashes, count, sizeof *hashes, compare_hashes);
    for (size_t i = 0, next; i < count; i = next) {
        unsigned most = 0;
        for (next = i; next < count && hashes[next].value >> rest == hashes[i].value >> rest; next++) {
            unsigned rank = rank_of(hashes[next].value, rest);
            most = rank > most ? rank : most;
        }
        if (entry_count == DISTINCT_ENTRIES_MAX) {
            pack_registers(hashes, count, out);
            return;
        }
        entries[entry_count++] = hashes[i].value >> rest << 6 | most;
    }
    text_putc(out, FIRST_OF_ENTRIES);
    for (size_t i = 0; i < entry_count; i++)
        put_varint(out, entries[i] - (i > 0 ? entries[i - 1] : 0));
}

void observations_pack(const struct observations *s, const struct measure *m, int64_t cell_ms,
                       enum span resolution, int64_t from_ms, struct pieces *into)
{
    struct ends ends = {0};
    struct tally *values = xcalloc(s->count + 1, sizeof *values);
    struct text packed = {0};
    if (m->kind == MEASURE_HISTOGRAM)
        ends = make_ends(m, resolution);
    for (size_t i = 0, count; i < s->count; i += count) {
        const uint32_t series = s->list[i].series;
        const int64_t bucket_ms = span_floor(resolution, s->list[i].time * cell_ms);
        const int64_t end_ms = span_next(resolution, bucket_ms);
        for (count = 0; i + count < s->count && s->list[i + count].series == series &&
                        s->list[i + count].time * cell_ms < end_ms;
             count++)
            values[count] = (struct tally){s->list[i + count].value, s->list[i + count].count};
        if (bucket_ms < from_ms)
            continue;
        text_clear(&packed);
        if (m->kind == MEASURE_HISTOGRAM)
            pack_numbers(values, count, &ends, &packed);
        else
            pack_texts(values, count, &packed);
        pieces_add(into, series, bucket_ms, text_slice(&packed));
    }
    text_fini(&packed);
    free(ends.list);
    free(values);
}
