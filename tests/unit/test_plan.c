/* Tiles cover exactly the range, in order, with as few buckets as there can be. */
#include "base/mem.h"
#include "query/plan.h"
#include "tests/support/dice.h"
#include "tests/support/fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static int64_t slots_of(const struct plan *p)
{
    int64_t buckets = 0;
    for (size_t i = 0; i < p->tile_count; i++) {
        const struct plan_tile *t = &p->tiles[i];
        for (int64_t at_ms = t->from_ms; at_ms < t->to_ms; at_ms = span_next(t->resolution, at_ms))
            buckets++;
    }
    return buckets;
}

static void check_cover(const struct plan *p, int64_t from_ms, int64_t to_ms)
{
    for (size_t i = 0; i < p->tile_count; i++) {
        const struct plan_tile *t = &p->tiles[i];
        assert_int_equal(t->from_ms, from_ms);
        assert_true(t->to_ms > t->from_ms);
        assert_true(i == 0 || t->resolution != t[-1].resolution); /* one scan, not two */
        assert_int_equal(span_floor(t->resolution, t->from_ms), t->from_ms);
        assert_int_equal(span_floor(t->resolution, t->to_ms), t->to_ms);
        from_ms = t->to_ms;
    }
    assert_int_equal(from_ms, to_ms);
}

/* The fewest buckets that cover a range, by looking at every way from each of the shortest on. */
static int64_t fewest(enum span finest, int64_t from_ms, int64_t to_ms)
{
    int64_t unit_ms = span_next(finest, 0);
    size_t units = (size_t)((to_ms - from_ms) / unit_ms);
    int64_t *least = xcalloc(units + 1, sizeof *least);
    for (size_t m = units; m-- > 0;) {
        int64_t at_ms = from_ms + (int64_t)m * unit_ms;
        least[m] = INT64_MAX;
        for (int s = (int)finest; s < SPAN_COUNT; s++) {
            int64_t next_ms = span_next((enum span)s, at_ms);
            if (span_floor((enum span)s, at_ms) != at_ms || next_ms > to_ms)
                continue;
            int64_t buckets = 1 + least[(next_ms - from_ms) / unit_ms];
            least[m] = buckets < least[m] ? buckets : least[m];
        }
    }
    int64_t buckets = least[0];
    free(least);
    return buckets;
}

static void check_sum(const char *from, const char *to, int64_t buckets)
{
    struct plan p = plan_sum(SPAN_MINUTE, fixture_ms(from), fixture_ms(to));
    check_cover(&p, fixture_ms(from), fixture_ms(to));
    assert_int_equal(slots_of(&p), buckets);
}

static void test_sum_reads_whole_buckets_whole(void **state)
{
    (void)state;
    check_sum("2015-05-17T10:05", "2015-05-17T10:06", 1);
    check_sum("2015-05-17T10:00", "2015-05-17T11:00", 1);
    check_sum("2015-05-17", "2015-05-18", 1);
    check_sum("2015-05-01", "2015-06-01", 1);
    check_sum("2015-01-01", "2016-01-01", 12);
    check_sum("2015-05-17T10:58", "2015-07-02T01:01", 2 + 13 + 14 + 1 + 1 + 1 + 1);
    check_sum("2016-02-28T23:59", "2016-03-01T00:01", 1 + 1 + 1);
    check_sum("2015-05-17T10:20", "2015-05-17T10:40", 20);
    check_sum("9999-12-01", "9999-12-31T23:59", 30 + 23 + 59);
    assert_int_equal(plan_sum(SPAN_SECOND, 0, 0).tile_count, 0);
    assert_int_equal(plan_sum(SPAN_SECOND, 0, CIVIL_END_MS).tile_count, 1);
}

static void test_sum_of_any_range_reads_the_fewest_buckets(void **state)
{
    (void)state;
    struct dice d = dice_new("plan");
    static const int64_t lengths[] = {2 * HOUR_MS, 3LL * DAY_MS, 40LL * DAY_MS, 70LL * DAY_MS};
    for (int i = 0; i < 200; i++) {
        enum span finest = i % 4 < 2 ? (enum span)dice_roll(&d, 2) : SPAN_MINUTE; /* of few seconds only */
        int64_t from_ms = dice_roll(&d, CIVIL_END_MS - 100LL * DAY_MS);
        int64_t to_ms = from_ms + dice_roll(&d, lengths[i % 4]) + MINUTE_MS;
        /* edges of buckets are where it may go wrong */
        int spans = SPAN_COUNT - (int)finest, edge = (int)dice_roll(&d, spans);
        from_ms = span_floor(finest + (enum span)edge, from_ms);
        to_ms = span_floor(finest + (enum span)dice_roll(&d, edge + 1), to_ms);
        if (to_ms <= from_ms)
            continue;
        struct plan p = plan_sum(finest, from_ms, to_ms);
        check_cover(&p, from_ms, to_ms);
        assert_int_equal(slots_of(&p), fewest(finest, from_ms, to_ms));
    }
}

static void test_steps_read_their_own_buckets(void **state)
{
    (void)state;
    int64_t from_ms = fixture_ms("2015-05-01"), to_ms = fixture_ms("2015-07-01");
    for (int s = 0; s < SPAN_COUNT; s++) {
        struct plan p = plan_steps((enum span)s, from_ms, to_ms);
        assert_int_equal(p.tile_count, 1);
        assert_int_equal(p.tiles[0].resolution, s);
        check_cover(&p, from_ms, to_ms);
    }
    assert_int_equal(plan_ceil(SPAN_MONTH, fixture_ms("2015-05-01T00:01")), fixture_ms("2015-06-01"));
    assert_int_equal(plan_ceil(SPAN_MONTH, fixture_ms("2015-05-01")), fixture_ms("2015-05-01"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sum_reads_whole_buckets_whole),
        cmocka_unit_test(test_sum_of_any_range_reads_the_fewest_buckets),
        cmocka_unit_test(test_steps_read_their_own_buckets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
