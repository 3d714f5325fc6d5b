/* The draw of a sample: what it is, how even it is over any sources, and the error that answers tell. */
#include "aggregate/sample.h"
#include "ingest/record.h"
#include "tests/support/dice.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

/* A released draw never changes: stores hold what it drew. The numbers are those of a Python program that was
 * written from sample.h. */
static void test_the_draw_is_fixed(void **state)
{
    static const struct {
        const char *source, *partition;
        int64_t offset, element;
        uint64_t hash;
    } draws[] = {
        {"kafka:access", "0", 0, 0, UINT64_C(0x2C8B62F89D92D82A)},
        {"kafka:access", "1", 0, 0, UINT64_C(0xC53C75E5E6402EA6)},
        {"kafka:access~2", "11", 1234567890123, 7, UINT64_C(0x9C7C80FC037F4076)},
        {"file:4096:00ff", "", 79, 0, UINT64_C(0x9F1CBB3058408C67)},
        {"", "", 1, 1, UINT64_C(0x38CD85770DF4E0A8)},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(draws); i++) {
        uint64_t salt = sample_salt(draws[i].source, draws[i].partition);
        int64_t order = record_order(draws[i].offset, (uint32_t)draws[i].element);
        assert_true(draws[i].hash == sample_mix(salt + sample_mix((uint64_t)order)));
        for (uint32_t n = 1; n <= SAMPLE_MAX; n = n * 3 / 2 + 1)
            assert_int_equal(sample_draws(salt, order, n), draws[i].hash < UINT64_MAX / n);
    }
}

/* A sample draws 1/n of the offsets, at whatever distance they are, within 6 standard errors. Two sources or
 * partitions draw independently. */
static void test_any_source_is_drawn_evenly(void **state)
{
    (void)state;
    struct dice d = dice_new("sample");
    for (int round = 0; round < 60; round++) {
        const uint32_t n = 2 + (uint32_t)dice_roll(&d, round % 2 == 0 ? 5 : 1000);
        const int64_t events = 200000, step = 1 + dice_roll(&d, 300), start = dice_roll(&d, 1LL << 40);
        char source[32], partition[16];
        snprintf(source, sizeof source, "kafka:t%d", (int)dice_roll(&d, 1000));
        snprintf(partition, sizeof partition, "%d", (int)dice_roll(&d, 1000));
        const uint64_t salt = sample_salt(source, partition), other = sample_salt(partition, source);
        int64_t drawn = 0, both = 0;
        for (int64_t i = 0; i < events; i++) {
            int64_t order = record_order(start + i * step, 0);
            drawn += sample_draws(salt, order, n);
            both += sample_draws(salt, order, n) && sample_draws(other, order, n);
        }
        double p = 1.0 / n, found = (double)drawn - p * (double)events;
        assert_true(fabs(found) < 6 * sqrt(p * (1 - p) * (double)events));
        p = p / n;
        assert_true(fabs((double)both - p * (double)events) < 6 * sqrt(p * (double)events) + 6);
    }
}

/* Over many sources, the true count lies within one error of the estimate about as often as a normal error
 * does, and within two. */
static void test_the_error_is_that_of_the_estimates(void **state)
{
    (void)state;
    struct dice d = dice_new("error");
    const int64_t events = 20000;
    const int rounds = 400;
    const uint32_t n = 100;
    int within_one = 0, within_two = 0;
    for (int round = 0; round < rounds; round++) {
        char source[32];
        snprintf(source, sizeof source, "file:4096:%llx", (unsigned long long)dice_roll(&d, INT64_MAX));
        const uint64_t salt = sample_salt(source, "");
        int64_t count = 0;
        for (int64_t i = 0; i < events; i++)
            count += sample_draws(salt, record_order(i * 97, 0), n) ? n : 0;
        int64_t error = sample_error(count, n), off = llabs(count - events);
        within_one += off <= error;
        within_two += off <= 2 * error;
    }
    assert_in_range(within_one, rounds * 68 / 100 - 60, rounds * 68 / 100 + 60); /* 6 standard errors */
    assert_true(within_two >= rounds * 95 / 100 - 30);
    assert_int_equal(sample_error(0, n), 0);
    assert_int_equal(sample_error(1000000, 1), 0);
    assert_int_equal(sample_error(20000, n), 1407); /* 100 sqrt(200 × 0.99) */
}

static void test_what_is_a_sample(void **state)
{
    static const char *const bad[] = {"",         "1",     "1/",   "1/0",  "2/3",
                                      "1/100001", "1/1.5", "1/-1", "1/2 ", "100"};
    uint32_t n = 7;
    (void)state;
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        assert_false(sample_parse(slice_text(bad[i]), &n));
    assert_int_equal(n, 7);
    assert_true(sample_parse(slice_text("1/100000"), &n));
    assert_int_equal(n, 100000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_draw_is_fixed), cmocka_unit_test(test_any_source_is_drawn_evenly),
        cmocka_unit_test(test_the_error_is_that_of_the_estimates), cmocka_unit_test(test_what_is_a_sample)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
