/* Native histograms without a store: how a vector holds them, what is calculated of them, and their bytes. */
#include "prom/native.h"
#include "prom/native_call.h"
#include "prom/remote_message.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define ONE HISTOGRAM_SLOT_OF_ONE

static struct fetch of_table(struct natives *all, struct budget *b)
{
    budget_init(b, 1000, NULL, NULL);
    natives_init(all, 0);
    return (struct fetch){.budget = b, .natives = all};
}

static void test_ends_are_powers(void **state)
{
    (void)state;
    for (int unit = HISTOGRAM_SCHEMA; unit <= HISTOGRAM_SCHEMA_MAX; unit++) {
        for (int32_t nth = 1; nth < HISTOGRAM_NTHS(unit); nth++) {
            const int32_t slot = histogram_slot_of_nth(nth, unit);
            const double end = exp2(ldexp(nth - histogram_nth_of_one(unit), -unit));
            assert_true(fabs(histogram_end(slot) - end) <= 1e-15 * end);
            assert_true(histogram_begin(slot, unit) == histogram_end(slot - 1));
        }
    }
    assert_true(histogram_end(ONE) == 1 && histogram_end(ONE + 16) == 2 && histogram_end(ONE - 32) == 0.25);
}

static void test_values_that_are_no_histograms(void **state)
{
    (void)state;
    const double numbers[] = {0, 1, -1, NAN, -NAN, INFINITY, vector_absent(), NAN + 1, (double)-1 / 0.0};
    for (size_t i = 0; i < COUNT_OF(numbers); i++)
        assert_false(native_is(numbers[i]));
}

static void test_calculations(void **state)
{
    (void)state;
    struct native_bucket first[] = {{-3, 2}, {0, 1}, {ONE, 4}},
                         second[] = {{0, 1}, {ONE + 1, 0}, {ONE + 2, 3}};
    const struct native a = {7, 2.5, 4, 0, 3, first}, b = {4, 9, 4, 0, 3, second};
    struct natives all;
    struct budget budget;
    struct fetch fe = of_table(&all, &budget);
    struct text out = {0};
    struct err e;
    double x, y, sum;
    assert_true(native_add(&fe, &a, &x, &e));
    assert_true(native_add(&fe, &b, &y, &e));
    assert_true(native_is(x) && native_is(y) && native_of(&all, x)->bucket_count == 3);
    assert_int_equal(native_of(&all, y)->bucket_count, 2); /* no empty bucket */
    assert_true(native_join(&fe, x, y, false, &sum, &e));
    assert_true(native_of(&all, sum)->count == 11 && native_of(&all, sum)->sum == 11.5);
    assert_int_equal(native_of(&all, sum)->bucket_count, 4);
    assert_true(native_join(&fe, x, x, true, &sum, &e));
    native_write(native_of(&all, sum), &out);
    assert_string_equal(text_slice(&out).ptr, "{\"count\":\"0\",\"sum\":\"0\"}");
    text_clear(&out);
    assert_true(native_scale(&fe, y, 2, true, &sum, &e));
    native_write(native_of(&all, sum), &out);
    assert_non_null(
        strstr(out.ptr, "{\"count\":\"2\",\"sum\":\"4.5\",\"buckets\":[[3,\"0\",\"0\",\"0.5\"],[0,\"1.04"));
    assert_true(native_apply(FUNCTION_HISTOGRAM_COUNT, &a, (struct native_numbers){0, 0}) == 7);
    /* Four of seven numbers are in the last bucket, which ends with 1; two are below 0. */
    assert_true(native_apply(FUNCTION_HISTOGRAM_QUANTILE, &a, (struct native_numbers){1, 0}) == 1);
    assert_true(native_apply(FUNCTION_HISTOGRAM_FRACTION, &a, (struct native_numbers){-INFINITY, 0}) ==
                2.0 / 7);
    assert_true(native_apply(FUNCTION_HISTOGRAM_FRACTION, &a, (struct native_numbers){0, 1}) == 5.0 / 7);
    text_fini(&out);
    natives_fini(&all);
}

