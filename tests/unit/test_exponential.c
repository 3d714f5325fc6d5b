/* Numbers that come as a distribution fall in the slots in which they fall one by one, whatever its scale. */
#include "aggregate/exponential.h"
#include "tests/support/distributions.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static const struct histogram_layout *layout(void)
{
    return histogram_layout(EVENT_SCALE);
}

static void assert_same(const struct histogram *a, const struct histogram *b)
{
    struct text one = {0}, two = {0};
    histogram_pack(a, &one);
    histogram_pack(b, &two);
    assert_true(slice_equal(text_slice(&one), text_slice(&two)));
    text_fini(&one);
    text_fini(&two);
}

/* The index of the bucket of a number above 0, as the data model of OpenTelemetry defines it. */
static int64_t index_of(int64_t number, int scale)
{
    return (int64_t)ceill(log2l((long double)number / EVENT_SCALE) * exp2l(scale)) - 1;
}

static void test_numbers_of_narrow_buckets_are_exact(void **state)
{
    struct dice d = dice_new("exponential");
    struct histogram one_by_one = {0}, at_once = {0};
    struct arena arena;
    (void)state;
    arena_init(&arena, 1 << 16);
    for (int i = 0; i < 30000; i++) {
        const int scale =
            HISTOGRAM_SCHEMA + (int)dice_roll(&d, DISTRIBUTION_SCALE_MAX - HISTOGRAM_SCHEMA + 1);
        const int64_t sign = dice_roll(&d, 4) > 0 ? 1 : -1, count = 1 + dice_roll(&d, 9);
        const int64_t size = dice_roll(&d, 20) == 0 ? (int64_t)EVENT_SCALE << dice_roll(&d, 20)
                                                    : 1 + dice_roll(&d, INT64_C(1) << dice_roll(&d, 50));
        histogram_add(&one_by_one, &arena, histogram_slot(layout(), sign * size), count);
        exponential_add(&at_once, &arena, layout(),
                        distribution_of(&arena, scale, sign > 0 ? DISTRIBUTION_ABOVE_0 : DISTRIBUTION_BELOW_0,
                                        index_of(size, scale), (uint64_t)count));
        assert_same(&one_by_one, &at_once);
    }
    arena_fini(&arena);
}

/* The slot of a number of a bucket, by the definition: the k-th of n lies at (k + 1/2) / n of it. */
static int32_t slot_of(int64_t index, int scale, int64_t k, int64_t n)
{
    const int64_t parts = INT64_C(1) << (HISTOGRAM_SCHEMA - scale);
    return histogram_slot_of_index(layout(), index * parts + (2 * k + 1) * parts / (2 * n) + 1);
}

static void test_numbers_of_wide_buckets_are_spread(void **state)
{
    struct dice d = dice_new("spread");
    struct arena arena;
    (void)state;
    arena_init(&arena, 1 << 16);
    for (int round = 0; round < 3000; round++) {
        const int scale =
            DISTRIBUTION_SCALE_MIN + (int)dice_roll(&d, HISTOGRAM_SCHEMA - DISTRIBUTION_SCALE_MIN);
        const int64_t index =
            (dice_roll(&d, 80) - 40) * (scale > 0 ? INT64_C(1) << scale : 1) >> (scale < 0 ? -scale : 0);
        const int64_t n = dice_roll(&d, 2) > 0 ? 1 + dice_roll(&d, 40) : INT64_C(1) << dice_roll(&d, 14);
        struct histogram naive = {0}, got = {0};
        for (int64_t k = 0; k < n; k++)
            histogram_add(&naive, &arena, -slot_of(index, scale, k, n), 1);
        exponential_add(&got, &arena, layout(),
                        distribution_of(&arena, scale, DISTRIBUTION_BELOW_0, index, (uint64_t)n));
        assert_same(&naive, &got);
    }
    arena_fini(&arena);
}

static void test_each_slot_has_its_own_index(void **state)
{
    const struct histogram_layout *l = layout();
    (void)state;
    for (int64_t index = HISTOGRAM_INDEX_MIN - 2; index < HISTOGRAM_INDEX_MAX + 2; index++) {
        const int32_t slot = histogram_slot_of_index(l, index);
        const long double middle =
            roundl(EVENT_SCALE * exp2l(((long double)index - 0.5L) / HISTOGRAM_OCTAVE));
        assert_int_equal(slot,
                         histogram_slot(l, middle < (long double)INT64_MAX ? (int64_t)middle : INT64_MAX));
    }
    assert_int_equal(histogram_slot_of_index(l, INT64_MIN), 0);
    assert_int_equal(histogram_slot_of_index(l, INT64_MAX), histogram_slot(l, INT64_MAX));
}

/* However many numbers, the steps are few, and no number is lost. */
static void test_counts_are_kept_at_any_scale(void **state)
{
    struct dice d = dice_new("counts");
    struct arena arena;
    (void)state;
    arena_init(&arena, 1 << 16);
    for (int round = 0; round < 2000; round++) {
        struct histogram h = {0};
        const struct distribution *many = distribution_any(&d, &arena);
        exponential_add(&h, &arena, layout(), many);
        assert_int_equal(histogram_count(&h), many->count);
        if (round % 100 == 0)
            arena_reset(&arena);
    }
    arena_fini(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers_of_narrow_buckets_are_exact),
        cmocka_unit_test(test_numbers_of_wide_buckets_are_spread),
        cmocka_unit_test(test_each_slot_has_its_own_index),
        cmocka_unit_test(test_counts_are_kept_at_any_scale),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
