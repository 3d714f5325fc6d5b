#include "ingest/decode/otlp_buckets.h"

#include "base/protobuf.h"

enum { BUCKETS_OFFSET = 1, BUCKETS_COUNTS = 2 };

/* Reads one side. Its counts may be packed, in one part or several, or come one by one. False: it is
 * broken. */
static bool read_side(struct slice bytes, struct arena *memory, struct distribution_side *side)
{
    struct protobuf_field f;
    uint8_t *counts = arena_add(memory, bytes.len + 1), *end = counts;
    *side = (struct distribution_side){0};
    while (bytes.len > 0) {
        if (!protobuf_take(&bytes, &f))
            return false;
        if (f.number == BUCKETS_COUNTS && f.wire == PROTOBUF_BYTES) {
            memcpy(end, f.bytes.ptr, f.bytes.len);
            end += f.bytes.len;
        } else if (f.number == BUCKETS_COUNTS && f.wire == PROTOBUF_VARINT) {
            end = varint_put(end, f.varint);
        } else if (f.number == BUCKETS_OFFSET && f.wire == PROTOBUF_VARINT) {
            int64_t offset = varint_unzigzag(f.varint);
            if (offset < INT32_MIN || offset > INT32_MAX)
                return false;
            side->offset = (int32_t)offset;
        } else if (f.number <= BUCKETS_COUNTS) {
            return false;
        }
    }
    side->counts = slice_of((const char *)counts, (size_t)(end - counts));
    return true;
}

/* Adds the counts of a side to *sum. */
static enum reject_reason add_up(const struct distribution_side *side, int scale, uint64_t *sum)
{
    struct distribution_walk w = distribution_walk(side);
    int64_t index;
    uint64_t count;
    while (distribution_next(&w, &index, &count)) {
        if (distribution_is_too_large(index, scale))
            return REJECT_NUMBER;
        if (__builtin_add_overflow(*sum, count, sum))
            return REJECT_OTLP;
    }
    return w.p == w.end ? REJECT_COUNT : REJECT_OTLP;
}

enum reject_reason otlp_buckets_read(const struct otlp_buckets *b, struct arena *memory,
                                     struct distribution *d)
{
    const int64_t scale = varint_unzigzag(b->scale);
    uint64_t sum = b->zeros;
    if (b->count > (uint64_t)DISTRIBUTION_COUNT_MAX)
        return REJECT_NUMBER;
    if (scale < DISTRIBUTION_SCALE_MIN || scale > DISTRIBUTION_SCALE_MAX)
        return REJECT_OTLP;
    d->scale = (int)scale;
    for (int i = 0; i < DISTRIBUTION_SIDES; i++) {
        if (!read_side(b->sides[i], memory, &d->sides[i]))
            return REJECT_OTLP;
        enum reject_reason reason = add_up(&d->sides[i], d->scale, &sum);
        if (reason != REJECT_COUNT)
            return reason;
    }
    if (sum != b->count)
        return REJECT_OTLP;
    d->count = (int64_t)b->count;
    d->zeros = (int64_t)b->zeros;
    return REJECT_COUNT;
}
