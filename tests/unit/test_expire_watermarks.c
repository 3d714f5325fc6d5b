/* Expiry watermarks: moved by a clock that leaps, damaged, or of many reports. */
#include "base/clock.h"
#include "daemon/count/event_time.h"
#include "daemon/count/writer.h"
#include "store/backend/backend.h"
#include "store/mongo/wire/client.h"
#include "tests/support/expiring.h"

#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define PAGES FIXTURE_PAGES

static bool expires_more(struct world *w, const char *now)
{
    struct err e;
    struct expired expired;
    if (!store_expire(w->store, fixture_ms(now), true, &expired, &e))
        fail_msg("%s", e.text);
    return expired.more;
}

/* So many that a look at all of them takes longer than a call, where there is nothing to do, too. */
static void test_many_reports_come_to_an_end(void **state)
{
    struct world *w = *state;
    struct report reports[40];
    struct err e;
    for (size_t i = 0; i < COUNT_OF(reports); i++) {
        reports[i] = w->reports[PAGES];
        snprintf(reports[i].name, sizeof reports[i].name, "pages_%zu", i);
        expiring_keep(&reports[i], "minute=48h hour=10d day=62d month=400d");
    }
    store_close(w->store);
    w->store = store_open(w->url, STORE_WRITE, reports, COUNT_OF(reports), &e);
    if (w->store == NULL)
        fail_msg("%s", e.text);
    for (int64_t until_ms = clock_mono_ms(&clock_system) + 20000; expires_more(w, "2026-03-17T10:20");)
        assert_true(clock_mono_ms(&clock_system) < until_ms);
}

/* ---- by the daemon's clock */

/* Events of that time, and of the two hours and the day before it. */
static void hit_until(struct world *w, int64_t now_ms)
{
    static const int64_t back_ms[] = {DAY_MS, 2 * HOUR_MS, HOUR_MS, 0};
    for (size_t i = 0; i < COUNT_OF(back_ms); i++)
        batcher_add(w->batcher, 0, PAGES, "/a", now_ms - back_ms[i], (int64_t[]){1, 1});
    world_apply(w, 1);
}

static struct watermarks watermarks_by(struct writer *w, const char *wall, int64_t mono_ms,
                                       struct clock *clock)
{
    struct err e;
    clock->fake_wall_ms = fixture_ms(wall);
    clock->fake_mono_ms = mono_ms;
    if (!writer_expire(w, &e))
        fail_msg("%s", e.text);
    return expiring_watermarks(w->store);
}

/* Events agree with it each time, as those of a machine of its own do. */
static void test_clock_that_leaps_is_believed_later(void **state)
{
    static const int64_t trust_ms = WRITER_EXPIRE_TRUST_MS;
    static const struct {
        const char *wall;
        int64_t mono_ms;
        bool moves;
    } rows[] = {{"2026-04-04T10:20", 0, true}, /* the first ones are believed */
                {"2026-04-10T10:20", WRITER_EXPIRE_MS, false},
                {"2036-04-04T10:20", 2 * WRITER_EXPIRE_MS, false},
                {"2026-04-05T10:20", 3 * WRITER_EXPIRE_MS, true}, /* it was set */
                {"2026-05-05T10:20", 4 * WRITER_EXPIRE_MS, false},
                {"2026-05-05T10:35", 2 * trust_ms, true},
                /* … and once more, when it has run for long */
                {"2036-05-05T10:40", 2 * trust_ms + 5 * MINUTE_MS, false},
                {"2026-05-06T10:30", 2 * trust_ms + 10 * MINUTE_MS, true}};
    struct world *w;
    struct clock clock = clock_fake(0);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        world_teardown(state);
        world_setup(state);
        w = *state;
        expiring_open(w, "minute=48h hour=10d day=62d");
        struct writer writer = {.store = w->store, .clock = &clock, .trust_at_ms = trust_ms};
        struct watermarks before = {0};
        for (size_t k = 0; k <= i; k++) {
            if (rows[k].moves || k == i) /* else they would be the newest ones from then on */
                hit_until(w, fixture_ms(rows[k].wall));
            struct watermarks after = watermarks_by(&writer, rows[k].wall, rows[k].mono_ms, &clock);
            if (rows[k].moves)
                assert_int_equal(after.before_ms[SPAN_MINUTE], expiring_minutes_from(w, rows[k].wall));
            else
                assert_memory_equal(&before, &after, sizeof before);
            before = after;
        }
        writer_fini(&writer);
    }
}

