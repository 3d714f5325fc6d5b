/* A batch that backfills: which entries of the books it changes, and what each store that takes it has
 * then. */
#include "store/backfill.h"
#include "tests/support/world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

struct change {
    const char *name;
    struct backfill_span span;
    const char *changes; /* "since=0 gap.10=-1"; NULL: refused */
};

#define NO_BUILDS \
    {             \
        {         \
            0     \
        }         \
    }
#define TO_ALL    {0, 0}, -1, false, NO_BUILDS
#define NO_GAP    -1, -1, TO_ALL
#define GAP(a, b) a, b, TO_ALL

static const struct change changes[] = {
    {"nothing was counted", {0, 50, -1, -1, NO_GAP}, "since=0 until=50"},
    {"nothing was counted, and the begin is gone", {20, 50, -1, -1, NO_GAP}, "since=20 until=50"},
    {"all before", {0, 50, 50, 90, NO_GAP}, "since=0"},
    {"the begin of what is before", {0, 20, 50, 90, NO_GAP}, "since=0 gap.20=50"},
    {"the end of what is before", {20, 50, 50, 90, NO_GAP}, "since=20"},
    {"a whole gap", {20, 30, 0, 90, GAP(20, 30)}, "gap.20=-1"},
    {"the begin of a gap", {20, 25, 0, 90, GAP(20, 30)}, "gap.20=-1 gap.25=30"},
    {"the end of a gap", {25, 30, 0, 90, GAP(20, 30)}, "gap.20=25"},
    {"the middle of a gap", {22, 25, 0, 90, GAP(20, 30)}, "gap.20=22 gap.25=30"},
    {"all behind", {90, 95, 0, 90, NO_GAP}, "until=95"},
    {"behind, and some is gone", {92, 95, 0, 90, NO_GAP}, "gap.90=92 until=95"},
    {"some times of nothing counted",
     {0, 50, -1, -1, -1, -1, {7, 9}, -1, false, NO_BUILDS},
     "filled.0.7.9=50"},
    {"more of the same times", {50, 60, 90, 95, -1, -1, {7, 9}, 20, false, NO_BUILDS}, "filled.20.7.9=60"},
    {"times of a gap", {22, 25, 0, 90, 20, 30, {7, 9}, -1, false, NO_BUILDS}, "filled.22.7.9=25"},
    {"the same times again", {50, 60, 90, 95, -1, -1, {7, 9}, 20, true, NO_BUILDS}, NULL},
    {"times of what was counted", {20, 30, 0, 90, -1, -1, {7, 9}, -1, false, NO_BUILDS}, NULL},
    {"counted", {20, 30, 0, 90, NO_GAP}, NULL},
    {"counted at the end", {0, 51, 50, 90, NO_GAP}, NULL},
    {"counted at the begin", {89, 95, 0, 90, NO_GAP}, NULL},
};

static void test_entries_say_what_was_counted(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        const struct change *c = &changes[i];
        struct backfill_entry entries[BACKFILL_ENTRIES_MAX];
        struct err e = {0};
        char found[256] = "";
        size_t count, len = 0;
        bool good = backfill_change(&c->span, entries, &count, &e);
        assert_int_equal(good, c->changes != NULL);
        assert_int_equal(e.code, good ? 0 : EX_DATAERR);
        for (size_t k = 0; good && k < count; k++)
            len += (size_t)snprintf(found + len, sizeof found - len, "%s%s=%lld", k > 0 ? " " : "",
                                    entries[k].name, (long long)entries[k].value);
        if (good && strcmp(found, c->changes) != 0)
            fail_msg("%s: found %s, expected %s", c->name, found, c->changes);
    }
}

static void test_gap_is_the_one_around_the_offsets(void **state)
{
    const struct range r = {.from = 20, .to = 30};
    const struct batch batch = {.only_from_ms = 7, .only_to_ms = 9};
    struct backfill_span s = backfill_span(&batch, &r);
    (void)state;
    backfill_read(&s, "gap.0", 10);
    backfill_read(&s, "gap.21", 40);
    backfill_read(&s, "gap.5", 29);
    backfill_read(&s, "counted", 7);
    assert_int_equal(s.gap_from, -1);
    backfill_read(&s, "gap.20", 30);
    backfill_read(&s, "since", 3);
    backfill_read(&s, "until", 50);
    backfill_read(&s, "filled.3.7.8", 20); /* of other times */
    assert_int_equal(s.filled_from, -1);
    backfill_read(&s, "filled.3.7.9", 20);
    assert_false(s.is_filled);
    backfill_read(&s, "filled.29.7.9", 40);
    assert_true(s.is_filled);
    assert_int_equal(s.filled_from, 3);
    assert_int_equal(s.gap_from, 20);
    assert_int_equal(s.gap_to, 30);
    assert_int_equal(s.since, 3);
    assert_int_equal(s.until, 50);
}

/* ---- of every store */

