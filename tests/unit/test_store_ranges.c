/* A batch of several ranges, asked of every store: all of it is applied or nothing is. */
#include "store/builds.h"
#include "tests/support/world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

/* A batch of what the batcher holds , of two partitions: 10 messages of one and 20 of the other. */
struct pair {
    struct range ranges[2];
    struct books books[2];
    struct batch batch;
};

static void make_pair(struct world *w, struct pair *p, int64_t from0, int64_t from1)
{
    p->batch = *batcher_seal(w->batcher, "kafka:access", from0, from0 + 10);
    for (int i = 0; i < 2; i++) {
        p->ranges[i] = *batcher_range(w->batcher);
        snprintf(p->ranges[i].partition, sizeof p->ranges[i].partition, "%d", i);
        books_init(&p->books[i], FIXTURE_COUNT);
    }
    p->ranges[1].from = from1;
    p->ranges[1].to = from1 + 20;
    p->ranges[1].latest_ms = from1 < 540 ? 4000 : 5000;
    p->ranges[1].latest_from = from1 < 540 ? 500 : from1;
    p->ranges[1].builds.of[BUILD_GEO] = from1 < 540 ? 7 : 8;
    p->ranges[1].builds.of[BUILD_AGENTS] = -1; /* a hash may be any number */
    *books_source(&p->books[0], BOOK_CONSUMED) = *books_source(&p->books[0], BOOK_PARSED) = 10;
    *books_source(&p->books[1], BOOK_CONSUMED) = 20;
    *books_source(&p->books[1], BOOK_REJECTED + REJECT_FUTURE) = 20;
    p->batch.ranges = p->ranges;
    p->batch.books = p->books;
    p->batch.range_count = 2;
}

static bool apply_pair(struct world *w, int64_t from0, int64_t from1)
{
    struct pair p;
    struct err e;
    make_pair(w, &p, from0, from1);
    bool good = store_apply(w->store, &p.batch, &e);
    assert_true(good || e.code == EX_DATAERR);
    books_fini(&p.books[0]);
    books_fini(&p.books[1]);
    batcher_clear(w->batcher);
    return good;
}

struct partitions {
    int64_t next[2], consumed[2], rejected[2], since[2];
    int latest;
    int64_t latest_to;
    int64_t geo7, geo8, agents, builds;
};

static bool note_next(void *context, const struct position *p)
{
    struct partitions *all = context;
    assert_string_equal(p->range.source, "kafka:access");
    all->next[p->range.partition[0] - '0'] = p->range.to;
    return true;
}

static bool note_book(void *context, const char *source, const char *partition, const char *report,
                      const char *entry, int64_t value)
{
    struct partitions *all = context;
    int p = partition[0] - '0';
    assert_string_equal(source, "kafka:access");
    if (strcmp(entry, "consumed") == 0)
        all->consumed[p] = value;
    else if (strcmp(entry, "rejected.future") == 0)
        all->rejected[p] = value;
    else if (strcmp(report, "pages") == 0 && strcmp(entry, "since") == 0)
        all->since[p] = value;
    else if (strcmp(entry, "latest.500.4000") == 0)
        all->latest_to = value;
    else if (strncmp(entry, "latest.", 7) == 0)
        all->latest += p == 1;
    struct build_stretch s;
    if (!build_read(entry, value, &s))
        return true;
    all->builds++;
    all->geo7 = strcmp(entry, "geo.500.7") == 0 ? value : all->geo7;
    all->geo8 = strcmp(entry, "geo.540.8") == 0 ? value : all->geo8;
    all->agents = strcmp(entry, "agents.500.ffffffffffffffff") == 0 ? value : all->agents;
    assert_int_equal(p, 1);
    return true;
}