/* ---- by the newest events */

static int64_t now_by(struct world *w, const char *wall)
{
    struct event_time by;
    struct err e;
    if (!event_time(w->store, fixture_ms(wall), &by, &e))
        fail_msg("%s", e.text);
    assert_true(by.now_ms <= fixture_ms(wall));
    return by.now_ms;
}

/* The watermark of hours, or of days if documents hold days. */
static int64_t bucket_of(const char *at)
{
    bool is_days = world_is_in_server() && world_kind->layout == LAYOUT_DAY;
    return span_floor(is_days ? SPAN_DAY : SPAN_HOUR, fixture_ms(at));
}

static void test_clock_is_right_only_within_the_newest_events(void **state)
{
    struct world *w = *state;
    assert_int_equal(now_by(w, "2026-03-17T10:20"), 0); /* nothing was counted */
    hit_until(w, fixture_ms("2026-03-17T10:05"));
    assert_int_equal(now_by(w, "2026-03-17T10:20"), fixture_ms("2026-03-17T10:20"));
    assert_int_equal(now_by(w, "2026-03-17T10:59:59"), fixture_ms("2026-03-17T10:59:59"));
    assert_int_equal(now_by(w, "2026-03-18T00:00"), bucket_of("2026-03-17T10:05"));
    assert_int_equal(now_by(w, "2026-03-23T10:20"), bucket_of("2026-03-17T10:05")); /* six days ahead */
    assert_int_equal(now_by(w, "2026-03-10T10:20"), fixture_ms("2026-03-10T10:20"));
}

/* As those of a machine whose clock was wrong for seconds. */
static void test_events_that_are_alone_confirm_no_clock(void **state)
{
    struct world *w = *state;
    struct err e;
    hit_until(w, fixture_ms("2026-03-17T10:05"));
    hit_until(w, fixture_ms("2026-03-17T10:06"));
    world_hit(w, PAGES, "/b", "2026-03-23T10:05", 1);
    world_apply(w, 1);
    for (int housekeep = 0; housekeep < 2; housekeep++) {
        assert_int_equal(now_by(w, "2026-03-23T10:20"), bucket_of("2026-03-17T10:05"));
        assert_int_equal(now_by(w, "2026-03-17T10:20"), fixture_ms("2026-03-17T10:20"));
        assert_true(store_housekeep(w->store, true, &e));
    }
    hit_until(w, fixture_ms("2026-03-23T10:05")); /* of hours one behind the other */
    assert_int_equal(now_by(w, "2026-03-23T10:20"), fixture_ms("2026-03-23T10:20"));
}

/* Clock and events are ahead together, for hours: records still have the time of their broker. */
static void test_broker_knows_the_time(void **state)
{
    struct world *w = *state;
    struct clock clock = clock_fake(0);
    _Atomic int64_t broker_ms = fixture_ms("2026-03-17T10:20");
    expiring_open(w, "minute=48h hour=10d day=62d");
    hit_until(w, fixture_ms("2026-03-17T10:05"));
    hit_until(w, fixture_ms("2026-03-23T10:05"));
    struct writer writer = {.store = w->store, .clock = &clock, .broker_ms = &broker_ms};
    struct watermarks after = watermarks_by(&writer, "2026-03-23T10:20", 0, &clock);
    assert_int_equal(after.before_ms[SPAN_MINUTE], expiring_minutes_from(w, "2026-03-17T10:20"));
    atomic_store(&broker_ms, INT64_MAX); /* not all say it */
    after = watermarks_by(&writer, "2026-03-23T10:20", WRITER_EXPIRE_MS, &clock);
    assert_int_equal(after.before_ms[SPAN_MINUTE], expiring_minutes_from(w, "2026-03-23T10:20"));
    writer_fini(&writer);
}

