/* Buckets that reports need not keep expire, and nothing else: in every store, over simulated weeks. */
#include "aggregate/keep.h"
#include "query/plan.h"
#include "query/query.h"
#include "query/ranking.h"
#include "store/sqlite/vfs.h"
#include "tests/support/dice.h"
#include "tests/support/expiring.h"
#include "tests/support/model.h"
#include "tests/support/world.h"

#include <inttypes.h>
#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

#include <cmocka.h>

#define PAGES FIXTURE_PAGES
#define HITS  0

#define COUNTS_AN_HOUR 600

static void nothing(void *context, uint32_t series, int64_t bucket_ms, const int64_t *values)
{
    (void)context, (void)series, (void)bucket_ms, (void)values;
}

static bool may_scan(struct store *st, enum span resolution, int64_t from_ms, int64_t to_ms)
{
    struct err e;
    struct scan_stats stats = {0};
    struct scan scan = {PAGES, resolution, from_ms, to_ms, world_every_series, UINT64_MAX, 0, NULL};
    if (store_scan(st, &scan, nothing, NULL, &stats, &e))
        return true;
    assert_int_equal(e.code, EX_UNAVAILABLE);
    assert_true(e.retryable);
    return false;
}

static int64_t hits(struct world *w, enum span resolution, const char *from, const char *to)
{
    return world_sum(w->store, PAGES, resolution, world_every_series, fixture_ms(from), fixture_ms(to), HITS);
}

/* ---- the configuration's words */

static void test_spans_go_by_whole_longer_ones(void **state)
{
    struct report r = {.layout = LAYOUT_DAY};
    int64_t now_ms = fixture_ms("2026-03-17T10:20:30");
    (void)state;
    expiring_keep(&r, "minute=48h hour=62d day=100d month=800d");
    assert_int_equal(keep_from(&r, SPAN_MINUTE, now_ms), fixture_ms("2026-03-15T10:00"));
    assert_int_equal(keep_from(&r, SPAN_HOUR, now_ms), fixture_ms("2026-01-14"));
    assert_int_equal(keep_from(&r, SPAN_DAY, now_ms), fixture_ms("2025-12-01"));
    assert_int_equal(keep_from(&r, SPAN_MONTH, now_ms), fixture_ms("2024-01-01"));
    assert_int_equal(keep_from(&r, SPAN_HOUR, DAY_MS), 0);
    expiring_keep(&r, "minute=48h");
    assert_int_equal(keep_from(&r, SPAN_HOUR, now_ms), 0);
    assert_true(keep_is_limited(&r));
    expiring_keep(&r, "minute=forever");
    assert_false(keep_is_limited(&r));
}

static void test_longer_spans_are_kept_as_long(void **state)
{
    static const struct {
        enum report_layout layout;
        int64_t second_ms, minute_ms, hour_ms, day_ms;
        const char *words; /* NULL: good */
    } rows[] = {{LAYOUT_DAY, 0, HOUR_MS, HOUR_MS, 0, NULL},
                {LAYOUT_DAY, 0, 0, DAY_MS, 0, "of minutes forever and of hours 1d"},
                {LAYOUT_DAY, 0, 2LL * DAY_MS, DAY_MS, 0, "of minutes 2d and of hours 1d"},
                {LAYOUT_DAY, 0, DAY_MS, 0, DAY_MS, "of hours forever and of days 1d"},
                {LAYOUT_DAY, HOUR_MS, DAY_MS, 0, 0, "with `layout: minute` only"},
                {LAYOUT_MINUTE, HOUR_MS, DAY_MS, 0, 0, NULL},
                {LAYOUT_MINUTE, 0, DAY_MS, 0, 0, "of seconds forever and of minutes 1d"}};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct err e = {0};
        struct report r = {
            .layout = rows[i].layout,
            .keep_ms = {rows[i].second_ms, rows[i].minute_ms, rows[i].hour_ms, rows[i].day_ms}};
        assert_int_equal(keep_check(&r, &e), rows[i].words == NULL);
        assert_true(rows[i].words == NULL || strstr(e.text, rows[i].words) != NULL);
    }
}

