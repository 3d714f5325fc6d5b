/* Numbers that come as a distribution fall in the slots in which they fall one by one, whatever its scale. */
#include "aggregate/exponential.h"
#include "tests/support/distributions.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static const struct histogram_layout *any_layout(struct dice *d)
{
    const int schema =
        HISTOGRAM_SCHEMA_MIN + (int)dice_roll(d, HISTOGRAM_SCHEMA_MAX - HISTOGRAM_SCHEMA_MIN + 1);
    return histogram_layout(EVENT_SCALE, dice_roll(d, 2) > 0 ? schema : HISTOGRAM_SCHEMA,
                            dice_roll(d, 3) > 0 ? 0 : dice_roll(d, 5000000));
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
    struct arena arena;
    (void)state;
    arena_init(&arena, 1 << 16);
    for (int i = 0; i < 30000; i++) {
        struct histogram one_by_one = {0}, at_once = {0};
        const struct histogram_layout *l = any_layout(&d);
        const int scale = l->schema + (int)dice_roll(&d, DISTRIBUTION_SCALE_MAX - l->schema + 1);
        const int64_t sign = dice_roll(&d, 4) > 0 ? 1 : -1, count = 1 + dice_roll(&d, 9);
        const int64_t size = dice_roll(&d, 20) == 0 ? (int64_t)EVENT_SCALE << dice_roll(&d, 20)
                                                    : 1 + dice_roll(&d, INT64_C(1) << dice_roll(&d, 50));
        histogram_add(&one_by_one, &arena, histogram_slot(l, sign * size), count);
        exponential_add(&at_once, &arena, l,
                        distribution_of(&arena, scale, sign > 0 ? DISTRIBUTION_ABOVE_0 : DISTRIBUTION_BELOW_0,
                                        index_of(size, scale), (uint64_t)count));
        if (size > l->zero || index_of(size, l->schema) != index_of(l->zero + 1, l->schema))
            assert_same(&one_by_one, &at_once); /* else its bucket also has greater numbers than the limit */
        if (i % 1000 == 0)
            arena_reset(&arena);
    }
    arena_fini(&arena);
}

/* The slot of a number of a bucket, by the definition: the k-th of n lies at (k + 1/2) / n of it. */
static int32_t slot_of(const struct histogram_layout *l, int64_t index, int scale, int64_t k, int64_t n)
{
    const int64_t parts = INT64_C(1) << (l->schema - scale);
    return histogram_slot_of_index(l, (index * parts + (2 * k + 1) * parts / (2 * n) + 1));
}

static void test_numbers_of_wide_buckets_are_spread(void **state)
{
    struct dice d = dice_new("spread");
    struct arena arena;
    (void)state;
    arena_init(&arena, 1 << 16);
    for (int round = 0; round < 3000; round++) {
        const struct histogram_layout *l = any_layout(&d);
        const int scale = DISTRIBUTION_SCALE_MIN + (int)dice_roll(&d, l->schema - DISTRIBUTION_SCALE_MIN);
        const int64_t index =
            (dice_roll(&d, 80) - 40) * (scale > 0 ? INT64_C(1) << scale : 1) >> (scale < 0 ? -scale : 0);
        const int64_t n = dice_roll(&d, 2) > 0 ? 1 + dice_roll(&d, 40) : INT64_C(1) << dice_roll(&d, 14);
        struct histogram naive = {0}, got = {0};
        for (int64_t k = 0; k < n; k++)
            histogram_add(&naive, &arena, -slot_of(l, index, scale, k, n), 1);
        exponential_add(&got, &arena, l,
                        distribution_of(&arena, scale, DISTRIBUTION_BELOW_0, index, (uint64_t)n));
        assert_same(&naive, &got);
    }
    arena_fini(&arena);
}

static void test_each_slot_has_its_own_index(void **state)
{
    (void)state;
    for (int schema = HISTOGRAM_SCHEMA; schema <= HISTOGRAM_SCHEMA_MAX; schema++) {
        const struct histogram_layout *l = histogram_layout(EVENT_SCALE, schema, 0);
        for (int64_t index = histogram_index_min(l) + 1; index < histogram_index_max(l) + 2; index++) {
            const int32_t slot = histogram_slot_of_index(l, index);
            const long double middle =
                roundl(EVENT_SCALE * exp2l(ldexpl((long double)index - 0.5L, -schema)));
            assert_int_equal(
                slot, histogram_slot(l, middle < (long double)INT64_MAX ? (int64_t)middle : INT64_MAX));
        }
        assert_int_equal(histogram_slot_of_index(l, INT64_MIN), 0);
        assert_int_equal(histogram_slot_of_index(l, INT64_MAX), histogram_slot(l, INT64_MAX));
    }
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
        exponential_add(&h, &arena, any_layout(&d), many);
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