/* Schema 8 and schema 6 have slots of their own; their sum has those of 6, and that with schema 0 its. */
static void test_sums_of_narrow_buckets(void **state)
{
    (void)state;
    const int32_t one_of_8 = HISTOGRAM_FIRST(8) + histogram_nth_of_one(8),
                  one_of_6 = HISTOGRAM_FIRST(6) + histogram_nth_of_one(6);
    struct native_bucket first[] = {{-(one_of_8 + 1), 1}, {0, 2}, {one_of_8 + 1, 3}, {one_of_8 + 4, 4}},
                         second[] = {{one_of_6 + 1, 7}}, third[] = {{ONE + 16, 1}};
    const struct native eight = {10, 1, 8, 0, 4, first}, six = {7, 1, 6, 0, 1, second},
                        none = {1, 1, 0, 0, 1, third};
    struct natives all;
    struct budget budget;
    struct fetch fe = of_table(&all, &budget);
    struct err e;
    double x = 0, y = 0, z = 0, sum;
    assert_true(native_add(&fe, &eight, &x, &e) && native_add(&fe, &six, &y, &e) &&
                native_add(&fe, &none, &z, &e));
    assert_true(native_join(&fe, x, y, false, &sum, &e));
    const struct native *h = native_of(&all, sum);
    assert_true(h->schema == 6 && h->bucket_count == 3 && h->count == 17);
    assert_true(h->buckets[0].slot == -(one_of_6 + 1) && h->buckets[0].count == 1);
    assert_true(h->buckets[2].slot == one_of_6 + 1 && h->buckets[2].count == 14);
    assert_true(native_join(&fe, z, sum, false, &sum, &e));
    h = native_of(&all, sum);
    assert_true(h->schema == 0 && h->bucket_count == 3 && h->buckets[2].slot == ONE + 16);
    assert_true(h->buckets[2].count == 15 && native_ends(h, 2).low == 1 && native_ends(h, 2).high == 2);
    natives_fini(&all);
}

static void test_limit(void **state)
{
    (void)state;
    struct native_bucket bucket = {ONE, 1};
    const struct native h = {1, 1, 4, 0, 1, &bucket};
    struct natives all;
    struct budget budget;
    struct fetch fe = of_table(&all, &budget);
    struct err e = {0};
    double value;
    all.bytes_max = 1 << 20;
    assert_true(native_add(&fe, &h, &value, &e));
    assert_false(native_reading(&all, 1 << 20, "pages:latency", &e));
    assert_non_null(strstr(e.text, "query.sketches_max"));
    natives_fini(&all);
}

/* Buckets -2: 5 and -1: 1 below 0; two zeros; 0: 3 and 2: 4 above. By hand, from Prometheus' types.proto. */
static void test_bytes_of_a_remote_histogram(void **state)
{
    (void)state;
    static const struct histogram_bucket buckets[] = {
        {-(ONE - 1), 1}, {-(ONE - 2), 5}, {0, 2}, {ONE, 3}, {ONE + 2, 4}};
    static const uint8_t expected[] = {0x08, 15,                                        /* count */
                                       0x19, 0,    0,    0,    0,    0, 0,  0xF8, 0x3F, /* sum 1.5 */
                                       0x20, 8,                                         /* schema 4 */
                                       0x30, 2,                                         /* zeros */
                                       0x42, 4,    0x08, 3,    0x10, 2,                 /* from -2, two */
                                       0x4A, 0x82, 0x80, 0x80, 0x80, 0, 10, 7,          /* 5, -4 */
                                       0x5A, 4,    0x08, 0,    0x10, 1,                 /* from 0, one */
                                       0x5A, 4,    0x08, 2,    0x10, 1,        /* one left out, one */
                                       0x62, 0x82, 0x80, 0x80, 0x80, 0, 6,  2, /* 3, +1 */
                                       0x70, 3,                                /* a gauge */
                                       0x78, 7};                               /* at 7 ms */
    const struct histogram_layout *l = histogram_layout(EVENT_SCALE, HISTOGRAM_SCHEMA, 0);
    const struct remote_histogram h = {buckets, COUNT_OF(buckets), l, 1.5, true};
    struct text out = {0};
    assert_true(remote_add_histogram(&out, &h, 7));
    assert_int_equal(out.len, sizeof expected + 6); /* a tag and a length of five bytes */
    assert_memory_equal(out.ptr + 6, expected, sizeof expected);
    text_fini(&out);
}

