/* The buckets of numbers, the bytes of a histogram, and the memory that it takes, of numbers on both sides of
 * zero and of zeros. test_sketch.c says how far its figures are off. */
#include "aggregate/sketch.h"
#include "base/varint.h"
#include "tests/support/dice.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static const int64_t scales[] = {1, EVENT_SCALE};

static size_t below(struct dice *d, size_t n)
{
    return (size_t)dice_roll(d, (int64_t)n);
}

/* What histogram.h says of packed bytes. */
static void pack_naively(const int64_t counts[2 * HISTOGRAM_SLOT_END], struct text *out)
{
    uint8_t bytes[2 * VARINT_BYTES_MAX];
    int32_t before = INT32_MIN;
    for (int32_t slot = 1 - HISTOGRAM_SLOT_END; slot < HISTOGRAM_SLOT_END; slot++) {
        const int64_t count = counts[slot + HISTOGRAM_SLOT_END];
        if (count == 0)
            continue;
        uint8_t *p =
            varint_put(bytes, before == INT32_MIN ? varint_zigzag(slot) : (uint64_t)(slot - before - 1));
        p = varint_put(p, (uint64_t)count);
        text_add(out, (const char *)bytes, (size_t)(p - bytes));
        before = slot;
    }
}

static void test_packed_bytes_are_those_of_sorted_slots(void **state)
{
    struct dice d = dice_new("packed");
    struct arena arena;
    (void)state;
    arena_init(&arena, 4096);
    for (int round = 0; round < 1000; round++) {
        static int64_t counts[2 * HISTOGRAM_SLOT_END];
        struct histogram h = {0};
        struct text packed = {0}, expected = {0};
        const int signs =
            (int)below(&d, 8); /* a bit each: are there numbers above 0, zeros, numbers below? */
        const int unit = HISTOGRAM_SCHEMA + (int)below(&d, 5);
        const int32_t most = HISTOGRAM_NTHS(unit) - 1, middle = 1 + (int32_t)below(&d, (size_t)most),
                      spread = 1 << below(&d, 11);
        memset(counts, 0, sizeof counts);
        for (size_t n = below(&d, 60); n > 0; n--) {
            const int32_t size = middle + (int32_t)dice_roll(&d, spread), sign = 1 - (int32_t)below(&d, 3);
            const int32_t slot = histogram_slot_of_nth(sign * (size < most ? size : most), unit);
            const int64_t count = dice_roll(&d, INT64_MAX) >> (1 + below(&d, 62));
            if ((signs >> (1 - sign) & 1) == 0 || count == 0)
                continue;
            histogram_add(&h, &arena, slot, count / 100 + 1);
            counts[slot + HISTOGRAM_SLOT_END] += count / 100 + 1;
        }
        histogram_pack(&h, &packed);
        pack_naively(counts, &expected);
        assert_true(slice_equal(text_slice(&packed), text_slice(&expected)));
        assert_true(histogram_take(&h, &arena, text_slice(&expected)));
        assert_int_equal(histogram_count(&h), 0);
        text_fini(&packed);
        text_fini(&expected);
        arena_reset(&arena);
    }
    arena_fini(&arena);
}

static void test_each_number_is_in_its_bucket(void **state)
{
    (void)state;
    for (int i = 0; i < 2 * (HISTOGRAM_SCHEMA_MAX - HISTOGRAM_SCHEMA + 1); i++) {
        const int64_t scale = scales[i % 2];
        const int unit = HISTOGRAM_SCHEMA + i / 2, one = histogram_nth_of_one(unit);
        const struct histogram_layout *l = histogram_layout(scale, unit, 0);
        for (int32_t nth = scale == 1 ? one : 1; nth + 1 < HISTOGRAM_NTHS(unit); nth++) {
            const int64_t last = l->last[nth];
            const int32_t slot = histogram_slot_of_nth(nth, unit);
            const double end = exp2(ldexp(nth - one, -unit)) * (double)scale;
            if (last == INT64_MAX)
                break;
            assert_true(fabs((double)last - floor(end)) <= 1 + end * 1e-15);
            if (last > l->last[nth - 1])
                assert_int_equal(histogram_slot(l, last), slot);
            assert_true(histogram_slot(l, last + 1) > slot);
            if (last > 0)
                assert_int_equal(histogram_slot(l, -last), -histogram_slot(l, last));
            assert_true(histogram_has_slot(slot) && histogram_unit(-slot) == unit);
            assert_int_equal(histogram_nth(-slot), -nth);
        }
        assert_int_equal(histogram_slot(l, 0), 0);
        assert_int_equal(histogram_slot(l, INT64_MAX), histogram_slot(l, INT64_MAX - 1));
        assert_int_equal(histogram_slot(l, INT64_MIN), -histogram_slot(l, INT64_MAX));
        assert_false(histogram_has_slot(histogram_slot_of_nth(HISTOGRAM_NTHS(unit), unit)));
    }
}

/* Zeros are normal, as those of responses without a body, and so are numbers on both sides of zero. */
static void test_there_is_no_room_between_zero_and_numbers(void **state)
{
    static const int64_t numbers[] = {0, 6000, 8000, 12000, 16000, 20000};
    const struct histogram_layout *l = histogram_layout(1, HISTOGRAM_SCHEMA, 0);
    (void)state;
    for (size_t zero_at = 0; zero_at < COUNT_OF(numbers); zero_at++) {
        union sketch h = {0}, opposite = {0}, all = {0};
        struct arena arena;
        arena_init(&arena, 64); /* all that is allocated shows */
        for (size_t i = 0; i < COUNT_OF(numbers); i++) {
            const int64_t number = numbers[(i + zero_at) % COUNT_OF(numbers)];
            histogram_add(&h.histogram, &arena, histogram_slot(l, number), 1);
            histogram_add(&opposite.histogram, &arena, histogram_slot(l, -number), 1);
        }
        sketch_unite(SKETCH_HISTOGRAM, &h, &arena, &opposite, HISTOGRAM_SCHEMA_MAX);
        const union sketch *const from[] = {&h, &opposite, &h, &opposite, &h};
        sketch_unite_all(SKETCH_HISTOGRAM, &all, &arena, from, COUNT_OF(from), HISTOGRAM_SCHEMA_MAX);
        assert_int_equal(histogram_count(&all.histogram), 3 * 12 + 2 * 6);
        assert_in_range(arena_bytes(&arena), 1, 8192); /* the slots between would take as much, each time */
        arena_fini(&arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_number_is_in_its_bucket),
        cmocka_unit_test(test_packed_bytes_are_those_of_sorted_slots),
        cmocka_unit_test(test_there_is_no_room_between_zero_and_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
