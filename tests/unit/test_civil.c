/* Dates against a loop that counts days, and what users may write for a time. */
#include "base/check.h"
#include "base/civil.h"
#include "tests/support/dice.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>

#include <cmocka.h>

static bool is_leap(int year)
{
    return year % 400 == 0 || (year % 4 == 0 && year % 100 != 0);
}

static int days_of(int year, int month)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    return days[month - 1] + (month == 2 && is_leap(year));
}

static void check_day(int64_t day, int year, int month, int dom)
{
    struct civil c = civil_from_ms(day * DAY_MS);
    assert_int_equal(civil_days(year, month, dom), day);
    if (c.year != year || c.month != month || c.day != dom || c.hour + c.minute + c.second + c.ms != 0)
        fail_msg("day %" PRId64 " is %d-%d-%d, expected %d-%d-%d", day, c.year, c.month, c.day, year, month,
                 dom);
    c = civil_from_ms(day * DAY_MS + DAY_MS - 1);
    assert_true(c.year == year && c.month == month && c.day == dom);
    assert_true(c.hour == 23 && c.minute == 59 && c.second == 59 && c.ms == 999);
}

static void test_every_day_of_every_year(void **state)
{
    (void)state;
    int64_t day = 0;
    for (int year = CIVIL_YEAR_MIN; year <= CIVIL_YEAR_MAX; year++) {
        for (int month = 1; month <= 12; month++) {
            assert_int_equal(civil_month_days(year, month), days_of(year, month));
            int64_t index = (year - 1970) * 12 + month - 1;
            assert_int_equal(civil_month_start(index), day * DAY_MS);
            for (int dom = 1; dom <= days_of(year, month); dom++)
                check_day(day++, year, month, dom);
            assert_int_equal(civil_month_index(day * DAY_MS - 1), index);
        }
    }
    assert_int_equal(day * DAY_MS, CIVIL_END_MS);
}

static void test_any_instant_reads_back(void **state)
{
    (void)state;
    struct dice d = dice_new("civil");
    for (int i = 0; i < 100000; i++) {
        int64_t ms = dice_roll(&d, CIVIL_END_MS);
        struct civil c = civil_from_ms(ms);
        assert_int_equal(civil_to_ms(&c), ms);
        assert_in_range(c.hour, 0, 23);
        assert_in_range(c.minute, 0, 59);
        assert_in_range(c.second, 0, 59);
        assert_in_range(c.ms, 0, 999);
    }
}

static void test_spans_tile_the_time(void **state)
{
    (void)state;
    struct dice d = dice_new("spans");
    for (int i = 0; i < 20000; i++) {
        int64_t ms = dice_roll(&d, CIVIL_END_MS);
        int64_t inner = ms;
        for (enum span span = SPAN_SECOND; span <= SPAN_YEAR; span++) {
            int64_t start = span_floor(span, ms), next = span_next(span, start);
            assert_true(start <= ms && ms < next);
            assert_int_equal(span_floor(span, start), start);
            assert_int_equal(span_floor(span, next - 1), start);
            assert_int_equal(span_floor(span, next), next);
            assert_int_equal(span_floor(span, inner), start); /* spans nest */
            inner = start;
        }
    }
    assert_int_equal(span_next(SPAN_MONTH, span_floor(SPAN_MONTH, CIVIL_END_MS - 1)), CIVIL_END_MS);
}

static void test_weeks_tile_the_time(void **state)
{
    (void)state;
    struct dice d = dice_new("weeks");
    for (int i = 0; i < 20000; i++) {
        int64_t ms = dice_roll(&d, CIVIL_END_MS);
        enum weekday first = (enum weekday)dice_roll(&d, 7);
        int64_t start_ms = civil_week_floor(first, ms), next_ms = span_next(SPAN_WEEK, start_ms);
        time_t start = start_ms / 1000;
        struct tm day;
        assert_true(start_ms <= ms && ms < next_ms && start_ms % DAY_MS == 0);
        assert_int_equal(gmtime_r(&start, &day)->tm_wday, ((int)first + 1) % 7);
        assert_int_equal(civil_week_floor(first, next_ms), next_ms);
        assert_int_equal(civil_week_floor(first, next_ms - 1), start_ms);
    }
    assert_string_equal(span_name(SPAN_WEEK), "week");
}

static void test_span_names(void **state)
{
    (void)state;
    static const char *const bad[] = {"", "minutes", "Minute", "week", "m"};
    enum span span;
    for (enum span s = SPAN_SECOND; s < SPAN_COUNT; s++) {
        assert_true(span_parse(slice_text(span_name(s)), &span));
        assert_int_equal(span, s);
    }
    assert_string_equal(span_name(SPAN_MONTH), "month");
    assert_string_equal(span_name(SPAN_YEAR), "year");
    assert_false(span_parse(slice_text("year"), &span)); /* nothing is asked for by it */
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        assert_false(span_parse(slice_text(bad[i]), &span));
}