/* Apply one hit of the report `pages` as offsets of "access". */
static bool apply(struct world *w, int64_t from, int64_t to, bool backfills)
{
    struct err e = {0};
    batcher_new_epoch(w->batcher, 0);
    world_hit(w, FIXTURE_PAGES, "/a", "2026-01-02T03:04", 1);
    *books_source(batcher_books(w->batcher, 0), BOOK_CONSUMED) = 1;
    *books_report(batcher_books(w->batcher, 0), FIXTURE_PAGES, BOOK_REPORT_PARSED) = 1;
    struct batch batch = *batcher_seal(w->batcher, "access", from, to);
    batch.backfills = backfills;
    batch.report = FIXTURE_PAGES;
    bool good = store_apply(w->store, &batch, &e);
    assert_int_equal(e.code, good ? 0 : EX_DATAERR);
    batcher_clear(w->batcher);
    return good;
}

static int64_t hits(struct world *w)
{
    return world_sum(w->store, FIXTURE_PAGES, SPAN_MONTH, world_every_series, 0, fixture_ms("2100-01-01"), 0);
}

/* Check the plan of `pages`: "0-20 30-40". */
static void check_plan(struct world *w, const char *expected)
{
    struct backfill_plan plan;
    struct err e;
    char found[256] = "";
    size_t len = 0;
    assert_true(backfill_plan(&plan, w->store, FIXTURE_PAGES, NULL, &e));
    for (size_t i = 0; i < plan.stretch_count; i++) {
        const struct backfill_stretch *s = &plan.stretches[i];
        assert_string_equal(plan.positions[s->position].range.source, "access");
        len += (size_t)snprintf(found + len, sizeof found - len, "%s%lld-%lld", i > 0 ? " " : "",
                                (long long)s->from, (long long)s->to);
        assert_int_equal(s->latest_ms, INT64_MAX);
    }
    backfill_plan_fini(&plan);
    assert_string_equal(found, expected);
}

static void test_what_was_not_counted_is_counted_once(void **state)
{
    struct world *w = *state;
    if (!w->store->writer->backfills)
        skip();
    check_plan(w, "");
    assert_true(apply(w, 500, 600, false));
    check_plan(w, "0-500");
    assert_false(apply(w, 550, 601, true)); /* ahead of the position */
    assert_false(apply(w, 400, 501, true));
    assert_true(apply(w, 0, 200, true));
    check_plan(w, "200-500");
    assert_false(apply(w, 100, 200, true));
    assert_true(apply(w, 300, 500, true));
    check_plan(w, "200-300");
    assert_true(apply(w, 200, 300, true));
    check_plan(w, "");
    assert_int_equal(hits(w), 4);
    assert_int_equal(world_book(w->store, "access", "", "consumed"), 1);
    assert_int_equal(world_book(w->store, "access", "pages", "parsed"), 4);
    assert_int_equal(world_book(w->store, "access", "pages", "since"), 0);
    assert_int_equal(world_book(w->store, "access", "pages", "until"), 600);
    assert_int_equal(world_book(w->store, "access", "site", "since"), 500); /* it was not backfilled */
    assert_true(apply(w, 600, 700, false)); /* counting goes on at the position */
    check_plan(w, "");
}

/* A partition of a topic that was first counted at 500: what is before counts in the report alone. */
static void test_topic_may_have_more_than_was_counted(void **state)
{
    struct world *w = *state;
    struct err e;
    if (!w->store->writer->backfills || w->store->is_shared)
        skip();
    for (int i = 0; i < 4; i++) {
        static const int64_t ends[][3] = {{500, 500, 0}, {500, 600, 0}, {200, 500, 500}, {100, 200, 500}};
        batcher_new_epoch(w->batcher, 0);
        if (i > 0)
            world_hit(w, FIXTURE_PAGES, "/a", "2026-01-02T03:04", 1);
        struct batch batch = *batcher_seal(w->batcher, "access", ends[i][0], ends[i][1]);
        struct range range = batch.ranges[0];
        range.partition[0] = '3';
        batch.ranges = &range;
        batch.begun = ends[i][2];
        batch.backfills = batch.begun > 0;
        batch.report = FIXTURE_PAGES;
        assert_true(store_apply(w->store, &batch, &e));
        batcher_clear(w->batcher);
        struct backfill_plan plan;
        assert_true(backfill_plan(&plan, w->store, FIXTURE_PAGES, NULL, &e));
        assert_int_equal(plan.stretch_count, 1);
        assert_int_equal(plan.stretches[0].from, 0);
        assert_int_equal(plan.stretches[0].to, i < 2 ? 500 : ends[i][0]);
        assert_int_equal(plan.stretches[0].begun, 500);
        backfill_plan_fini(&plan);
    }
    assert_int_equal(hits(w), 3);
}

static void test_source_that_was_never_counted_is_refused(void **state)
{
    struct world *w = *state;
    if (!w->store->writer->backfills)
        skip();
    assert_false(apply(w, 0, 10, true));
    assert_int_equal(hits(w), 0);
}

int main(void)
{
    const struct CMUnitTest alone[] = {
        cmocka_unit_test(test_entries_say_what_was_counted),
        cmocka_unit_test(test_gap_is_the_one_around_the_offsets),
    };
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_what_was_not_counted_is_counted_once, world_setup,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(test_topic_may_have_more_than_was_counted, world_setup,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(test_source_that_was_never_counted_is_refused, world_setup,
                                        world_teardown),
    };
    int failed = cmocka_run_group_tests(alone, NULL, NULL);
    for (size_t i = 0; i < world_kind_count(); i++) {
        world_kind = &world_kinds[i];
        failed += cmocka_run_group_tests_name(world_kind->name, tests, NULL, NULL);
    }
    return failed;
}