static void test_texts_that_are_no_keep_are_refused(void **state)
{
    static const char *const texts[] = {
        "",   "48", "h",    "-1h", "1w",   "48 h",     "59s",
        "0m", "1x", "1.5h", "1hh", "ever", "9999999d", "99999999999999999999d"};
    struct report r = {.layout = LAYOUT_DAY};
    struct err e;
    (void)state;
    for (size_t i = 0; i < COUNT_OF(texts); i++)
        assert_false(keep_set(&r, slice_text("minute"), slice_text(texts[i]), &e));
    assert_false(keep_set(&r, slice_text("week"), slice_text("1d"), &e));
    assert_false(keep_set(&r, slice_text("hour"), slice_text("59m"), &e));
    assert_false(keep_is_limited(&r));
}

/* ---- of every store */

static void test_watermarks_are_there_before_anything_goes(void **state)
{
    struct world *w = *state;
    expiring_open(w, "minute=48h hour=10d");
    world_hit(w, PAGES, "/a", "2026-03-14T10:05", 1);
    world_hit(w, PAGES, "/a", "2026-03-15T09:59", 1);
    world_hit(w, PAGES, "/a", "2026-03-15T10:00", 1);
    world_hit(w, PAGES, "/a", "2026-03-17T10:00", 1);
    world_apply(w, 4);
    assert_true(may_scan(w->store, SPAN_MINUTE, 0, fixture_ms("2026-04-01")));
    (void)expiring_run(w, fixture_ms("2026-03-17T10:20"));
    int64_t watermark_ms = expiring_watermarks(w->store).before_ms[SPAN_MINUTE];
    assert_int_equal(watermark_ms, expiring_minutes_from(w, "2026-03-17T10:20"));
    assert_false(may_scan(w->store, SPAN_MINUTE, watermark_ms - MINUTE_MS, fixture_ms("2026-04-01")));
    assert_false(may_scan(w->store, SPAN_MINUTE, 0, MINUTE_MS));
    assert_true(may_scan(w->store, SPAN_MINUTE, 0, 0)); /* of nothing, nothing is missing */
    assert_int_equal(hits(w, SPAN_MINUTE, "2026-03-15T10:00", "2026-04-01"), 2);
    assert_int_equal(hits(w, SPAN_HOUR, "2026-03-14", "2026-04-01"), 4);
    assert_int_equal(hits(w, SPAN_DAY, "2026-01-01", "2026-04-01"), 4);
    assert_int_equal(hits(w, SPAN_MONTH, "2026-01-01", "2026-04-01"), 4);
}

static void test_watermarks_never_go_back(void **state)
{
    struct world *w = *state;
    struct watermarks before, after;
    expiring_open(w, "minute=48h hour=10d");
    (void)expiring_run(w, fixture_ms("2026-03-17T10:20"));
    before = expiring_watermarks(w->store);
    (void)expiring_run(w, fixture_ms("2026-03-10"));
    after = expiring_watermarks(w->store);
    assert_memory_equal(&before, &after, sizeof before);
    if (!world_kind->on_disk)
        return;
    expiring_open(w, "minute=100d hour=200d"); /* what is gone is gone */
    after = expiring_watermarks(w->store);
    assert_memory_equal(&before, &after, sizeof before);
    (void)expiring_run(w, fixture_ms("2026-03-18"));
    after = expiring_watermarks(w->store);
    assert_memory_equal(&before, &after, sizeof before);
    expiring_open(w, "minute=24h hour=10d");
    (void)expiring_run(w, fixture_ms("2026-03-18"));
    assert_int_equal(expiring_watermarks(w->store).before_ms[SPAN_MINUTE],
                     expiring_minutes_from(w, "2026-03-18"));
    struct err e;
    struct store *reader = store_open(w->url, STORE_READ, NULL, 0, &e);
    assert_non_null(reader);
    before = expiring_watermarks(w->store);
    after = expiring_watermarks(reader);
    assert_memory_equal(&before, &after, sizeof before);
    store_close(reader);
}

