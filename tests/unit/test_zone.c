/* Zones against the C library's clock, and what users may write and read of them. */
#include "base/zone.h"
#include "tests/support/dice.h"
#include "tests/support/fixture.h"
#include "tests/support/wall.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void test_every_clock_shows_what_the_c_library_says(void **state)
{
    (void)state;
    struct dice d = dice_new("zone");
    for (size_t i = 0; wall_zones[i] != NULL; i++) {
        const struct zone *z = fixture_zone(wall_zones[i]);
        wall_hang(wall_zones[i]);
        for (int n = 0; n < 2000; n++) {
            int64_t ms = dice_roll(&d, ZONE_END_MS);
            assert_int_equal(zone_offset(z, ms), wall_offset(ms));
        }
        for (size_t s = 1; s < z->count; s++) {
            const struct zone_stretch *at = &z->stretches[s];
            assert_int_equal(at->from_ms, at[-1].to_ms);
            assert_int_not_equal(at->offset_ms, at[-1].offset_ms);
            assert_int_equal(at->offset_ms, wall_offset(at->from_ms));
            assert_int_equal(at[-1].offset_ms, wall_offset(at->from_ms - SECOND_MS));
        }
        assert_int_equal(z->stretches[0].from_ms, INT64_MIN);
        assert_int_equal(z->stretches[z->count - 1].to_ms, INT64_MAX);
        assert_ptr_equal(fixture_zone(wall_zones[i]), z);
    }
}

/* Around a change: the first minute of which the clock shows that or later. */
static int64_t first_showing(int64_t local_ms, int64_t near_ms)
{
    int64_t ms = near_ms - 2LL * DAY_MS;
    while (wall_local(ms) < local_ms)
        ms += MINUTE_MS;
    return ms;
}

static void test_local_times_are_the_first_instant_that_shows_them(void **state)
{
    (void)state;
    struct dice d = dice_new("local");
    for (int n = 0; n < 300; n++) {
        const char *name = wall_any(dice_roll(&d, 100));
        const struct zone *z = fixture_zone(name);
        wall_hang(name);
        int64_t ms = fixture_ms("1990-01-01") + dice_roll(&d, 40LL * 365 * DAY_MS) / MINUTE_MS * MINUTE_MS;
        if (z->count > 1 && n % 4 > 0) { /* of which nearly all is about changes */
            ms = z->stretches[1 + dice_roll(&d, (int64_t)z->count - 1)].from_ms;
            if (ms % MINUTE_MS != 0 || ms < 10LL * DAY_MS)
                continue;
        }
        int64_t local_ms = wall_local(ms) + (dice_roll(&d, 600) - 300) * MINUTE_MS;
        int64_t first_ms = first_showing(local_ms, ms);
        if (zone_instant(z, local_ms) != first_ms)
            fail_msg("%s: local %" PRId64 " is %" PRId64 ", expected %" PRId64, name, local_ms,
                     zone_instant(z, local_ms), first_ms);
    }
}

static void check_time(const char *name, const char *text, const char *iso)
{
    char buf[ZONE_ISO_BYTES];
    int64_t ms, again_ms;
    if (!zone_parse(fixture_zone(name), slice_text(text), 0, &ms))
        fail_msg("%s is no time", text);
    assert_string_equal(zone_iso(fixture_zone(name), ms, buf), iso);
    assert_true(zone_parse(&zone_utc, slice_text(buf), 0, &again_ms));
    assert_int_equal(again_ms, ms);
}

static void test_times_that_users_write(void **state)
{
    (void)state;
    check_time("UTC", "2015-05-17", "2015-05-17T00:00:00Z");
    check_time("Europe/Berlin", "2015-05-17", "2015-05-17T00:00:00+02:00");
    check_time("Europe/Berlin", "2015-01-17T10:05", "2015-01-17T10:05:00+01:00");
    check_time("Europe/Berlin", "2015-05-17T00:00Z", "2015-05-17T02:00:00+02:00");
    check_time("Europe/Berlin", "2015-05-17T00:00-04:00", "2015-05-17T06:00:00+02:00");
    check_time("Europe/Berlin", "1431820800", "2015-05-17T02:00:00+02:00");
    check_time("Europe/Berlin", "2015-03-29T02:30", "2015-03-29T03:00:00+02:00"); /* there was none */
    check_time("Europe/Berlin", "2015-10-25T02:30", "2015-10-25T02:30:00+02:00"); /* the first of two */
    check_time("Europe/London", "2015-01-17", "2015-01-17T00:00:00+00:00");
    check_time("Asia/Kathmandu", "2015-05-17", "2015-05-17T00:00:00+05:45");
    check_time("America/St_Johns", "2015-01-17", "2015-01-17T00:00:00-03:30");
    check_time("America/Sao_Paulo", "2015-10-18", "2015-10-18T01:00:00-02:00"); /* without a midnight */
    check_time("Europe/Berlin", "1970-01-01", "1970-01-01T01:00:00+01:00");     /* before is nothing */
    char buf[ZONE_ISO_BYTES];
    assert_string_equal(zone_iso(fixture_zone("Africa/Monrovia"), 0, buf), "1969-12-31T23:15:30-00:44:30");
}

static void test_unknown_zones_are_answered_with_what_was_meant(void **state)
{
    (void)state;
    static const struct {
        const char *name, *hint;
    } cases[] = {
        {"Europe/Berln", "(did you mean \"Europe/Berlin\"?)"},
        {"europe/berlin", "(did you mean \"Europe/Berlin\"?)"},
        {"berlin", "(did you mean \"Europe/Berlin\"?)"},
        {"../../../etc/passwd", ": expected"},
        {"/etc/localtime", ": expected"},
        {"CET-1CEST", ": expected"},
        {"+02:00", ": expected"},
        {"", "\"\": expected"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct err e = {0};
        assert_null(zone_find(slice_text(cases[i].name), &e));
        assert_int_equal(e.code, EX_USAGE);
        if (strstr(e.text, cases[i].hint) == NULL)
            fail_msg("\"%s\" is not in \"%s\"", cases[i].hint, e.text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_clock_shows_what_the_c_library_says),
        cmocka_unit_test(test_local_times_are_the_first_instant_that_shows_them),
        cmocka_unit_test(test_times_that_users_write),
        cmocka_unit_test(test_unknown_zones_are_answered_with_what_was_meant),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