/* As an earlier version left it behind. */
static void test_watermark_that_is_ahead_moves_back(void **state)
{
    struct world *w = *state;
    struct clock clock = clock_fake(0);
    struct err e;
    expiring_open(w, "minute=48h hour=10d day=62d");
    hit_until(w, fixture_ms("2026-03-17T10:05"));
    (void)expiring_run(w, fixture_ms("2026-03-23T10:20"));
    hit_until(w, fixture_ms("2026-03-17T10:25")); /* left out of minutes */
    assert_true(store_housekeep(w->store, true, &e));
    if (world_kind->on_disk)
        world_reopen(w);
    assert_int_equal(expiring_watermarks(w->store).before_ms[SPAN_MINUTE],
                     expiring_minutes_from(w, "2026-03-23T10:20"));
    struct writer writer = {.store = w->store, .clock = &clock};
    struct watermarks after = watermarks_by(&writer, "2026-03-17T10:30", 0, &clock);
    if (world_is_in_server()) { /* whose clock is the real one: not before what it says */
        assert_true(writer.watermark_is_ahead);
        assert_int_equal(after.before_ms[SPAN_MINUTE], expiring_minutes_from(w, "2026-03-23T10:20"));
    } else {
        assert_false(writer.watermark_is_ahead);
        assert_int_equal(after.before_ms[SPAN_MINUTE], fixture_ms("2026-03-17T11:00"));
        assert_int_equal(after.before_ms[SPAN_HOUR], fixture_ms("2026-03-13"));
        world_hit(w, PAGES, "/a", "2026-03-17T11:00", 1);
        world_hit(w, PAGES, "/a", "2026-03-17T12:05", 1);
        world_apply(w, 2);
        for (int housekeep = 0; housekeep < 2; housekeep++) {
            assert_int_equal(world_sum(w->store, PAGES, SPAN_MINUTE, world_every_series,
                                       fixture_ms("2026-03-17T11:00"), fixture_ms("2026-04-01"), 0),
                             2);
            assert_int_equal(world_sum(w->store, PAGES, SPAN_HOUR, world_every_series,
                                       fixture_ms("2026-03-13"), fixture_ms("2026-04-01"), 0),
                             10);
            assert_true(store_housekeep(w->store, true, &e));
        }
    }
    writer_fini(&writer);
}

static void test_wrong_clock_expires_nothing(void **state)
{
    struct world *w = *state;
    struct clock clock = clock_fake(0);
    expiring_open(w, "minute=48h hour=10d day=62d");
    hit_until(w, fixture_ms("2026-03-17T10:05"));
    struct writer writer = {.store = w->store, .clock = &clock, .retry = true};
    struct watermarks before = watermarks_by(&writer, "2026-03-17T10:20", 0, &clock);
    struct watermarks after = watermarks_by(&writer, "2026-03-23T10:20", WRITER_EXPIRE_MS, &clock);
    assert_int_equal(before.before_ms[SPAN_MINUTE], expiring_minutes_from(w, "2026-03-17T10:20"));
    assert_memory_equal(&before, &after, sizeof before);
    assert_true(writer.clock_is_ahead); /* and that was said */
    assert_int_equal(world_sum(w->store, PAGES, SPAN_MINUTE, world_every_series, after.before_ms[SPAN_MINUTE],
                               fixture_ms("2026-04-01"), 0),
                     4);
    (void)watermarks_by(&writer, "2026-03-17T10:21", 2 * WRITER_EXPIRE_MS, &clock);
    assert_false(writer.clock_is_ahead);
    writer_fini(&writer);
}

/* ---- of a store that fails */

struct failing {
    struct store store;
    struct err error; /* of its expire */
};

static bool fail_expire(struct store *st, int64_t now_ms, bool trusts_clock, struct expired *expired,
                        struct err *e)
{
    (void)now_ms, (void)trusts_clock, (void)expired;
    *e = ((struct failing *)st)->error;
    return e->code == 0;
}

static bool housekeep_well(struct store *st, bool all, struct err *e)
{
    (void)st, (void)all, (void)e;
    return true;
}

static bool expires_by(struct writer *w, int code)
{
    struct err e;
    struct failing *f = (struct failing *)w->store;
    f->error = (struct err){0};
    if (code != 0)
        (void)err_set(&f->error, code, "it fails");
    w->expire_at_ms = 0;
    return writer_expire(w, &e);
}

static void test_failure_to_let_go_ends_no_counting(void **state)
{
    static const struct store_writer_ops ops = {.expire = fail_expire, .housekeep = housekeep_well};
    struct failing f = {.store = {.writer = &ops}};
    struct clock clock = clock_fake(fixture_ms("2026-03-17"));
    struct writer w = {.store = &f.store, .clock = &clock};
    struct err e;
    (void)state;
    assert_true(expires_by(&w, EX_IOERR));
    assert_true(w.expire_is_failing);
    assert_true(writer_housekeep(&w, &e));
    assert_true(w.expire_is_failing); /* so that it is not said again */
    assert_true(expires_by(&w, 0));
    assert_false(w.expire_is_failing);
    assert_false(expires_by(&w, EX_DATAERR));
    writer_fini(&w);
}

