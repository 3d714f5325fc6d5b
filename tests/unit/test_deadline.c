/* A question ends with its time, with its asker, or when it is cancelled; the store's reads end with it. */
#include "base/deadline.h"
#include "query/query.h"
#include "tests/support/world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static bool tell(void *asker)
{
    int *answers = asker;
    return --*answers < 0;
}

static void test_it_passes_once(void **state)
{
    struct clock clock = clock_fake(0);
    struct deadline d;
    struct err e = {0};
    (void)state;
    assert_true(deadline_check(NULL, &e));
    deadline_init(&d, &clock, 100);
    clock_pass(&clock, 99);
    assert_true(deadline_check(&d, &e));
    clock_pass(&clock, 1);
    assert_false(deadline_check(&d, &e));
    assert_int_equal(d.end, DEADLINE_PASSED);
    assert_int_equal(e.code, EX_TEMPFAIL);
    assert_non_null(strstr(e.text, "longer than 100 ms (query.timeout)"));
    deadline_cancel(&d);
    assert_true(deadline_is_over(&d));
    assert_int_equal(d.end, DEADLINE_PASSED);
}

static void test_it_ends_with_its_asker(void **state)
{
    struct clock clock = clock_fake(0);
    struct deadline d;
    int answers = 2; /* until the asker leaves */
    (void)state;
    deadline_init(&d, &clock, 10000);
    d.is_left = tell;
    d.asker = &answers;
    for (int i = 0; i < 100; i++)
        assert_false(deadline_is_over(&d));
    assert_int_equal(answers, 1);
    clock_pass(&clock, DEADLINE_LOOK_MS);
    assert_false(deadline_is_over(&d));
    clock_pass(&clock, DEADLINE_LOOK_MS);
    assert_true(deadline_is_over(&d));
    assert_int_equal(d.end, DEADLINE_LEFT);
}

static void test_it_can_be_cancelled(void **state)
{
    struct clock clock = clock_fake(0);
    struct deadline d;
    struct err e;
    (void)state;
    deadline_init(&d, &clock, 10000);
    assert_false(deadline_is_over(&d));
    deadline_cancel(&d);
    assert_false(deadline_check(&d, &e));
    assert_int_equal(d.end, DEADLINE_CANCELLED);
}

static bool see_series(void *context, uint32_t series, struct slice key)
{
    int *seen = context;
    (void)series, (void)key;
    (*seen)++;
    return true;
}

static bool see_value(void *context, struct slice value)
{
    (void)value;
    return see_series(context, 0, slice_of("", 0));
}

static void see_bucket(void *context, uint32_t series, int64_t bucket_ms, const int64_t *values)
{
    (void)bucket_ms, (void)values;
    (void)see_series(context, series, slice_of("", 0));
}

/* Each kind of read ends at its next row. */
static void test_reads_end_with_it(void **state)
{
    struct world *w = *state;
    struct store *st = w->store;
    struct slice values[REPORT_DIMENSIONS_MAX] = {{0}};
    struct scan scan = {.report = FIXTURE_PAGES,
                        .resolution = SPAN_MINUTE,
                        .from_ms = fixture_ms("2015-05-17T10:00"),
                        .to_ms = fixture_ms("2015-05-17T11:00"),
                        .rows_max = 1000};
    struct scan_stats stats = {0};
    struct deadline d;
    struct err e;
    int seen = 0;
    world_hit(w, FIXTURE_PAGES, "/a", "2015-05-17T10:05", 1);
    world_hit(w, FIXTURE_PAGES, "/b", "2015-05-17T10:06", 1);
    world_apply(w, 2);
    for (int is_over = 0; is_over <= 1; is_over++) {
        deadline_init(&d, &clock_system, 60000);
        st->deadline = &d;
        seen = 0;
        if (is_over)
            deadline_cancel(&d);
        assert_true(is_over != store_scan(st, &scan, see_bucket, &seen, &stats, &e));
        assert_true(is_over != store_series_each(st, FIXTURE_PAGES, see_series, &seen, &e));
        assert_true(is_over != store_series_like(st, FIXTURE_PAGES, values, see_series, &seen, &e));
        assert_true(is_over != store_values(st, FIXTURE_PAGES, 0, slice_of("", 0), 9, see_value, &seen, &e));
        assert_int_equal(seen, is_over ? 0 : 8);
    }
    st->deadline = NULL;
}

static int setup_sqlite(void **state)
{
    world_kind = &world_kinds[1];
    return world_setup(state);
}

/* Cancels the deadline at the first bucket. */
static void cancel_at_bucket(void *context, uint32_t series, int64_t bucket_ms, const int64_t *values)
{
    struct deadline *d = context;
    (void)series, (void)bucket_ms, (void)values;
    assert_false(deadline_is_over(d));
    deadline_cancel(d);
}

static void test_a_scan_ends_at_its_next_row(void **state)
{
    struct world *w = *state;
    struct scan scan = {.report = FIXTURE_PAGES,
                        .resolution = SPAN_MINUTE,
                        .from_ms = fixture_ms("2015-05-17T00:00"),
                        .to_ms = fixture_ms("2015-05-18T00:00"),
                        .rows_max = 1000};
    struct scan_stats stats = {0};
    struct deadline d;
    struct err e;
    for (int i = 0; i < 20; i++) {
        char minute[32];
        snprintf(minute, sizeof minute, "2015-05-17T%02d:30", i);
        world_hit(w, FIXTURE_PAGES, "/a", minute, 1);
    }
    world_apply(w, 20);
    deadline_init(&d, &clock_system, 60000);
    w->store->deadline = &d;
    assert_false(store_scan(w->store, &scan, cancel_at_bucket, &d, &stats, &e));
    assert_int_equal(e.code, EX_TEMPFAIL);
    w->store->deadline = NULL;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_it_passes_once),
        cmocka_unit_test(test_it_ends_with_its_asker),
        cmocka_unit_test(test_it_can_be_cancelled),
        cmocka_unit_test_setup_teardown(test_reads_end_with_it, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(test_a_scan_ends_at_its_next_row, setup_sqlite, world_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
