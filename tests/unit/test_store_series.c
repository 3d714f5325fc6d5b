/* Several series: names that are alike, and scans of some of them or of some of their measures; on every
 * store. */
#include "aggregate/dimension.h"
#include "base/mem.h"
#include "tests/support/world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define PAGES FIXTURE_PAGES
#define HITS  0
#define BYTES 1

/* One day each, of two months: in a server few are asked for by name, and of many all are read. */
static void test_scan_of_ever_more_series(void **state)
{
    struct world *w = *state;
    struct err e;
    char key[16];
    uint64_t bits[8] = {0};
    int64_t from = fixture_ms("2015-01-01"), to = fixture_ms("2015-03-01");
    struct series_set set = {.kind = SERIES_SET, .bits = bits, .bits_max = COUNT_OF(bits) * 64};
    for (int i = 0; i < 100; i++) {
        snprintf(key, sizeof key, "/%d", i);
        batcher_add(w->batcher, 0, PAGES, key, from + i % 59 * (int64_t)DAY_MS, (int64_t[]){1, i});
    }
    world_apply(w, 1);
    int64_t bytes = 0;
    for (int i = 0; i < 100; i++) {
        snprintf(key, sizeof key, "/%d", i);
        uint32_t series = world_one_series(w->store, PAGES, key).one;
        bits[series / 64] |= (uint64_t)1 << series % 64;
        bytes += i;
        if (i % 23 != 0 && i != 99)
            continue;
        for (enum span resolution = SPAN_MINUTE; resolution <= SPAN_DAY; resolution++) {
            assert_int_equal(world_sum(w->store, PAGES, resolution, set, from, to, HITS), i + 1);
            assert_int_equal(world_sum(w->store, PAGES, resolution, set, from, to, BYTES), bytes);
        }
    }
    assert_true(store_housekeep(w->store, true, &e));
    assert_int_equal(world_sum(w->store, PAGES, SPAN_HOUR, set, from, to, BYTES), bytes);
}

static void add_both(void *context, uint32_t series, int64_t bucket_ms, const int64_t *values)
{
    int64_t *sums = context;
    (void)series, (void)bucket_ms;
    sums[HITS] += values[HITS];
    sums[BYTES] += values[BYTES];
}

static void test_scan_of_some_measures(void **state)
{
    struct world *w = *state;
    struct err e;
    world_hit(w, PAGES, "/a", "2015-05-17T10:05:00", 1000);
    world_hit(w, PAGES, "/a", "2015-05-17T10:05:59", 100);
    world_hit(w, PAGES, "/b", "2015-05-17T23:59", 11);
    world_apply(w, 3);
    for (enum span resolution = SPAN_MINUTE; resolution <= SPAN_MONTH; resolution++) {
        for (uint32_t measures = 0; measures < 4; measures++) {
            int64_t sums[2] = {0};
            struct scan_stats stats = {0};
            struct scan scan = {PAGES,
                                resolution,
                                fixture_ms("2015-05-01"),
                                fixture_ms("2015-07-01"),
                                world_every_series,
                                1000,
                                measures,
                                NULL};
            assert_true(store_scan(w->store, &scan, add_both, sums, &stats, &e));
            if (measures == 0 || (measures & 1 << HITS) != 0)
                assert_int_equal(sums[HITS], 3);
            if (measures == 0 || (measures & 1 << BYTES) != 0)
                assert_int_equal(sums[BYTES], 1111);
        }
    }
}

struct alike {
    const struct slice *values;
    size_t found;
};

static bool count_alike(void *context, uint32_t series, struct slice key)
{
    struct alike *a = context;
    bool is = true;
    assert_true(series > 0);
    for (size_t d = 0; d < 3; d++) {
        struct slice text = dimension_next(&key);
        is = is && (a->values[d].ptr == NULL || slice_equal(a->values[d], text));
    }
    a->found += is;
    return true;
}

static void test_series_that_are_alike(void **state)
{
    static const char *const texts[] = {"a", "ab", "a/b", "%2F", "", "\xc3\xa9", "\xff", "(other)"};
    struct world *w = *state;
    struct err e;
    char key[32];
    for (size_t i = 0; i < 6 * 6 * 2; i++) {
        snprintf(key, sizeof key, "%s\t%s\t%s", texts[i % 6], texts[i / 6 % 6], texts[i / 36]);
        world_hit(w, FIXTURE_CLIENTS, key, "2015-05-17T10:05", 1);
    }
    world_apply(w, 1);
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        for (size_t d = 0; d < 3; d++) {
            struct slice values[3] = {{0}};
            struct alike a = {values, 0};
            values[d] = slice_text(texts[i]);
            assert_true(store_series_like(w->store, FIXTURE_CLIENTS, values, count_alike, &a, &e));
            assert_int_equal(a.found, d < 2 ? i < 6 ? 12 : 0 : i < 2 ? 36 : 0);
            values[(d + 1) % 3] = slice_text("a");
            a.found = 0;
            assert_true(store_series_like(w->store, FIXTURE_CLIENTS, values, count_alike, &a, &e));
            assert_int_equal(a.found, d == 0 ? i < 6 ? 2 : 0 : d == 1 ? i < 6 ? 6 : 0 : i < 2 ? 6 : 0);
        }
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_scan_of_ever_more_series),
        TEST(test_scan_of_some_measures),
        TEST(test_series_that_are_alike),
    };
    int failed = 0;
    for (size_t i = 0; i < world_kind_count(); i++) {
        world_kind = &world_kinds[i];
        failed += cmocka_run_group_tests_name(world_kind->name, tests, NULL, NULL);
    }
    return failed;
}