/* Schema 2 and limit 0.5: buckets -1: 1, 0: 3 and 1: 4 above 0. */
static void test_bytes_of_wide_buckets(void **state)
{
    (void)state;
    static const struct histogram_bucket buckets[] = {{0, 2}, {ONE - 4, 1}, {ONE, 3}, {ONE + 4, 4}};
    static const uint8_t expected[] = {0x08, 10,                                       /* count */
                                       0x19, 0,    0,    0,    0,    0, 0, 0xF8, 0x3F, /* sum 1.5 */
                                       0x20, 4,                                        /* schema 2 */
                                       0x29, 0,    0,    0,    0,    0, 0, 0xE0, 0x3F, /* limit of zero */
                                       0x30, 2,                                        /* zeros */
                                       0x4A, 0x80, 0x80, 0x80, 0x80, 0,                /* none below 0 */
                                       0x5A, 4,    0x08, 1,    0x10, 3,                /* from -1, three */
                                       0x62, 0x83, 0x80, 0x80, 0x80, 0, 2, 4,    2,    /* 1, +2, +1 */
                                       0x78, 7};                                       /* at 7 ms */
    const struct histogram_layout *l = histogram_layout(EVENT_SCALE, 2, EVENT_SCALE / 2);
    const struct remote_histogram h = {buckets, COUNT_OF(buckets), l, 1.5, false};
    struct text out = {0};
    assert_true(remote_add_histogram(&out, &h, 7));
    assert_int_equal(out.len, sizeof expected + 6);
    assert_memory_equal(out.ptr + 6, expected, sizeof expected);
    text_fini(&out);
}

/* A sum has the wider buckets of the two; limits of zero must be the same. */
static void test_sums_of_several_schemas(void **state)
{
    (void)state;
    struct native_bucket narrow[] = {{-(ONE + 1), 1}, {0, 2}, {ONE - 3, 3}, {ONE, 4}, {ONE + 1, 5}};
    struct native_bucket wide[] = {{0, 1}, {ONE + 4, 7}};
    const struct native a = {15, 1, 4, 0, 5, narrow}, b = {8, 2, 2, 0, 2, wide}, c = {8, 2, 2, 0.5, 2, wide};
    struct natives all;
    struct budget budget;
    struct fetch fe = of_table(&all, &budget);
    struct text out = {0};
    struct err e;
    double x, y, z, sum;
    assert_true(native_add(&fe, &a, &x, &e) && native_add(&fe, &b, &y, &e) && native_add(&fe, &c, &z, &e));
    for (int turn = 0; turn < 2; turn++) {
        assert_true(native_join(&fe, turn == 0 ? x : y, turn == 0 ? y : x, false, &sum, &e));
        text_clear(&out);
        native_write(native_of(&all, sum), &out);
        assert_string_equal(
            text_slice(&out).ptr,
            "{\"count\":\"23\",\"sum\":\"3\",\"buckets\":[[1,\"-1.189207115002721\",\"-1\",\"1\"],"
            "[3,\"0\",\"0\",\"3\"],[0,\"0.8408964152537145\",\"1\",\"7\"],"
            "[0,\"1\",\"1.189207115002721\",\"12\"]]}");
    }
    assert_false(native_join(&fe, y, z, false, &sum, &e));
    assert_non_null(strstr(e.text, "zero="));
    text_clear(&out);
    native_write(native_of(&all, z), &out);
    assert_non_null(strstr(out.ptr, "[3,\"-0.5\",\"0.5\",\"1\"]"));
    struct native_bucket beside[] = {{-(ONE - 12), 3}, {0, 1}, {ONE - 12, 2}};
    text_clear(&out);
    native_write(&(struct native){6, 2, 2, 0.55, 3, beside}, &out); /* buckets begin where the zeros end */
    assert_non_null(strstr(out.ptr,
                           "[1,\"-0.5946035575013605\",\"-0.55\",\"3\"],[3,\"-0.55\",\"0.55\",\"1\"],"
                           "[0,\"0.55\",\"0.5946035575013605\",\"2\"]"));
    /* Without numbers below 0 the zero bucket begins there; its numbers lie evenly in it. */
    assert_true(native_apply(FUNCTION_HISTOGRAM_FRACTION, &c, (struct native_numbers){0, 0.25}) == 0.5 / 8);
    assert_true(native_apply(FUNCTION_HISTOGRAM_FRACTION, &c, (struct native_numbers){-1, 0}) == 0);
    text_fini(&out);
    natives_fini(&all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ends_are_powers),
        cmocka_unit_test(test_values_that_are_no_histograms),
        cmocka_unit_test(test_calculations),
        cmocka_unit_test(test_sums_of_narrow_buckets),
        cmocka_unit_test(test_limit),
        cmocka_unit_test(test_bytes_of_a_remote_histogram),
        cmocka_unit_test(test_bytes_of_wide_buckets),
        cmocka_unit_test(test_sums_of_several_schemas),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
