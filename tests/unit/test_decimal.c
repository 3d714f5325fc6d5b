#include "ingest/decimal.h"

#include "ingest/event.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const struct {
    const char *text;
    int64_t value;
} good[] = {
    {"0", 0},
    {"-0", 0},
    {"-0.0e99999999999999999999", 0},
    {"1", 1000000},
    {"-12.5", -12500000},
    {"0.000001", 1},
    {"0.0000005", 1},
    {"-0.0000005", -1},
    {"0.00000049999999999999999999999999", 0},
    {"0.00000050000000000000000000000000", 1},
    {"1.0000005", 1000001},
    {"1.0000004999", 1000000},
    {"9.9999999", 10000000},
    {"1e3", 1000000000},
    {"1E+3", 1000000000},
    {"1500e-3", 1500000},
    {"123456789012e-9", 123456789},
    {"1e-6", 1},
    {"5e-7", 1},
    {"4e-7", 0},
    {"1e-99999999999999999999", 0},
    {"0.0000000000000000000000000000001e31", 1000000},
    {"1000000000000", 1000000000000000000},
    {"-1e12", -1000000000000000000},
    {"1000000000000.0000004", 1000000000000000000},
    {"999999999999.999999", 999999999999999999},
    {"999999999999.9999995", 1000000000000000000},
    {"123456789.123456", 123456789123456},
    {"12345678.9012345", 12345678901235},
};

static const char *const none[] = {"",      "-",   "+1",       ".5",  "1.",   "01",   "-01",  "1e",
                                   "1e+",   "NaN", "1 ",       " 1",  "0x10", "1.e3", "--1",  "1..2",
                                   "1e1.5", "1,5", "Infinity", "-.5", "00.5", "1e 3", "12-3", "1-"};

static const char *const range[] = {
    "1000000000000.0000005",           "-1000000000000.000001", "1e13",   "1e99999999999999999999",
    "-123456789012345678901234567890", "9999999999999",         "0.1e14", "18446744073709551616"};

static void test_decimal_numbers_are_exact(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        int64_t value = 42;
        enum decimal_result result = decimal_parse(slice_text(good[i].text), &value);
        if (result != DECIMAL_OK || value != good[i].value)
            fail_msg("%s is %d, %" PRId64, good[i].text, result, value);
    }
}

static void test_decimal_what_is_no_number_is_none(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++) {
        int64_t value;
        if (decimal_parse(slice_text(none[i]), &value) != DECIMAL_NONE)
            fail_msg("\"%s\" is a number", none[i]);
    }
}

static void test_decimal_large_ones_are_out_of_range(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof range / sizeof range[0]; i++) {
        int64_t value;
        if (decimal_parse(slice_text(range[i]), &value) != DECIMAL_RANGE)
            fail_msg("%s is in range", range[i]);
    }
}

/* However a number is written, by shifting its point, it is the same. */
static void test_decimal_the_same_number_is_the_same(void **state)
{
    (void)state;
    static const char digits[] = "70368744177664";
    int64_t want = 0;
    assert_int_equal(decimal_parse(slice_text("703687.44177664"), &want), DECIMAL_OK);
    assert_int_equal(want, 703687441777);
    for (int point = 1; point < 14; point++) {
        char text[64];
        int64_t value = 0;
        snprintf(text, sizeof text, "%.*s.%se%d", point, digits, digits + point, 6 - point);
        assert_int_equal(decimal_parse(slice_text(text), &value), DECIMAL_OK);
        assert_int_equal(value, want);
    }
}

static void test_decimal_integers_stop_at_their_limit(void **state)
{
    (void)state;
    int64_t value;
    assert_true(decimal_integer(slice_text("0070"), 70, &value));
    assert_int_equal(value, 70);
    assert_false(decimal_integer(slice_text("71"), 70, &value));
    assert_false(decimal_integer(slice_text(""), 70, &value));
    assert_false(decimal_integer(slice_text("-1"), 70, &value));
    assert_false(decimal_integer(slice_text("99999999999999999999999999"), EVENT_NUMBER_MAX, &value));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_decimal_numbers_are_exact),
        cmocka_unit_test(test_decimal_what_is_no_number_is_none),
        cmocka_unit_test(test_decimal_large_ones_are_out_of_range),
        cmocka_unit_test(test_decimal_the_same_number_is_the_same),
        cmocka_unit_test(test_decimal_integers_stop_at_their_limit),
    };
    return cmocka_run_group_tests_name("decimal", tests, NULL, NULL);
}
