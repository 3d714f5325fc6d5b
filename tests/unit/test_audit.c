/* An audit finds the same in a store however few cells it takes at a time, and nothing in a whole one. */
#include "base/check.h"
#include "store/sqlite/vfs.h"
#include "tests/support/dice.h"
#include "tests/support/world.h"
#include "verify/audit.h"

#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define EVENTS           4000
#define EVENTS_OF_SERVER 1500
#define BATCHES          5

/* Some months of events of some series, mostly in one day, with the books that belong to them. */
static void fill(struct world *w, struct dice *d)
{
    int64_t begin_ms = fixture_ms("2015-05-17T00:00");
    const int events = world_is_in_server() ? EVENTS_OF_SERVER : EVENTS;
    for (int i = 0; i < events; i++) {
        struct books *books = batcher_books(w->batcher, 0);
        size_t report = (size_t)dice_roll(d, FIXTURE_COUNT);
        int64_t at_ms = begin_ms + dice_roll(d, (dice_roll(d, 3) > 0 ? 1 : 100) * (int64_t)DAY_MS);
        int64_t values[] = {1, dice_roll(d, 5000)};
        char key[32];
        snprintf(key, sizeof key,
                 report == FIXTURE_CLIENTS ? "h%d\x1fGET\x1f"
                                             "200"
                                           : "/%d",
                 (int)dice_roll(d, 300));
        batcher_add(w->batcher, 0, report, report == FIXTURE_SITE ? "" : key, at_ms, values);
        ++*books_source(books, BOOK_CONSUMED);
        ++*books_source(books, BOOK_PARSED);
        ++*books_report(books, report, BOOK_REPORT_PARSED);
        ++*books_report(books, report, BOOK_COUNTED);
        if (i % (events / BATCHES) == events / BATCHES - 1)
            world_apply(w, 1000);
    }
    struct err e;
    if (world_is_in_server() && !store_housekeep(w->store, true, &e)) /* else a batch is under way */
        fail_msg("%s", e.text);
}

struct found {
    uint64_t compared, differences;
};

static struct found audit(struct world *w, size_t cells_max)
{
    struct err e;
    struct audit a;
    char *said;
    size_t len;
    FILE *out = open_memstream(&said, &len);
    struct store *st = !world_kind->on_disk ? w->store : store_open(w->url, STORE_READ, NULL, 0, &e);
    assert_non_null(st);
    audit_init(&a, st, out);
    a.cells_max = cells_max;
    if (!audit_store(&a, &e))
        fail_msg("%s", e.text);
    const struct found found = {a.compared, a.differences};
    audit_fini(&a);
    if (st != w->store)
        store_close(st);
    fclose(out);
    if (found.differences == 0)
        assert_null(strstr(said, "more like these"));
    free(said);
    return found;
}

static const size_t sizes[] = {1, 7, 100, 1000, 100000};

static void test_pieces_of_any_size_find_the_same(void **state)
{
    struct world *w = *state;
    struct dice d = dice_new("audit");
    fill(w, &d);
    const struct found whole = audit(w, AUDIT_CELLS_MAX);
    assert_int_equal(whole.differences, 0);
    assert_true(whole.compared > (world_is_in_server() ? EVENTS_OF_SERVER : EVENTS) / 2);
    for (size_t i = world_is_in_server() ? 3 : 0; i < COUNT_OF(sizes); i++) {
        const struct found found = audit(w, sizes[i]);
        assert_int_equal(found.differences, 0);
        assert_int_equal(found.compared, whole.compared);
    }
}

static void run_sql(struct world *w, const char *sql)
{
    sqlite3 *db;
    assert_int_equal(
        sqlite3_open_v2(w->url + strlen("sqlite:"), &db, SQLITE_OPEN_READWRITE, sqlite_vfs_name()),
        SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    assert_true(sqlite3_total_changes(db) > 0);
    sqlite3_close(db);
}

static void test_pieces_of_any_size_find_what_is_lost(void **state)
{
    static const char *const losses[] = {"DELETE FROM hour_2 WHERE at = (SELECT max(at) FROM hour_2)",
                                         "DELETE FROM month_3 WHERE at = (SELECT min(at) FROM month_3)",
                                         "DELETE FROM day_2"};
    struct world *w = *state;
    struct dice d = dice_new("audit");
    uint64_t before = 0;
    fill(w, &d);
    for (size_t i = 0; i < COUNT_OF(losses); i++) {
        run_sql(w, losses[i]);
        const struct found whole = audit(w, AUDIT_CELLS_MAX);
        assert_true(whole.differences > before);
        before = whole.differences;
        for (size_t s = 0; s < COUNT_OF(sizes); s++)
            assert_int_equal(audit(w, sizes[s]).differences, whole.differences);
    }
}

/* Months that have too many cells are read day by day. */
static void test_newest_events_in_pieces_of_any_size(void **state)
{
    struct world *w = *state;
    struct dice d = dice_new("audit");
    struct report *r = &w->reports[FIXTURE_PAGES];
    struct err e;
    free(r->definition);
    r->definition = NULL;
    r->newest = 3;
    r->generation++;
    assert_true(report_finish(r, &e));
    world_reopen(w);
    fill(w, &d);
    const struct found sound = audit(w, AUDIT_CELLS_MAX);
    assert_int_equal(sound.differences, 0);
    run_sql(w, "DELETE FROM recent_4 WHERE at = (SELECT max(at) FROM recent_4)");
    const struct found whole = audit(w, AUDIT_CELLS_MAX);
    assert_int_equal(whole.differences, 1);
    for (size_t s = 0; s < COUNT_OF(sizes); s++) {
        const struct found found = audit(w, sizes[s]);
        assert_int_equal(found.differences, whole.differences);
        assert_int_equal(found.compared, whole.compared);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)

int main(void)
{
    const struct CMUnitTest alike[] = {TEST(test_pieces_of_any_size_find_the_same)};
    const struct CMUnitTest of_rows[] = {TEST(test_pieces_of_any_size_find_what_is_lost),
                                         TEST(test_newest_events_in_pieces_of_any_size)};
    int failed = 0;
    for (size_t i = 0; i < world_kind_count(); i++) {
        world_kind = &world_kinds[i];
        failed += cmocka_run_group_tests_name(world_kind->name, alike, NULL, NULL);
        if (strcmp(world_kind->name, "sqlite") == 0)
            failed += cmocka_run_group_tests_name(world_kind->name, of_rows, NULL, NULL);
    }
    return failed;
}
