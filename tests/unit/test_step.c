/* The start of steps, by walking from minute to minute with the C library's clock. */
#include "query/step.h"
#include "tests/support/dice.h"
#include "tests/support/fixture.h"
#include "tests/support/wall.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>

#include <cmocka.h>

static struct step step(const char *name)
{
    struct step s;
    assert_true(step_parse(slice_text(name), &s));
    return s;
}

/* Steps of a range: their starts, with NULL at the end. */
static void check_starts(const char *name, const char *of, const char *from, const char *const *expected)
{
    const struct zone *z = fixture_zone(of);
    struct step s = step(name);
    char iso[ZONE_ISO_BYTES];
    int64_t ms;
    assert_true(zone_parse(z, slice_text(from), 0, &ms));
    ms = step_floor(&s, z, ms);
    for (; *expected != NULL; expected++, ms = step_next(&s, z, ms)) {
        assert_string_equal(zone_iso(z, ms, iso), *expected);
        assert_int_equal(step_floor(&s, z, ms), ms);
    }
}

#define STARTS(...) ((const char *const[]){__VA_ARGS__, NULL})

static void test_days_are_as_long_as_the_clock_makes_them(void **state)
{
    (void)state;
    check_starts(
        "day", "Europe/Berlin", "2015-03-28T12:00",
        STARTS("2015-03-28T00:00:00+01:00", "2015-03-29T00:00:00+01:00", "2015-03-30T00:00:00+02:00"));
    check_starts("day", "Europe/Berlin", "2015-10-25",
                 STARTS("2015-10-25T00:00:00+02:00", "2015-10-26T00:00:00+01:00"));
    check_starts(
        "day", "America/Sao_Paulo", "2015-10-17",
        STARTS("2015-10-17T00:00:00-03:00", "2015-10-18T01:00:00-02:00", "2015-10-19T00:00:00-02:00"));
    check_starts(
        "day", "Pacific/Apia", "2011-12-29",
        STARTS("2011-12-29T00:00:00-10:00", "2011-12-31T00:00:00+14:00", "2012-01-01T00:00:00+14:00"));
}

static void test_hours_that_come_twice_are_two(void **state)
{
    (void)state;
    check_starts("hour", "Europe/Berlin", "2015-10-25T01:59",
                 STARTS("2015-10-25T01:00:00+02:00", "2015-10-25T02:00:00+02:00", "2015-10-25T02:00:00+01:00",
                        "2015-10-25T03:00:00+01:00"));
    check_starts(
        "hour", "Europe/Berlin", "2015-03-29T01:00",
        STARTS("2015-03-29T01:00:00+01:00", "2015-03-29T03:00:00+02:00", "2015-03-29T04:00:00+02:00"));
    check_starts(
        "6h", "Europe/Berlin", "2015-10-25T00:00",
        STARTS("2015-10-25T00:00:00+02:00", "2015-10-25T06:00:00+01:00", "2015-10-25T12:00:00+01:00"));
    check_starts("30m", "Asia/Kathmandu", "2015-05-17",
                 STARTS("2015-05-17T00:00:00+05:45", "2015-05-17T00:30:00+05:45"));
    check_starts(
        "hour", "Australia/Lord_Howe", "2015-04-05T01:10",
        STARTS("2015-04-05T01:00:00+11:00", "2015-04-05T01:30:00+10:30", "2015-04-05T02:00:00+10:30"));
    check_starts(
        "30m", "Australia/Lord_Howe", "2015-04-05T01:30",
        STARTS("2015-04-05T01:30:00+11:00", "2015-04-05T01:30:00+10:30", "2015-04-05T02:00:00+10:30"));
}

