/* Decimals of documents against libbson's own texts of them. */
#include "store/mongo/doc/decimal.h"

#include "tests/support/dice.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define ROUNDS 100000

static void check_written(int128 number, const char *expected)
{
    char text[BSON_DECIMAL128_STRING];
    bson_t document = BSON_INITIALIZER;
    bson_iter_t it;
    bson_decimal128_t value;
    mongo_append_decimal(&document, "n", number);
    assert_true(bson_iter_init_find(&it, &document, "n") && bson_iter_decimal128(&it, &value));
    bson_decimal128_to_string(&value, text);
    assert_string_equal(text, expected);
    assert_true(mongo_decimal(&it) == number);
    bson_destroy(&document);
}

static int128 read_text(const char *text)
{
    bson_t document = BSON_INITIALIZER;
    bson_iter_t it;
    bson_decimal128_t value;
    assert_true(bson_decimal128_from_string(text, &value));
    BSON_APPEND_DECIMAL128(&document, "n", &value);
    assert_true(bson_iter_init_find(&it, &document, "n"));
    const int128 number = mongo_decimal(&it);
    bson_destroy(&document);
    return number;
}

static void test_decimal_is_written_in_its_own_unit(void **state)
{
    (void)state;
    check_written(0, "0");
    check_written(200000000, "200");
    check_written(250000, "0.25");
    check_written(-1, "-0.000001");
    check_written(-7000000, "-7");
    check_written((int128)INT64_MAX * EVENT_SCALE + 999999, "9223372036854775807.999999");
    check_written((int128)INT64_MIN * EVENT_SCALE, "-9223372036854775808");
}

static void test_decimal_is_read_with_any_exponent(void **state)
{
    const int128 most = (int128)10000000000000 * 1000000000000000000;
    (void)state;
    assert_true(read_text("2E+2") == 200000000);
    assert_true(read_text("200.0000000000") == 200000000);
    assert_true(read_text("-0.2500") == -250000);
    assert_true(read_text("0E+3000") == 0);
    assert_true(read_text("1E-7") == 0);
    assert_true(read_text("1E-6000") == 0);
    assert_true(read_text("1E+6000") == most);
    assert_true(read_text("-9999999999999999999999999999999999") == -most);
    assert_true(read_text("Infinity") == 0);
    assert_true(read_text("NaN") == 0);
}

static void test_decimal_of_any_number_is_that_number(void **state)
{
    struct dice dice = dice_new("mongo_decimal");
    char text[64];
    (void)state;
    for (int i = 0; i < ROUNDS; i++) {
        const int64_t units = dice_roll(&dice, INT64_MAX) >> dice_roll(&dice, 63);
        const int64_t micros = dice_roll(&dice, EVENT_SCALE);
        const bool is_negative = dice_roll(&dice, 2) == 1;
        const int128 number = (int128)units * EVENT_SCALE + micros;
        snprintf(text, sizeof text, "%s%" PRId64 ".%06" PRId64, is_negative ? "-" : "", units, micros);
        assert_true(read_text(text) == (is_negative ? -number : number));
        bson_t document = BSON_INITIALIZER;
        bson_iter_t it;
        mongo_append_decimal(&document, "n", number);
        assert_true(bson_iter_init_find(&it, &document, "n") && mongo_decimal(&it) == number);
        bson_destroy(&document);
    }
}

static void test_units_are_rounded_down_and_saturated(void **state)
{
    (void)state;
    assert_int_equal(mongo_decimal_units(1999999), 1);
    assert_int_equal(mongo_decimal_units(-1), -1);
    assert_int_equal(mongo_decimal_units(-1000000), -1);
    assert_true(mongo_decimal_units(((int128)INT64_MAX + 1) * EVENT_SCALE) == INT64_MAX);
    assert_true(mongo_decimal_units((int128)INT64_MIN * EVENT_SCALE - 1) == INT64_MIN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_decimal_is_written_in_its_own_unit),
        cmocka_unit_test(test_decimal_is_read_with_any_exponent),
        cmocka_unit_test(test_decimal_of_any_number_is_that_number),
        cmocka_unit_test(test_units_are_rounded_down_and_saturated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
