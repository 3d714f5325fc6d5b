/* Scans of many rows hold each instant of them once, and are few. */
#include "base/mem.h"
#include "query/step.h"
#include "query/tiles.h"
#include "tests/support/dice.h"
#include "tests/support/fixture.h"
#include "tests/support/wall.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

struct rows {
    int64_t from_ms, to_ms;
};

/* The rows of a step, as a query makes them. */
static struct rows add_rows(struct tiles *t, const struct step *s, const struct zone *z, struct rows asked)
{
    struct rows rows = {step_floor(s, z, asked.from_ms), 0};
    for (int64_t ms = rows.from_ms; ms < asked.to_ms; ms = rows.to_ms) {
        rows.to_ms = step_next(s, z, ms);
        tiles_add(t, SPAN_MINUTE, ms, rows.to_ms);
    }
    return rows;
}

static void check_scan(const struct tiles_scan *scan, uint8_t *times, struct rows rows)
{
    assert_int_equal(scan->from_ms, scan->tiles[0].from_ms);
    assert_int_equal(scan->to_ms, scan->tiles[scan->tile_count - 1].to_ms);
    assert_true(scan->from_ms >= rows.from_ms && scan->to_ms <= rows.to_ms);
    for (int64_t ms = scan->from_ms; ms < scan->to_ms; ms = span_next(scan->resolution, ms)) {
        assert_int_equal(span_floor(scan->resolution, ms), ms);
        if (!tiles_has(scan, ms))
            continue;
        for (int64_t at_ms = ms; at_ms < span_next(scan->resolution, ms); at_ms += MINUTE_MS)
            times[(at_ms - rows.from_ms) / MINUTE_MS]++;
    }
}

static void test_every_minute_of_every_row_is_read_once(void **state)
{
    (void)state;
    static const char *const steps[] = {"minute", "7m", "hour", "2h",    "6h",
                                        "day",    "5d", "week", "month", "3mo"};
    struct dice d = dice_new("tiles");
    for (int n = 0; n < 120; n++) {
        struct tiles tiles = {0};
        struct step step;
        struct err e;
        size_t count;
        const struct zone *z = zone_find(slice_text(wall_any(dice_roll(&d, 100))), &e);
        assert_non_null(z);
        assert_true(step_parse(slice_text(steps[dice_roll(&d, COUNT_OF(steps))]), &step));
        int64_t from_ms = fixture_ms("1990-01-01") + dice_roll(&d, 40LL * 365 * DAY_MS);
        struct rows rows = {from_ms, from_ms + 1 + dice_roll(&d, 100LL * DAY_MS)};
        rows = add_rows(&tiles, &step, z, rows);
        uint8_t *times = xcalloc((size_t)((rows.to_ms - rows.from_ms) / MINUTE_MS), 1);
        struct tiles_scan *scans = tiles_scans(&tiles, &count);
        for (size_t i = 0; i < count; i++)
            check_scan(&scans[i], times, rows);
        for (int64_t i = 0; i < (rows.to_ms - rows.from_ms) / MINUTE_MS; i++)
            assert_int_equal(times[i], 1);
        free(scans);
        free(times);
        tiles_fini(&tiles);
    }
}

/* How many scans of which buckets: "1 hour, 3 minute". */
static void check_scans(const char *zone, const char *from, const char *to, const char *by,
                        const char *expected)
{
    struct tiles tiles = {0};
    struct step step;
    struct rows asked;
    size_t count, counts[SPAN_COUNT] = {0};
    char text[128] = "";
    const struct zone *z = fixture_zone(zone);
    assert_true(step_parse(slice_text(by), &step));
    assert_true(zone_parse(z, slice_text(from), 0, &asked.from_ms) &&
                zone_parse(z, slice_text(to), 0, &asked.to_ms));
    add_rows(&tiles, &step, z, asked);
    struct tiles_scan *scans = tiles_scans(&tiles, &count);
    for (size_t i = 0; i < count; i++)
        counts[scans[i].resolution]++;
    for (int s = SPAN_COUNT - 1; s >= 0; s--) {
        size_t len = strlen(text);
        if (counts[s] > 0)
            snprintf(text + len, sizeof text - len, "%s%zu %s", len > 0 ? ", " : "", counts[s],
                     span_name((enum span)s));
    }
    assert_string_equal(text, expected);
    free(scans);
    tiles_fini(&tiles);
}

static void test_rows_of_one_bucket_are_one_scan(void **state)
{
    (void)state;
    check_scans("UTC", "2015-01-01", "2016-01-01", "month", "1 month");
    check_scans("UTC", "2015-01-01", "2025-01-01", "year", "1 month");
    check_scans("UTC", "2015-01-01", "2016-01-01", "week", "1 day");
    check_scans("UTC", "2015-01-01", "2015-04-01", "hour", "1 hour");
    check_scans("UTC", "2015-01-01", "2015-01-02", "5m", "1 minute");
    check_scans("Europe/Berlin", "2015-01-01", "2015-04-01", "hour", "1 hour");
    check_scans("Europe/Berlin", "2015-01-01", "2015-12-31", "day", "1 hour");
    check_scans("Europe/Berlin", "2015-01-01", "2015-03-01", "6h", "1 hour");
    check_scans("Asia/Kathmandu", "2015-01-01", "2015-01-02", "hour", "1 minute");
}

static void test_edges_of_a_zone_are_scans_of_their_own(void **state)
{
    (void)state;
    /* 11 nights between months, and one at each end */
    check_scans("Europe/Berlin", "2015-01-01", "2016-01-01", "month", "1 day, 13 hour");
    check_scans("Asia/Kathmandu", "2015-01-01", "2015-01-31", "day", "1 hour, 31 minute");
    /* too many to be worth it */
    check_scans("Asia/Kathmandu", "2010-01-01", "2015-01-01", "day", "1 hour, 1 minute");
}

static void test_a_gap_longer_than_what_is_behind_it_is_not_read(void **state)
{
    (void)state;
    static const enum span expected[] = {SPAN_DAY, SPAN_MONTH, SPAN_DAY}; /* of 30, 28 and 5 days */
    struct tiles tiles = {0};
    size_t count;
    tiles_add(&tiles, SPAN_MINUTE, fixture_ms("2015-01-02"), fixture_ms("2015-03-06"));
    struct tiles_scan *scans = tiles_scans(&tiles, &count);
    assert_int_equal(count, COUNT_OF(expected));
    for (size_t i = 0; i < count; i++)
        assert_int_equal(scans[i].resolution, expected[i]);
    free(scans);
    tiles_fini(&tiles);
}

static void test_what_is_before_1970_is_not_read(void **state)
{
    (void)state;
    struct tiles tiles = {0};
    size_t count;
    tiles_add(&tiles, SPAN_MINUTE, -3LL * DAY_MS, -DAY_MS);
    tiles_add(&tiles, SPAN_MINUTE, -DAY_MS, DAY_MS);
    struct tiles_scan *scans = tiles_scans(&tiles, &count);
    assert_int_equal(count, 1);
    assert_int_equal(scans[0].from_ms, 0);
    assert_int_equal(scans[0].to_ms, DAY_MS);
    free(scans);
    tiles_fini(&tiles);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_minute_of_every_row_is_read_once),
        cmocka_unit_test(test_rows_of_one_bucket_are_one_scan),
        cmocka_unit_test(test_edges_of_a_zone_are_scans_of_their_own),
        cmocka_unit_test(test_a_gap_longer_than_what_is_behind_it_is_not_read),
        cmocka_unit_test(test_what_is_before_1970_is_not_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