static void test_iso(void **state)
{
    (void)state;
    static const struct {
        int64_t ms;
        const char *text;
    } cases[] = {
        {0, "1970-01-01T00:00:00Z"},
        {999, "1970-01-01T00:00:00Z"},
        {1431820800000, "2015-05-17T00:00:00Z"},
        {951825599000, "2000-02-29T11:59:59Z"},
        {CIVIL_END_MS - 1, "9999-12-31T23:59:59Z"},
    };
    char buf[CIVIL_ISO_BYTES];
    struct dice d = dice_new("iso");
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        assert_string_equal(civil_iso(cases[i].ms, buf), cases[i].text);
    for (int i = 0; i < 20000; i++) {
        int64_t ms = dice_roll(&d, CIVIL_END_MS / 1000) * 1000, read;
        assert_true(civil_parse(slice_text(civil_iso(ms, buf)), 0, &read));
        assert_int_equal(read, ms);
    }
}

#define NOW 1431857103250 /* 2015-05-17T10:05:03.250Z */

static void test_times_that_users_write(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t ms;
    } cases[] = {
        {"2015-05-17", 1431820800000},
        {"2015-05-17T10:05", 1431857100000},
        {"2015-05-17 10:05", 1431857100000},
        {"2015-05-17T10:05:03", 1431857103000},
        {"2015-05-17T10:05:03Z", 1431857103000},
        {"2015-05-17T10:05:03.250", NOW},
        {"2015-05-17T10:05:03.250Z", NOW},
        {"2015-05-17T10:05:03+00:00", 1431857103000},
        {"2015-05-17T12:05:03+02:00", 1431857103000},
        {"2015-05-17T12:05:03+0200", 1431857103000},
        {"2015-05-17T00:35:03-09:30", 1431857103000},
        {"2015-05-18T00:00+14:00", 1431856800000},
        {"2015-05-17Z", 1431820800000},
        {"2015-05-17+02:00", 1431813600000},
        {"2016-12-31T23:59:60Z", 1483228800000}, /* a leap second is the next minute's first */
        {"2000-02-29", 951782400000},
        {"1970-01-01", 0},
        {"9999-12-31", CIVIL_END_MS - DAY_MS},
        {"9999-12-31T23:59:60", CIVIL_END_MS},
        {"1431857103", 1431857103000},
        {"1431857103250", NOW},
        {"0000000000", 0},
        {"2015-05", 1430438400000},
        {"2016-12Z", 1480550400000},
        {"2015-05+02:00", 1430431200000},
        {"now", NOW},
        {"today", 1431820800000},
        {"yesterday", 1431734400000},
        {"-0s", NOW},
        {"-90s", NOW - 90000},
        {"-15m", NOW - 15LL * MINUTE_MS},
        {"-1h", NOW - HOUR_MS},
        {"-7d", NOW - 7LL * DAY_MS},
        {"-2w", NOW - 14LL * DAY_MS},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        int64_t ms = -1;
        if (!civil_parse(slice_text(cases[i].text), NOW, &ms) || ms != cases[i].ms)
            fail_msg("%s: found %" PRId64 ", expected %" PRId64, cases[i].text, ms, cases[i].ms);
    }
}

static const char *const bad[] = {
    "",
    " ",
    "Now",
    "now ",
    "2015",
    "2015-5",
    "2015-5-17",
    "2015-05-",
    "2015-13",
    "2015-00",
    "2015-05T10:05",
    "Today",
    "today ",
    "tomorrow",
    "2015-13-01",
    "2015-00-01",
    "2015-01-00",
    "2015-02-29",
    "1900-02-29",
    "2015-04-31",
    "1969-12-31",
    "0000-01-01",
    "10000-01-01",
    "2015/05/17",
    "2015-05-17T",
    "2015-05-17 ",
    "2015-05-17T10",
    "2015-05-17T10:5",
    "2015-05-17T24:00",
    "2015-05-17T10:60",
    "2015-05-17T10:05:61",
    "2015-05-17T10:05:03.2",
    "2015-05-17T10:05:03.2505",
    "2015-05-17T10:05:03,250",
    "2015-05-17T10:05:03ZZ",
    "2015-05-17T10:05:03+2",
    "2015-05-17T10:05:03+24:00",
    "2015-05-17T10:05:03+02:60",
    "2015-05-17T10:05:03+02:0",
    "2015-05-17T10:05:03 +02:00",
    "1970-01-01T00:00+00:01",
    "9999-12-31T23:59-00:02",
    "123456789",
    "12345678901",
    "12345678901234",
    "143185710x",
    "+1431857103",
    "-1431857103",
    "-",
    "-1",
    "-h",
    "-1y",
    "-1 h",
    "--1h",
    "1h",
    "-1.5h",
    "-1hh",
    "-100000000000w",
    "-100000000w",
    "-0x1s",
    "-99999999999999999999s",
};

static void test_times_that_are_none(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        int64_t ms = -7;
        if (civil_parse(slice_text(bad[i]), NOW, &ms))
            fail_msg("\"%s\" was read as %" PRId64, bad[i], ms);
    }
    int64_t ms;
    assert_false(civil_parse(slice_of("2015-05-17\0", 11), NOW, &ms));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_day_of_every_year),
        cmocka_unit_test(test_any_instant_reads_back),
        cmocka_unit_test(test_spans_tile_the_time),
        cmocka_unit_test(test_weeks_tile_the_time),
        cmocka_unit_test(test_span_names),
        cmocka_unit_test(test_iso),
        cmocka_unit_test(test_times_that_users_write),
        cmocka_unit_test(test_times_that_are_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
