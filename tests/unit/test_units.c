#include "base/units.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void test_units_number_has_commas(void **state)
{
    (void)state;
    char buf[UNITS_NUMBER_BYTES];
    assert_string_equal(units_number(0, buf), "0");
    assert_string_equal(units_number(999, buf), "999");
    assert_string_equal(units_number(-1000, buf), "-1,000");
    assert_string_equal(units_number(1234567, buf), "1,234,567");
    assert_string_equal(units_number(INT64_MIN, buf), "-9,223,372,036,854,775,808");
}

static void check_parse(const struct unit *units, const char *text, int64_t expected)
{
    int64_t value;
    assert_true(units_parse(units, slice_text(text), &value));
    assert_int_equal(value, expected);
}

static void test_units_take_stops_behind_the_unit(void **state)
{
    (void)state;
    int64_t value;
    struct slice text = slice_text("1h30ms");
    assert_true(units_take(units_durations, &text, &value));
    assert_int_equal(value, 3600000);
    assert_true(slice_is(text, "30ms"));
    assert_true(units_take(units_durations, &text, &value));
    assert_int_equal(value, 30);
    assert_int_equal(text.len, 0);
    text = slice_text("5w");
    assert_false(units_take(units_durations, &text, &value));
    assert_true(slice_is(text, "5w"));
}

static void test_units_hex_digit_takes_both_cases(void **state)
{
    (void)state;
    for (int c = -128; c < 256; c++) {
        const char digits[] = "0123456789abcdef", upper[] = "0123456789ABCDEF";
        const char *at = c > 0 ? strchr(digits, c) : NULL, *other = c > 0 ? strchr(upper, c) : NULL;
        int expected = at != NULL ? (int)(at - digits) : other != NULL ? (int)(other - upper) : -1;
        assert_int_equal(units_hex_digit(c), expected);
    }
}

static void test_units_parse_reads_a_number_and_one_unit(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "", "5", "m", "5 m", "5mm", "5m1s", "-5m", "5M", "9223372036854775808ms", "9223372036854776s"};
    int64_t value;
    check_parse(units_durations, "0ms", 0);
    check_parse(units_durations, "500ms", 500);
    check_parse(units_durations, "36h", 36 * 3600000);
    check_parse(units_durations, "9223372036854775807ms", INT64_MAX);
    check_parse(units_sizes, "64MiB", 64 << 20);
    check_parse(&units_sizes[1], "1TiB", (int64_t)1 << 40);
    assert_false(units_parse(&units_durations[1], slice_text("5ms"), &value));
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_false(units_parse(units_durations, slice_text(bad[i]), &value));
}

static void test_units_of_is_the_largest_that_fits(void **state)
{
    (void)state;
    assert_string_equal(units_of(units_durations, 0)->name, "ms");
    assert_string_equal(units_of(units_durations, 1500)->name, "ms");
    assert_string_equal(units_of(units_durations, 90 * 60000)->name, "m");
    assert_string_equal(units_of(units_durations, 2 * 86400000)->name, "d");
    assert_string_equal(units_of(units_sizes, 1 << 20)->name, "MiB");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_units_number_has_commas),
        cmocka_unit_test(test_units_take_stops_behind_the_unit),
        cmocka_unit_test(test_units_hex_digit_takes_both_cases),
        cmocka_unit_test(test_units_parse_reads_a_number_and_one_unit),
        cmocka_unit_test(test_units_of_is_the_largest_that_fits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