/* As live batches bring them, and as those of an import do. */
static void test_late_events_count_in_longer_spans(void **state)
{
    struct world *w = *state;
    struct err e;
    expiring_open(w, "minute=48h hour=10d day=62d");
    (void)expiring_run(w, fixture_ms("2026-03-17T10:20"));
    int64_t seconds = report_cell(&w->reports[PAGES]) == SPAN_SECOND ? 1 : 0;
    bool is_kept = fixture_ms("2026-03-15T09:59") >= expiring_watermarks(w->store).before_ms[SPAN_MINUTE];
    for (int many = 0; many < 2; many++) {
        world_hit(w, PAGES, "/a", "2026-03-15T09:59", 1); /* no minute any more */
        world_hit(w, PAGES, "/a", "2026-03-01T09:59", 1); /* no hour */
        world_hit(w, PAGES, "/a", "2025-10-01T09:59", 1); /* no day */
        for (int i = 0; many == 1 && i < 20; i++) {
            char at[32];
            snprintf(at, sizeof at, "2026-03-16T09:%02d", i);
            world_hit(w, PAGES, "/b", at, 1);
        }
        world_apply(w, 3);
        assert_int_equal(world_book(w->store, "", "pages", "late.second"), seconds * 3 * (many + 1));
        assert_int_equal(world_book(w->store, "", "pages", "late.minute"), (3 - is_kept) * (many + 1));
        assert_int_equal(world_book(w->store, "", "pages", "late.hour"), 2 * (many + 1));
        assert_int_equal(world_book(w->store, "", "pages", "late.day"), many + 1);
        for (int housekeep = 0; housekeep < 2; housekeep++) {
            assert_int_equal(hits(w, SPAN_MINUTE, "2026-03-15T10:00", "2026-04-01"), many * 20);
            assert_int_equal(hits(w, SPAN_HOUR, "2026-03-08", "2026-04-01"), 1 + many * 21);
            assert_int_equal(hits(w, SPAN_DAY, "2026-03-01", "2026-04-01"), 2 + many * 22);
            assert_int_equal(hits(w, SPAN_MONTH, "2025-01-01", "2026-04-01"), 3 + many * 23);
            assert_true(store_housekeep(w->store, true, &e));
            assert_int_equal(expiring_run(w, fixture_ms("2026-03-17T10:20")), 0);
        }
    }
}

/* ---- weeks */

struct game {
    struct world *world;
    struct dice dice;
    struct model model;
    char keys[150][16];
};

static int64_t roll(struct game *g, int64_t below)
{
    return dice_roll(&g->dice, below);
}

/* Mostly of now; some late by hours, days or months, which are then not let in where months are gone. */
static void play_batch(struct game *g, int64_t now_ms)
{
    struct world *w = g->world;
    int64_t month_ms = expiring_watermarks(w->store).before_ms[SPAN_MONTH];
    int64_t back_ms = roll(g, 4) == 0 ? 200LL * DAY_MS : 10LL * MINUTE_MS;
    for (int64_t i = 0, counts = roll(g, 40); i < counts; i++) {
        const char *key = g->keys[roll(g, COUNT_OF(g->keys))];
        int64_t at_ms = now_ms - roll(g, back_ms), values[] = {1, roll(g, 100)};
        if (at_ms < month_ms)
            continue;
        batcher_add(w->batcher, (uint32_t)roll(g, WORLD_SHARDS), PAGES, key, at_ms, values);
        model_add(&g->model, PAGES, key, at_ms, values);
    }
    world_apply(w, 1);
}

static void check_scan(struct game *g, struct store *st, int64_t now_ms)
{
    enum span cell = report_cell(&st->reports[PAGES]);
    enum span resolution = cell + (enum span)roll(g, SPAN_COUNT - (int)cell);
    struct watermarks watermarks = expiring_watermarks(st);
    int64_t from_ms =
        span_floor(resolution, now_ms - roll(g, roll(g, 2) == 0 ? 3LL * DAY_MS : 400LL * DAY_MS));
    int64_t to_ms = plan_ceil(resolution, from_ms + roll(g, 40LL * DAY_MS));
    bool may = may_scan(st, resolution, from_ms, to_ms);
    assert_int_equal(may, from_ms >= watermarks.before_ms[resolution] || from_ms == to_ms);
    if (may)
        assert_int_equal(world_sum(st, PAGES, resolution, world_every_series, from_ms, to_ms, 1),
                         model_sum(&g->model, PAGES, NULL, NULL, from_ms, to_ms, 1));
}

