#include "ingest/decode/remote_histogram.h"

#include "base/protobuf.h"
#include "ingest/float_text.h"

enum {
    HISTOGRAM_COUNT = 1,
    HISTOGRAM_COUNT_FLOAT = 2,
    HISTOGRAM_SUM = 3,
    HISTOGRAM_SCHEMA = 4,
    HISTOGRAM_ZEROS = 6,
    HISTOGRAM_ZEROS_FLOAT = 7,
    HISTOGRAM_HINT = 14,
    HISTOGRAM_TIME = 15
};
enum { SPAN_OFFSET = 1, SPAN_LENGTH = 2 };

/* Numbers of the fields of a side. */
static const struct remote_side {
    uint64_t spans, deltas, floats;
} sides[DISTRIBUTION_SIDES] = {[DISTRIBUTION_ABOVE_0] = {11, 12, 13}, [DISTRIBUTION_BELOW_0] = {8, 9, 10}};

/* Reads a count of a float histogram. */
static enum reject_reason read_float_count(uint64_t bits, uint64_t *count)
{
    const double number = float_of_bits(bits, false);
    if (!(number >= 0)) /* also NaN */
        return REJECT_REMOTE_WRITE;
    if (number > (double)DISTRIBUTION_COUNT_MAX)
        return REJECT_NUMBER;
    *count = (uint64_t)number;
    return (double)*count == number ? REJECT_COUNT : REJECT_INEXACT;
}

/* Reads a count of the histogram, which is a whole number, or a double. */
static enum reject_reason note_count(const struct protobuf_field *f, uint64_t *count)
{
    const bool is_float = f->number == HISTOGRAM_COUNT_FLOAT || f->number == HISTOGRAM_ZEROS_FLOAT;
    if (f->wire != (is_float ? PROTOBUF_64_BITS : PROTOBUF_VARINT))
        return REJECT_REMOTE_WRITE;
    if (is_float)
        return read_float_count(protobuf_fixed(f), count);
    *count = f->varint;
    return f->varint <= (uint64_t)DISTRIBUTION_COUNT_MAX ? REJECT_COUNT : REJECT_NUMBER;
}

static enum reject_reason note_field(struct remote_histogram *h, const struct protobuf_field *f)
{
    enum protobuf_wire wire = PROTOBUF_VARINT;
    switch (f->number) {
    case HISTOGRAM_COUNT_FLOAT:
    case HISTOGRAM_COUNT:
        h->has_floats = f->number == HISTOGRAM_COUNT_FLOAT;
        return note_count(f, &h->count);
    case HISTOGRAM_ZEROS:
    case HISTOGRAM_ZEROS_FLOAT:
        return note_count(f, &h->zeros);
    case HISTOGRAM_SUM:
        h->sum_bits = protobuf_fixed(f);
        wire = PROTOBUF_64_BITS;
        break;
    case HISTOGRAM_SCHEMA:
        h->schema = varint_unzigzag(f->varint);
        break;
    case HISTOGRAM_HINT:
        h->hint = f->varint;
        break;
    case HISTOGRAM_TIME:
        h->at_ms = (int64_t)f->varint;
        break;
    default:
        return REJECT_COUNT;
    }
    return f->wire == wire ? REJECT_COUNT : REJECT_REMOTE_WRITE;
}

enum reject_reason remote_histogram_read(struct slice bytes, struct remote_histogram *h)
{
    struct slice rest = bytes;
    struct protobuf_field f;
    enum reject_reason found = REJECT_COUNT; /* of a count; broken is worse */
    *h = (struct remote_histogram){.bytes = bytes};
    while (rest.len > 0) {
        if (!protobuf_take(&rest, &f))
            return REJECT_REMOTE_WRITE;
        enum reject_reason reason = note_field(h, &f);
        if (reason == REJECT_REMOTE_WRITE)
            return reason;
        found = reason == REJECT_COUNT ? found : reason;
    }
    bool is_known = (h->schema >= REMOTE_SCHEMA_MIN && h->schema <= REMOTE_SCHEMA_MAX) ||
                    h->schema == REMOTE_SCHEMA_CUSTOM;
    return is_known ? found : REJECT_REMOTE_WRITE;
}

/* ---- the buckets. A cursor goes once through the message, and takes the values of one repeated field. */

struct cursor {
    struct slice rest;   /* of the message */
    struct slice packed; /* what is left of a field that holds several values */
    uint64_t number;
    enum protobuf_wire wire; /* of a value */
};

enum taken { TAKEN_VALUE, TAKEN_END, TAKEN_BROKEN };

static enum taken cursor_take(struct cursor *c, struct protobuf_field *f)
{
    while (c->packed.len == 0) {
        if (c->rest.len == 0)
            return TAKEN_END;
        if (!protobuf_take(&c->rest, f))
            return TAKEN_BROKEN;
        if (f->number != c->number)
            continue;
        if (f->wire == c->wire)
            return TAKEN_VALUE;
        if (f->wire != PROTOBUF_BYTES)
            return TAKEN_BROKEN;
        c->packed = f->bytes;
    }
    f->wire = c->wire;
    return protobuf_take_value(&c->packed, f) ? TAKEN_VALUE : TAKEN_BROKEN;
}

