#include "tests/support/distributions.h"

#define BUCKETS_MAX 40

struct distribution *distribution_of(struct arena *arena, int scale, enum distribution_sign sign,
                                     int64_t index, uint64_t count)
{
    struct distribution *d = arena_add(arena, sizeof *d);
    uint8_t *counts = arena_add(arena, VARINT_BYTES_MAX);
    *d = (struct distribution){.scale = scale, .count = (int64_t)count};
    const size_t len = (size_t)(varint_put(counts, count) - counts);
    d->sides[sign] = (struct distribution_side){(int32_t)index, slice_of((const char *)counts, len), false};
    return d;
}

/* Counts of any size, many of them 0, with gaps or not; their sum is added to *sum. */
static struct distribution_side any_side(struct dice *d, struct arena *arena, int scale, int64_t *sum)
{
    const int64_t count = dice_roll(d, BUCKETS_MAX), octave = scale > 0 ? INT64_C(1) << scale : 1;
    uint8_t *counts = arena_add(arena, (size_t)2 * VARINT_BYTES_MAX * BUCKETS_MAX), *end = counts;
    const bool has_gaps = dice_roll(d, 2) > 0;
    for (int64_t i = 0; i < count; i++) {
        int64_t one = dice_roll(d, 3) > 0 ? dice_roll(d, INT64_C(1) << dice_roll(d, 33)) : 0;
        if (has_gaps)
            end = varint_put(end, (uint64_t)(dice_roll(d, 4) > 0 ? 0 : dice_roll(d, octave)));
        end = varint_put(end, (uint64_t)one);
        *sum += one;
    }
    return (struct distribution_side){(int32_t)(dice_roll(d, 70 * octave) - 30 * octave),
                                      slice_of((const char *)counts, (size_t)(end - counts)), has_gaps};
}

struct distribution *distribution_any(struct dice *d, struct arena *arena)
{
    struct distribution *made = arena_add(arena, sizeof *made);
    *made =
        (struct distribution){.scale = DISTRIBUTION_SCALE_MIN +
                                       (int)dice_roll(d, DISTRIBUTION_SCALE_MAX - DISTRIBUTION_SCALE_MIN + 1),
                              .zeros = dice_roll(d, 3)};
    made->count = made->zeros;
    for (int i = 0; i < DISTRIBUTION_SIDES; i++)
        made->sides[i] = any_side(d, arena, made->scale, &made->count);
    return made;
}