static void test_what_is_left_equals_a_naive_recount(void **state)
{
    static const char *const keeps[] = {"minute=2d hour=20d day=62d", "minute=3h hour=1d day=31d month=120d"};
    struct game g = {.world = *state, .dice = dice_new(world_kind->name)};
    struct err e;
    int64_t now_ms = fixture_ms("2026-01-20T07:11");
    for (size_t i = 0; i < COUNT_OF(g.keys); i++)
        snprintf(g.keys[i], sizeof g.keys[i], "/page/%zu", i);
    expiring_open(g.world, keeps[roll(&g, 2)]);
    for (int round = 0; round < (world_is_in_server() ? 30 : 300); round++) {
        now_ms += roll(&g, 12) == 0 ? 5LL * DAY_MS : roll(&g, 6LL * HOUR_MS);
        play_batch(&g, now_ms);
        if (roll(&g, 3) == 0)
            assert_true(store_housekeep(g.world->store, roll(&g, 2) == 0, &e));
        if (roll(&g, 3) == 0)
            (void)expiring_run(g.world, now_ms + (roll(&g, 6) == 0 ? roll(&g, 40LL * DAY_MS) : 0));
        if (roll(&g, 3) == 0)
            assert_true(store_move_back(g.world->store, PAGES, now_ms, &e));
        if (world_kind->on_disk && roll(&g, 20) == 0)
            world_reopen(g.world);
        for (int i = 0; i < 6; i++)
            check_scan(&g, g.world->store, now_ms);
    }
    model_free(&g.model);
}

/* ---- questions */

static bool ask(struct world *w, const char *const *words, struct text *out, struct err *e)
{
    static const struct query_limits limits = {
        .rows_max = UINT64_MAX, .points_max = 10000, .series_max = 1000};
    struct query q;
    struct query_stats stats;
    query_init(&q, fixture_ms("2026-03-17T10:20"), &limits);
    for (; words[0] != NULL; words += 2)
        assert_true(query_set(&q, slice_text(words[0]), slice_text(words[1]), e));
    q.format = QUERY_CSV;
    text_clear(out);
    return query_run(w->store, &q, out, &stats, e);
}

/* `words`: NULL where there is an answer, else what the refusal says. */
static void check_question(struct world *w, const char *from, const char *step, const char *tz,
                           const char *words)
{
    struct text out = {0};
    struct err e = {0};
    const char *const all[] = {
        "report", "pages", "from", from, "to", "2026-03-18", "tz", tz, step == NULL ? NULL : "step",
        step,     NULL};
    bool good = ask(w, all, &out, &e);
    if (good != (words == NULL) || (words != NULL && strstr(e.text, words) == NULL))
        fail_msg("from %s by %s: %s", from, step != NULL ? step : "one row", good ? out.ptr : e.text);
    assert_true(good || (e.code == EX_UNAVAILABLE && !e.retryable));
    text_fini(&out);
}

static void test_questions_are_answered_from_longer_buckets(void **state)
{
    struct world *w = *state;
    expiring_open(w, "minute=48h hour=10d day=62d");
    world_hit(w, PAGES, "/a", "2026-02-10T09:59", 1);
    world_hit(w, PAGES, "/a", "2026-03-16T09:59", 1);
    world_apply(w, 2);
    (void)expiring_run(w, fixture_ms("2026-03-17T10:20")); /* hours from the 7th on, days from January on */
    check_question(w, "2026-03-16", "minute", "UTC", NULL);
    check_question(w, "2026-03-14", "minute", "UTC", "or by hour");
    check_question(w, "2026-03-14", "90m", "UTC", "or by 6h"); /* they begin within hours */
    check_question(w, "2026-03-14", "hour", "UTC", NULL);
    check_question(w, "2026-03-14T10:30", "hour", "UTC", NULL);
    check_question(w, "2026-03-14T10:30", NULL, "UTC", "of whole hours of UTC");
    check_question(w, "2026-03-14T10:00", NULL, "UTC", NULL);
    check_question(w, "2026-03-01", "hour", "UTC", "or by day");
    check_question(w, "2026-03-01", "day", "Europe/Berlin", "or in UTC"); /* its days begin with an hour */
    check_question(w, "2026-03-01", NULL, "UTC", NULL);
    check_question(w, "2026-03-01T01:00", NULL, "UTC", "of whole days of UTC");
    check_question(w, "2025-12-01", "day", "UTC", "or by month");
    check_question(w, "2025-12-01", "month", "UTC", NULL);
    check_question(w, "2025-12-03", "week", "UTC", "or by month");
}