static void check_pair(struct world *w, int64_t times, int64_t hits)
{
    struct partitions all = {.since = {-1, -1}};
    struct err e;
    assert_true(store_positions(w->store, note_next, &all, &e));
    assert_true(store_books(w->store, note_book, &all, &e));
    assert_int_equal(all.next[0], times > 0 ? 100 + 10 * times : 0);
    assert_int_equal(all.next[1], times > 0 ? 500 + 20 * times : 0);
    assert_int_equal(all.consumed[0], 10 * times);
    assert_int_equal(all.consumed[1], 20 * times);
    assert_int_equal(all.rejected[0], 0);
    assert_int_equal(all.rejected[1], 20 * times);
    assert_int_equal(all.since[0], times > 0 ? 100 : -1);
    assert_int_equal(all.since[1], times > 0 ? 500 : -1);
    assert_int_equal(all.latest_to, times > 0 ? 500 + 20 * (times < 2 ? times : 2) : 0);
    assert_int_equal(all.latest, times > 2); /* one entry as long as the latest time is the same */
    assert_int_equal(all.geo7, times > 0 ? 500 + 20 * (times < 2 ? times : 2) : 0);
    assert_int_equal(all.geo8, times > 2 ? 560 : 0);
    assert_int_equal(all.agents, times > 0 ? 500 + 20 * times : 0);
    assert_int_equal(all.builds, times > 2 ? 3 : times > 0 ? 2 : 0);
    assert_int_equal(
        world_sum(w->store, FIXTURE_PAGES, SPAN_MONTH, world_every_series, 0, fixture_ms("2100-01-01"), 0),
        hits);
}

/* Two partitions of one flush: both or none, each with its own position and books. */
static void test_ranges_of_a_batch_are_one(void **state)
{
    struct world *w = *state;
    struct err e;
    check_pair(w, 0, 0);
    for (int64_t i = 0; i < 2; i++) {
        world_hit(w, FIXTURE_PAGES, "/a", "2015-05-17T10:05", 1);
        assert_true(apply_pair(w, 100 + 10 * i, 500 + 20 * i));
        check_pair(w, i + 1, i + 1);
    }
    static const int64_t bad[][2] = {{120, 541}, {121, 540}, {100, 540}, {120, 500}, {0, 0}};
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        uint32_t number;
        bool found;
        batcher_new_epoch(w->batcher, 0);
        world_hit(w, FIXTURE_PAGES, "/new", "2015-05-17T10:05", 1);
        assert_false(apply_pair(w, bad[i][0], bad[i][1]));
        check_pair(w, 2, 2);
        assert_true(store_series_find(w->store, FIXTURE_PAGES, slice_text("/new"), &number, &found, &e));
        assert_false(found);
    }
    batcher_new_epoch(w->batcher, 0);
    world_hit(w, FIXTURE_PAGES, "/new", "2015-05-17T10:05", 1);
    assert_true(apply_pair(w, 120, 540));
    check_pair(w, 3, 3);
}

static void test_entries_of_builds_end_with_their_numbers(void **state)
{
    static const char *const others[] = {"geo.1",        "geo.1.2x",       "geo.1.2.3", "asn.1.2 ",
                                         "agents.1.abg", "agents.1.ab.cd", "age.1.2",   "agents.x.1"};
    struct build_stretch s;
    (void)state;
    assert_true(build_read("asn.5.70", 9, &s));
    assert_true(s.kind == BUILD_ASN && s.from == 5 && s.build == 70 && s.to == 9);
    assert_true(build_read("agents.5.00000000000000ab", 9, &s));
    assert_true(s.kind == BUILD_AGENTS && s.from == 5 && s.build == 0xab && s.to == 9);
    for (size_t i = 0; i < COUNT_OF(others); i++)
        assert_false(build_read(others[i], 9, &s));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_ranges_of_a_batch_are_one, world_setup, world_teardown),
        cmocka_unit_test(test_entries_of_builds_end_with_their_numbers),
    };
    int failed = 0;
    for (size_t i = 0; i < world_kind_count(); i++) {
        world_kind = &world_kinds[i];
        failed += cmocka_run_group_tests_name(world_kind->name, tests, NULL, NULL);
    }
    return failed;
}