/* ---- damage */

static bool is_sqlite(void)
{
    return strcmp(world_kind->scheme, "sqlite") == 0;
}

static void change(struct world *w, const char *sql)
{
    sqlite3 *db;
    assert_int_equal(sqlite3_open(strchr(w->url, ':') + 1, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
}

static void test_watermark_that_is_no_start_of_a_bucket_is_damage(void **state)
{
    struct world *w = *state;
    struct watermarks watermarks;
    struct err e = {0};
    if (!is_sqlite())
        return;
    expiring_open(w, "minute=48h");
    (void)expiring_run(w, fixture_ms("2026-03-17T10:20"));
    change(w, "UPDATE book SET value = value + 1024 WHERE entry = 'expired.minute'");
    assert_false(store_watermarks(w->store, PAGES, &watermarks, &e));
    assert_int_equal(e.code, EX_DATAERR);
}

static void test_rows_that_stay_are_damage(void **state)
{
    struct world *w = *state;
    struct expired expired;
    struct err e = {0};
    if (!is_sqlite())
        return;
    expiring_open(w, "minute=48h");
    world_hit(w, PAGES, "/a", "2026-03-14T10:05", 1);
    world_apply(w, 1);
    assert_true(store_housekeep(w->store, true, &e));
    change(w, "CREATE TRIGGER stay BEFORE DELETE ON hour_2 BEGIN SELECT RAISE(IGNORE); END");
    expiring_open(w, "minute=48h");
    bool good = true;
    for (int calls = 0; good && calls < 100; calls++) /* a slow disk takes a call's time before it deletes */
        good = store_expire(w->store, fixture_ms("2026-03-17T10:20"), true, &expired, &e);
    assert_false(good);
    assert_int_equal(e.code, EX_DATAERR);
}

/* ---- the documents of a server */

static void set_watermark(struct world *w, const char *span, const char *at, int64_t ms)
{
    struct err e;
    char path[32];
    bool matched;
    snprintf(path, sizeof path, "expired.%s", span);
    struct mongo_client *client = mongo_client_open(w->url, true, 0, &e);
    bson_t *filter = BCON_NEW("_id", BCON_UTF8("pages"));
    bson_t *update = BCON_NEW("$set", "{", path, BCON_DATE_TIME(fixture_ms(at) + ms), "}");
    assert_non_null(client);
    assert_true(mongo_update_one(client, "reports", filter, update, false, &matched, &e) && matched);
    bson_destroy(update);
    bson_destroy(filter);
    mongo_client_close(client);
}

static void test_watermark_by_another_hand_is_of_whole_buckets(void **state)
{
    struct world *w = *state;
    if (!world_is_in_server())
        return;
    set_watermark(w, "minute", "2026-03-17T10:20", 1024);
    set_watermark(w, "day", "2026-02-17T10:20", 1024);
    world_reopen(w);
    assert_int_equal(expiring_watermarks(w->store).before_ms[SPAN_MINUTE], fixture_ms("2026-03-17T10:20"));
    assert_int_equal(expiring_watermarks(w->store).before_ms[SPAN_DAY], fixture_ms("2026-02-17"));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, world_setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_many_reports_come_to_an_end),
        TEST(test_clock_that_leaps_is_believed_later),
        TEST(test_clock_is_right_only_within_the_newest_events),
        TEST(test_events_that_are_alone_confirm_no_clock),
        TEST(test_wrong_clock_expires_nothing),
        TEST(test_broker_knows_the_time),
        TEST(test_watermark_that_is_ahead_moves_back),
        TEST(test_watermark_that_is_no_start_of_a_bucket_is_damage),
        TEST(test_rows_that_stay_are_damage),
        TEST(test_watermark_by_another_hand_is_of_whole_buckets),
    };
    const struct CMUnitTest failures[] = {cmocka_unit_test(test_failure_to_let_go_ends_no_counting)};
    int failed = cmocka_run_group_tests_name("failures", failures, NULL, NULL);
    for (size_t i = 0; i < world_kind_count(); i++) {
        world_kind = &world_kinds[i];
        failed += cmocka_run_group_tests_name(world_kind->name, tests, NULL, NULL);
    }
    return failed;
}