/* Its answer has these words. */
static void check_ranking(struct world *w, const char *from, const char *to, const char *words)
{
    static const struct query_limits limits = {
        .rows_max = UINT64_MAX, .points_max = 10000, .series_max = 1000};
    const char *const all[][2] = {{"report", "pages"}, {"from", from}, {"to", to}};
    struct query q;
    struct text out = {0};
    struct err e;
    query_init(&q, fixture_ms("2026-03-17T10:20"), &limits);
    for (size_t i = 0; i < COUNT_OF(all); i++)
        assert_true(ranking_set(&q, slice_text(all[i][0]), slice_text(all[i][1]), &e));
    q.top = 3;
    q.format = QUERY_JSON;
    assert_true(ranking_run(w->store, &q, &out, &e));
    if (strstr(out.ptr, words) == NULL)
        fail_msg("from %s to %s: found %s, expected %s", from, to, out.ptr, words);
    text_fini(&out);
}

static void test_ranking_compares_with_what_is_kept(void **state)
{
    struct world *w = *state;
    expiring_open(w, "minute=48h hour=10d");
    world_hit(w, PAGES, "/a", "2026-02-20T09:05", 1);
    world_hit(w, PAGES, "/a", "2026-03-12T13:05", 1);
    world_hit(w, PAGES, "/a", "2026-03-12T13:45", 1);
    world_hit(w, PAGES, "/a", "2026-03-16T10:05", 1);
    world_apply(w, 4);
    (void)expiring_run(w, fixture_ms("2026-03-17T10:20")); /* minutes from the 15th on, hours from the 7th */
    check_ranking(
        w, "2026-03-15", "2026-03-17T10:20",
        "\"before\":{\"from\":\"2026-03-12T13:00:00Z\",\"to\":\"2026-03-15T00:00:00Z\",\"total\":2}");
    check_ranking(
        w, "2026-03-01", "2026-03-17T10:20",
        "\"before\":{\"from\":\"2026-02-12T00:00:00Z\",\"to\":\"2026-03-01T00:00:00Z\",\"total\":1}");
    /* Its end is in the middle of an hour without minutes. */
    check_ranking(w, "2026-03-16T00:01", "2026-03-17T10:20", "\"before\":{\"from\":\"2026-03-14T13:00:00Z\"");
    expiring_open(w, "minute=48h hour=10d day=31d month=31d");
    (void)expiring_run(w, fixture_ms("2026-03-17T10:20"));
    check_ranking(w, "2026-01-01", "2026-03-17T10:20", "\"before\":null,\"series\":[");
}

/* ---- the embedded store's file */

static int64_t look(struct world *w, const char *sql)
{
    sqlite3 *db;
    sqlite3_stmt *s;
    assert_int_equal(sqlite3_open(strchr(w->url, ':') + 1, &db), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &s, NULL), SQLITE_OK);
    int64_t value = sqlite3_step(s) == SQLITE_ROW ? sqlite3_column_int64(s, 0) : -1;
    sqlite3_finalize(s);
    sqlite3_close(db);
    return value;
}

static void add_day(struct game *g, int64_t day_ms, int hours)
{
    const int at_once = 6; /* hours */
    for (int hour = 0; hour < hours; hour += at_once) {
        for (int i = 0; i < COUNTS_AN_HOUR * at_once; i++) {
            int64_t at_ms = day_ms + hour * (int64_t)HOUR_MS + roll(g, at_once * (int64_t)HOUR_MS);
            batcher_add(g->world->batcher, 0, PAGES, g->keys[roll(g, COUNT_OF(g->keys))], at_ms,
                        (int64_t[]){1, roll(g, 100000)});
        }
        world_apply(g->world, 1);
    }
}

static void init_keys(struct game *g, struct world *w)
{
    *g = (struct game){.world = w, .dice = dice_new(world_kind->name)};
    for (size_t i = 0; i < COUNT_OF(g->keys); i++)
        snprintf(g->keys[i], sizeof g->keys[i], "/page/%zu", i);
}

static bool is_sqlite(void)
{
    return strcmp(world_kind->scheme, "sqlite") == 0;
}

static void test_file_is_level_once_windows_are_full(void **state)
{
    struct world *w = *state;
    struct game g;
    int64_t day_ms = fixture_ms("2026-01-01"), least = INT64_MAX, most = 0;
    struct err e;
    if (!is_sqlite())
        return;
    init_keys(&g, w);
    expiring_open(w, "minute=48h hour=10d");
    for (int day = 0; day < 70; day++, day_ms += DAY_MS) {
        add_day(&g, day_ms, 24);
        assert_true(store_housekeep(w->store, false, &e));
        (void)expiring_run(w, day_ms + DAY_MS);
        int64_t pages = look(w, "PRAGMA page_count");
        least = day >= 50 && pages < least ? pages : least;
        most = day >= 50 && pages > most ? pages : most;
    }
    printf("pages of the last 20 of 70 days: %" PRId64 " to %" PRId64 "\n", least, most);
    assert_true(most <= least + least / 20);
    assert_int_equal(look(w, "PRAGMA integrity_check"), 0); /* a text: ok */
}