static void test_calendar_steps(void **state)
{
    (void)state;
    check_starts("week", "UTC", "2016-01-01",
                 STARTS("2015-12-28T00:00:00Z", "2016-01-04T00:00:00Z", "2016-01-11T00:00:00Z"));
    check_starts("week", "Europe/Berlin", "2015-03-29",
                 STARTS("2015-03-23T00:00:00+01:00", "2015-03-30T00:00:00+02:00"));
    check_starts("week", "UTC", "1970-01-01", STARTS("1969-12-29T00:00:00Z", "1970-01-05T00:00:00Z"));
    check_starts("2w", "UTC", "1970-01-11", STARTS("1969-12-29T00:00:00Z", "1970-01-12T00:00:00Z"));
    check_starts("month", "Asia/Kathmandu", "2016-02-29T23:59",
                 STARTS("2016-02-01T00:00:00+05:45", "2016-03-01T00:00:00+05:45"));
    check_starts("3mo", "UTC", "2015-06-30",
                 STARTS("2015-04-01T00:00:00Z", "2015-07-01T00:00:00Z", "2015-10-01T00:00:00Z"));
    check_starts(
        "year", "America/New_York", "2015-12-31",
        STARTS("2015-01-01T00:00:00-05:00", "2016-01-01T00:00:00-05:00", "2017-01-01T00:00:00-05:00"));
    check_starts("10y", "UTC", "2015-05-17", STARTS("2010-01-01T00:00:00Z", "2020-01-01T00:00:00Z"));
    check_starts("2d", "UTC", "1970-01-04", STARTS("1970-01-03T00:00:00Z", "1970-01-05T00:00:00Z"));
    check_starts("5h", "Europe/Berlin", "1970-01-01T06:00",
                 STARTS("1970-01-01T06:00:00+01:00", "1970-01-01T11:00:00+01:00"));
    check_starts("month", "Europe/Berlin", "1970-01-01", STARTS("1970-01-01T00:00:00+01:00"));
    check_starts("month", "America/New_York", "1970-01-01", STARTS("1970-01-01T00:00:00-05:00"));
}

static void test_weeks_begin_on_any_day(void **state)
{
    (void)state;
    static const char *const starts[] = {
        "2015-10-19T00:00:00Z", "2015-10-20T00:00:00Z", "2015-10-21T00:00:00Z", "2015-10-15T00:00:00Z",
        "2015-10-16T00:00:00Z", "2015-10-17T00:00:00Z", "2015-10-18T00:00:00Z"};
    char iso[ZONE_ISO_BYTES];
    struct step s = step("week");
    for (int day = 0; civil_weekdays[day] != NULL; day++) {
        s.week_start = (enum weekday)day;
        int64_t start_ms = step_floor(&s, &zone_utc, fixture_ms("2015-10-21")); /* a Wednesday */
        assert_string_equal(zone_iso(&zone_utc, start_ms, iso), starts[day]);
        assert_int_equal(step_next(&s, &zone_utc, start_ms), start_ms + WEEK_MS);
    }
}

/* ---- by chance */

/* Which one an instant is in, counted from 1970: the greatest that the clock has shown so far, or of steps
 * within an hour the one that it shows now, apart from those of another offset. */
struct judge {
    struct step step;
    int64_t number, offset_ms;
};

static int64_t floor_div(int64_t value, int64_t unit)
{
    return (value - ((value % unit + unit) % unit)) / unit;
}

/* So many days before 1970-01-01 the week of it began. */
static int64_t days_before_1970(enum weekday first)
{
    static const char *const days[] = {"Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"};
    char name[8];
    for (time_t days_before = 0;; days_before++) {
        struct tm day;
        time_t at = -days_before * 86400;
        strftime(name, sizeof name, "%a", gmtime_r(&at, &day));
        if (strcmp(name, days[first]) == 0)
            return days_before;
    }
}

static bool divides(const struct judge *j, int64_t whole_ms)
{
    return j->step.unit <= STEP_HOUR && whole_ms % step_ms(&j->step) == 0;
}

static int64_t number_of(const struct judge *j, int64_t ms)
{
    int64_t local_ms = wall_local(ms), count = j->step.count;
    struct civil c = civil_from_ms(local_ms);
    switch (j->step.unit) {
    case STEP_YEAR:
        return floor_div(c.year - 1970, count);
    case STEP_MONTH:
        return floor_div((c.year - 1970) * 12 + c.month - 1, count);
    case STEP_WEEK:
        return floor_div(floor_div(local_ms, DAY_MS) + days_before_1970(j->step.week_start), 7 * count);
    default:
        return floor_div(j->step.unit == STEP_DAY || divides(j, DAY_MS) ? local_ms : ms, step_ms(&j->step));
    }
}

/* Does a step begin at this minute, the one after the last one judged? */
static bool begins(struct judge *j, int64_t ms)
{
    int64_t number = number_of(j, ms), offset_ms = wall_offset(ms);
    bool is_new = divides(j, HOUR_MS) ? number != j->number || offset_ms != j->offset_ms : number > j->number;
    j->number = is_new ? number : j->number;
    j->offset_ms = offset_ms;
    return is_new;
}

