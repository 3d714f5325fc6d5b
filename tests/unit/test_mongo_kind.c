/* One table says which documents there are: their times, where buckets stand in them, and back. */
#include "store/mongo/handle/kind.h"
#include "tests/support/dice.h"
#include "tests/support/fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

/* The members of a document of each kind, as mongo/handle/kind.h draws them. */
static void test_documents_are_those_of_the_drawing(void **state)
{
    (void)state;
    static const char *const drawn[] = {
        "20101010{daily hourly.13 minute.13.37} 201010{total daily.10}",
        "2010101013{hourly minute.37} 20101010{daily hourly.13} 201010{total daily.10}",
        ("201010101337{minute second.9} 2010101013{hourly minute.37} 20101010{daily hourly.13} "
         "201010{total daily.10}"),
    };
    int64_t at_ms = fixture_ms("2010-10-10T13:37:09.500");
    for (int layout = 0; layout < 3; layout++) {
        struct report r = {.layout = (enum report_layout)layout};
        struct text out = {0};
        size_t count;
        const struct mongo_kind *kinds = mongo_kinds(&r, &count);
        for (size_t i = 0; i < count; i++) {
            const struct mongo_kind *k = &kinds[i];
            char time[MONGO_TIME_BYTES], path[MONGO_PATH_BYTES];
            text_printf(&out, "%s%s{%s", i > 0 ? " " : "", mongo_time(k->span, at_ms, time),
                        mongo_member(k->span));
            for (enum span s = k->span; s-- > k->finest;)
                text_printf(&out, " %s", mongo_path(k, s, at_ms, path));
            text_puts(&out, "}");
        }
        assert_string_equal(out.ptr, drawn[layout]);
        text_fini(&out);
    }
}

/* The row that the keys of a path lead to. */
static bool find_row(const struct mongo_kind *k, enum span resolution, const char *path, size_t *row)
{
    enum span span = k->span;
    *row = 0;
    for (const char *dot = strchr(path, '.'); dot != NULL; dot = strchr(dot + 1, '.')) {
        char key[8];
        snprintf(key, sizeof key, "%.*s", (int)strcspn(dot + 1, "."), dot + 1);
        if (!mongo_row_below(--span, key, row))
            return false;
    }
    assert_int_equal(span, resolution);
    return true;
}

static void test_paths_lead_to_rows_and_rows_to_times(void **state)
{
    (void)state;
    struct dice d = dice_new("mongo_kind");
    for (int i = 0; i < 20000; i++) {
        struct report r = {.layout = (enum report_layout)dice_roll(&d, 3)};
        int64_t at_ms = dice_roll(&d, CIVIL_END_MS);
        enum span resolution = report_cell(&r) + (enum span)dice_roll(&d, SPAN_COUNT - (int)report_cell(&r));
        const struct mongo_kind *k = mongo_kind_for(&r, resolution);
        char path[MONGO_PATH_BYTES];
        size_t row;
        assert_true(find_row(k, resolution, mongo_path(k, resolution, at_ms, path), &row));
        assert_true(row < mongo_row_count(k, resolution));
        assert_int_equal(mongo_row_ms(resolution, span_floor(k->span, at_ms), row),
                         span_floor(resolution, at_ms));
        assert_true(
            find_row(&mongo_year, SPAN_MONTH, mongo_path(&mongo_year, SPAN_MONTH, at_ms, path), &row));
        assert_int_equal(mongo_row_ms(SPAN_MONTH, span_floor(SPAN_YEAR, at_ms), row),
                         span_floor(SPAN_MONTH, at_ms));
    }
}

static void test_buckets_are_read_from_the_fewest_documents(void **state)
{
    (void)state;
    static const enum span wanted[][SPAN_COUNT] = {
        [LAYOUT_DAY] = {SPAN_COUNT, SPAN_DAY, SPAN_DAY, SPAN_MONTH, SPAN_MONTH},
        [LAYOUT_HOUR] = {SPAN_COUNT, SPAN_HOUR, SPAN_DAY, SPAN_MONTH, SPAN_MONTH},
        [LAYOUT_MINUTE] = {SPAN_MINUTE, SPAN_HOUR, SPAN_DAY, SPAN_MONTH, SPAN_MONTH},
    };
    for (int layout = 0; layout < 3; layout++) {
        struct report r = {.layout = (enum report_layout)layout};
        for (enum span resolution = report_cell(&r); resolution < SPAN_COUNT; resolution++)
            assert_int_equal(mongo_kind_for(&r, resolution)->span, wanted[layout][resolution]);
    }
}

static void test_times_are_read_as_they_are_written(void **state)
{
    (void)state;
    static const char *const bad[] = {"",         "2026",     "202600",    "202613",   "20260229", "20261100",
                                      "-2026111", "+2026111", "202611010", "2026110x", " 2026111"};
    struct dice d = dice_new("mongo_kind");
    char text[MONGO_TIME_BYTES];
    int64_t ms;
    for (int i = 0; i < 20000; i++) {
        int64_t day_ms = span_floor(SPAN_DAY, dice_roll(&d, CIVIL_END_MS));
        int64_t month_ms = span_floor(SPAN_MONTH, day_ms);
        assert_true(mongo_parse_time(SPAN_DAY, mongo_time(SPAN_DAY, day_ms, text), &ms));
        assert_int_equal(ms, day_ms);
        assert_false(mongo_parse_time(SPAN_MONTH, text, &ms));
        assert_true(mongo_parse_time(SPAN_MONTH, mongo_time(SPAN_MONTH, month_ms, text), &ms));
        assert_int_equal(ms, month_ms);
    }
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        assert_false(mongo_parse_time(SPAN_MONTH, bad[i], &ms));
        assert_false(mongo_parse_time(SPAN_WEEK, bad[i], &ms));
    }
    assert_true(mongo_parse_time(SPAN_WEEK, "19691229", &ms));
    assert_int_equal(ms, -3 * DAY_MS);
}

static void test_keys_that_are_none_are_passed_over(void **state)
{
    (void)state;
    static const char *const bad[] = {"60", "-1", "99999999999999999999", "1440"};
    size_t row = 3;
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        assert_false(mongo_row_below(SPAN_MINUTE, bad[i], &row));
    assert_false(mongo_row_below(SPAN_DAY, "0", &row));
    assert_false(mongo_row_below(SPAN_DAY, "32", &row));
    assert_int_equal(row, 3);
    assert_true(mongo_row_below(SPAN_MINUTE, "59", &row));
    assert_int_equal(row, 3 * 60 + 59);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_documents_are_those_of_the_drawing),
        cmocka_unit_test(test_paths_lead_to_rows_and_rows_to_times),
        cmocka_unit_test(test_buckets_are_read_from_the_fewest_documents),
        cmocka_unit_test(test_times_are_read_as_they_are_written),
        cmocka_unit_test(test_keys_that_are_none_are_passed_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