static void test_pages_are_given_back(void **state)
{
    struct world *w = *state;
    struct game g;
    int64_t day_ms = fixture_ms("2026-03-10");
    if (!is_sqlite())
        return;
    init_keys(&g, w);
    add_day(&g, day_ms, 96);
    int64_t before = look(w, "PRAGMA page_count"), rows = look(w, "SELECT count(*) FROM hour_2");
    int64_t bytes = look(w, "SELECT sum(length(body)) FROM hour_2");
    expiring_open(w, "minute=48h");
    struct expired expired;
    struct err e;
    uint64_t gone = 0, gone_bytes = 0;
    do {
        assert_true(store_expire(w->store, fixture_ms("2026-04-10"), true, &expired, &e));
        gone += expired.rows;
        gone_bytes += expired.bytes;
    } while (expired.more);
    assert_int_equal(look(w, "SELECT count(*) FROM hour_2"), 0);
    assert_int_equal(gone, rows);
    assert_int_equal(gone_bytes, bytes);
    int64_t after = look(w, "PRAGMA page_count");
    assert_true(after < before / 2);
    assert_true(look(w, "PRAGMA freelist_count") <= after / 8 + 1);
    assert_int_equal(hits(w, SPAN_HOUR, "2026-03-01", "2026-04-01"), 96 * COUNTS_AN_HOUR);
}

/* Frees at least so many pages of the file, as another program would. */
static void free_pages(struct world *w, int count)
{
    char sql[256];
    sqlite3 *db;
    snprintf(sql, sizeof sql,
             "CREATE TABLE filler (body); INSERT INTO filler VALUES (zeroblob(%d)); DROP TABLE filler",
             count * SQLITE_VFS_PAGE);
    assert_int_equal(sqlite3_open_v2(strchr(w->url, ':') + 1, &db, SQLITE_OPEN_READWRITE, sqlite_vfs_name()),
                     SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
}

/* However many pages are free: expiry leaves at most an eighth of the file free, as large as the file is
 * after the last step. */
static void test_however_many_pages_are_free_an_eighth_is_left(void **state)
{
    struct world *w = *state;
    struct game g;
    if (!is_sqlite())
        return;
    init_keys(&g, w);
    add_day(&g, fixture_ms("2026-03-10"), 96);
    expiring_open(w, "hour=1000d minute=48h");
    (void)expiring_run(w, fixture_ms("2026-04-10"));
    for (int count = 16; count <= 320; count += 4) {
        free_pages(w, count);
        (void)expiring_run(w, fixture_ms("2026-04-10"));
        int64_t unused = look(w, "PRAGMA freelist_count"), pages = look(w, "PRAGMA page_count");
        if (unused > pages / 8)
            fail_msg("%d pages more: %" PRId64 " of %" PRId64 " are free", count, unused, pages);
    }
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, world_setup, world_teardown)

int main(void)
{
    const struct CMUnitTest words[] = {
        cmocka_unit_test(test_spans_go_by_whole_longer_ones),
        cmocka_unit_test(test_longer_spans_are_kept_as_long),
        cmocka_unit_test(test_texts_that_are_no_keep_are_refused),
    };
    const struct CMUnitTest tests[] = {
        TEST(test_watermarks_are_there_before_anything_goes),
        TEST(test_watermarks_never_go_back),
        TEST(test_late_events_count_in_longer_spans),
        TEST(test_what_is_left_equals_a_naive_recount),
        TEST(test_questions_are_answered_from_longer_buckets),
        TEST(test_ranking_compares_with_what_is_kept),
        TEST(test_file_is_level_once_windows_are_full),
        TEST(test_pages_are_given_back),
        TEST(test_however_many_pages_are_free_an_eighth_is_left),
    };
    int failed = cmocka_run_group_tests_name("words", words, NULL, NULL);
    for (size_t i = 0; i < world_kind_count(); i++) {
        world_kind = &world_kinds[i];
        failed += cmocka_run_group_tests_name(world_kind->name, tests, NULL, NULL);
    }
    return failed;
}