/* Takes the next span that is not empty, and moves *index to its first bucket. */
static enum taken take_span(struct cursor *spans, bool is_first, int64_t *index, uint64_t *length)
{
    struct protobuf_field f;
    for (*length = 0; *length == 0; is_first = false) {
        int64_t offset = 0;
        enum taken what = cursor_take(spans, &f);
        if (what != TAKEN_VALUE)
            return what;
        struct slice rest = f.bytes;
        while (rest.len > 0) {
            if (!protobuf_take(&rest, &f) || (f.number <= SPAN_LENGTH && f.wire != PROTOBUF_VARINT))
                return TAKEN_BROKEN;
            if (f.number == SPAN_OFFSET)
                offset = varint_unzigzag(f.varint);
            if (f.number == SPAN_LENGTH)
                *length = f.varint;
        }
        if (offset <= (is_first ? INT32_MIN : -1) || offset > INT32_MAX || *length > UINT32_MAX)
            return TAKEN_BROKEN;
        *index += offset;
    }
    return TAKEN_VALUE;
}

/* Takes the next count of a side; *before is the one before it. */
static enum reject_reason take_count(struct cursor *counts, bool is_float, int64_t *before, uint64_t *count)
{
    struct protobuf_field f;
    if (cursor_take(counts, &f) != TAKEN_VALUE)
        return REJECT_REMOTE_WRITE;
    if (is_float)
        return read_float_count(protobuf_fixed(&f), count);
    if (__builtin_add_overflow(*before, varint_unzigzag(f.varint), before) || *before < 0)
        return REJECT_REMOTE_WRITE;
    *count = (uint64_t)*before;
    return REJECT_COUNT;
}

/* Writes a bucket that has numbers; *behind is the index behind the one written before. */
static void write_bucket(struct text *out, int64_t index, uint64_t count, int64_t *behind)
{
    uint8_t bytes[2 * VARINT_BYTES_MAX], *end = varint_put(bytes, (uint64_t)(index - *behind));
    end = varint_put(end, count);
    text_add(out, (const char *)bytes, (size_t)(end - bytes));
    *behind = index + 1;
}

/* Reads the buckets of a side, with their counts in `out`, and adds these to *sum. */
static enum reject_reason read_side(const struct remote_histogram *h, enum distribution_sign sign,
                                    struct text *out, struct distribution_side *side, uint64_t *sum)
{
    struct cursor spans = {.rest = h->bytes, .number = sides[sign].spans, .wire = PROTOBUF_BYTES};
    struct cursor counts = {.rest = h->bytes,
                            .number = h->has_floats ? sides[sign].floats : sides[sign].deltas,
                            .wire = h->has_floats ? PROTOBUF_64_BITS : PROTOBUF_VARINT};
    int64_t index = -1, before = 0, behind = 0;
    uint64_t length, count;
    struct protobuf_field f;
    enum taken what;
    for (bool is_first = true; (what = take_span(&spans, is_first, &index, &length)) == TAKEN_VALUE;
         is_first = false) {
        for (; length > 0; length--, index++) {
            enum reject_reason reason = take_count(&counts, h->has_floats, &before, &count);
            if (reason != REJECT_COUNT)
                return reason;
            if (count == 0)
                continue;
            if (distribution_is_too_large(index, (int)h->schema))
                return REJECT_NUMBER;
            if (__builtin_add_overflow(*sum, count, sum))
                return REJECT_REMOTE_WRITE;
            if (out->len == 0)
                side->offset = (int32_t)(behind = index);
            write_bucket(out, index, count, &behind);
        }
    }
    bool is_whole = what == TAKEN_END && cursor_take(&counts, &f) == TAKEN_END;
    return is_whole ? REJECT_COUNT : REJECT_REMOTE_WRITE;
}

enum reject_reason remote_histogram_buckets(const struct remote_histogram *h, struct text *scratch,
                                            struct arena *memory, struct distribution *d)
{
    uint64_t sum = h->zeros;
    *d = (struct distribution){
        .count = (int64_t)h->count, .zeros = (int64_t)h->zeros, .scale = (int)h->schema};
    for (int i = 0; i < DISTRIBUTION_SIDES; i++) {
        struct distribution_side *side = &d->sides[i];
        text_clear(scratch);
        enum reject_reason reason = read_side(h, (enum distribution_sign)i, scratch, side, &sum);
        if (reason != REJECT_COUNT)
            return reason;
        side->has_gaps = true;
        side->counts = arena_copy(memory, text_slice(scratch));
    }
    return sum == h->count ? REJECT_COUNT : REJECT_REMOTE_WRITE;
}