/* From some day on, as far as the zone's rules are known; what begins first is not looked at. */
static void check_walk(struct judge *j, const struct zone *z, int64_t from_ms, int64_t for_ms,
                       int64_t stride_ms)
{
    char name[STEP_NAME_BYTES], iso[ZONE_ISO_BYTES];
    int64_t start_ms = -1, next_ms = -1, end_ms = from_ms + for_ms < z->end_ms ? from_ms + for_ms : z->end_ms;
    j->number = number_of(j, from_ms);
    j->offset_ms = wall_offset(from_ms);
    for (int64_t ms = from_ms + stride_ms; ms < end_ms; ms += stride_ms) {
        bool is_start = begins(j, ms);
        if (is_start && next_ms >= 0 && next_ms != ms)
            fail_msg("%s of %s: %s is none", step_name(&j->step, name), z->name, zone_iso(z, next_ms, iso));
        if (is_start) {
            start_ms = ms;
            next_ms = step_next(&j->step, z, ms);
        }
        if (start_ms >= 0 && (step_floor(&j->step, z, ms) != start_ms || ms >= next_ms))
            fail_msg("%s of %s: %s is not in it, which begins at %" PRId64, step_name(&j->step, name),
                     z->name, zone_iso(z, ms, iso), start_ms);
    }
}

static void test_any_step_begins_where_the_clock_says(void **state)
{
    (void)state;
    static const char *const steps[] = {"minute", "5m", "7m",    "15m", "30m", "45m", "hour", "90m", "2h",
                                        "3h",     "5h", "6h",    "12h", "24h", "36h", "day",  "2d",  "7d",
                                        "week",   "2w", "month", "2mo", "3mo", "5mo", "year", "3y"};
    struct dice d = dice_new("steps");
    for (int n = 0; n < 250; n++) {
        const char *name = wall_any(dice_roll(&d, 100));
        const struct zone *z = fixture_zone(name);
        struct judge j = {.step = step(steps[dice_roll(&d, COUNT_OF(steps))])};
        j.step.week_start = (enum weekday)dice_roll(&d, 7);
        bool is_long = step_ms(&j.step) > 3LL * DAY_MS;
        int64_t stride_ms = is_long ? 15LL * MINUTE_MS : MINUTE_MS;
        int64_t for_ms = is_long ? 3 * step_ms(&j.step) : 5LL * DAY_MS;
        for_ms = for_ms > 800LL * DAY_MS ? 800LL * DAY_MS : for_ms;
        wall_hang(name);
        int64_t ms = fixture_ms("1987-01-01") + dice_roll(&d, 45LL * 365) * DAY_MS;
        if (z->count > 1 && n % 4 > 0)
            ms = z->stretches[1 + dice_roll(&d, (int64_t)z->count - 1)].from_ms - 2LL * DAY_MS;
        if (ms < fixture_ms("1987-01-01"))
            continue;
        check_walk(&j, z, ms - ms % (15LL * MINUTE_MS), for_ms, stride_ms);
    }
}

static void test_names(void **state)
{
    (void)state;
    static const char *const good[] = {"second", "minute", "hour", "day",   "week",
                                       "month",  "year",   "15m",  "99999s"};
    static const char *const bad[] = {"",        "m",     "1",       "0m",    "-1h",     "1.5h",
                                      "5 m",     "5M",    "1H",      "mo3",   "5mm",     "+5m",
                                      "100000s", "weeks", "5minute", "1001y", "12001mo", "99999w"};
    struct step s;
    char name[STEP_NAME_BYTES];
    for (size_t i = 0; i < COUNT_OF(good); i++) {
        s = step(good[i]);
        assert_string_equal(step_name(&s, name), good[i]);
    }
    s = step("1h");
    assert_string_equal(step_name(&s, name), "hour");
    s = step("015m");
    assert_string_equal(step_name(&s, name), "15m");
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        if (step_parse(slice_text(bad[i]), &s))
            fail_msg("%s is taken", bad[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_days_are_as_long_as_the_clock_makes_them),
        cmocka_unit_test(test_hours_that_come_twice_are_two),
        cmocka_unit_test(test_calendar_steps),
        cmocka_unit_test(test_weeks_begin_on_any_day),
        cmocka_unit_test(test_any_step_begins_where_the_clock_says),
        cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
