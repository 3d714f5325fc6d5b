/* Nothing that was changed in a store behind its back escapes verify, and it cries over nothing else. */
#include "base/check.h"
#include "config/config_read.h"
#include "daemon/count/pipeline.h"
#include "daemon/source.h"
#include "store/backend/backend.h"
#include "store/sqlite/body.h"
#include "store/sqlite/vfs.h"
#include "tests/support/fixture.h"
#include "tests/support/lines.h"
#include "tests/support/scratch.h"
#include "verify/audit.h"
#include "verify/verify.h"

#include <inttypes.h>
#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#define LINES 1500

struct desk {
    struct scratch scratch;
    struct dice dice;
    struct config *config;
    struct report reports[FIXTURE_COUNT];
    struct text lines;
    char log[128], db[128], url[160];
    char *said; /* of the last verification */
    size_t said_len;
    int64_t gone; /* events of each report that no source has any more; books are then not compared */
    uint64_t differences, bounded;
};

static int setup(void **state)
{
    struct desk *k = calloc(1, sizeof *k);
    k->dice = dice_new("verify");
    k->config = config_default();
    scratch_make(&k->scratch);
    fixture_reports(k->reports);
    snprintf(k->log, sizeof k->log, "%s", scratch_path(&k->scratch, "log"));
    snprintf(k->db, sizeof k->db, "%s", scratch_path(&k->scratch, "store.db"));
    snprintf(k->url, sizeof k->url, "sqlite:%s", k->db);
    for (int i = 0; i < LINES; i++)
        lines_add(&k->lines, &k->dice, fixture_ms("2015-05-17T10:05"), 3LL * HOUR_MS);
    text_puts(&k->lines, "h - - [17/May/2015:09:00:00 +0000] \"GET /once HTTP/1.1\" 200 7\n");
    scratch_write(k->log, text_slice(&k->lines));
    *state = k;
    return 0;
}

static int teardown(void **state)
{
    struct desk *k = *state;
    free(k->said);
    config_free(k->config);
    fixture_free(k->reports);
    text_fini(&k->lines);
    scratch_remove(&k->scratch);
    free(k);
    return 0;
}

/* Count the log into the store, from where it stands, by the first `report_count` reports. */
static void count(struct desk *k, size_t report_count)
{
    struct err e;
    struct source src;
    atomic_bool stop = false;
    struct source_options source_options = {.line_max = (size_t)k->config->limits.line_max};
    struct pipeline_options options = {
        .threads = 2,
        .decode = fixture_decode(),
        .line_max = (size_t)k->config->limits.line_max,
        .stripe_ms = 1000,
        .stripe_bytes = 20000,
        .future_max_ms = k->config->limits.future_max_ms,
        .shard = {.cells_max = 1000,
                  .series_max = 1000,
                  .key_bytes_max = 1 << 20,
                  .dimension_bytes_max = (size_t)k->config->limits.dimension_bytes_max},
        .clock = &clock_system,
        .stop = &stop,
    };
    struct store *st = store_open(k->url, STORE_WRITE, k->reports, report_count, &e);
    assert_non_null(st);
    assert_true(source_open(&src, k->log, st, &source_options, &e));
    struct pipeline *p = pipeline_new(st, k->reports, report_count, &options);
    if (!pipeline_run(p, src.reader, &src.range, &e))
        fail_msg("%s", e.text);
    pipeline_free(p);
    source_close(&src);
    store_close(st);
}

static void run_sql(struct desk *k, const char *sql)
{
    sqlite3 *db;
    char *why = NULL;
    assert_int_equal(sqlite3_open_v2(k->db, &db, SQLITE_OPEN_READWRITE, sqlite_vfs_name()), SQLITE_OK);
    if (sqlite3_exec(db, sql, NULL, NULL, &why) != SQLITE_OK)
        fail_msg("%s: %s", sql, why);
    assert_true(sqlite3_total_changes(db) > 0 || strncmp(sql, "CREATE", 6) == 0);
    sqlite3_close(db);
}

static bool take_position(void *context, const struct position *p)
{
    *(struct position *)context = *p;
    return true;
}

/* A store that expires buckets while it is compared. */
static struct {
    struct store_reader_ops ops;
    const struct store_reader_ops *real;
    int times;
} moving;

static bool scan_moving(struct store *st, const struct scan *scan, scan_fn *fn, void *context,
                        struct scan_stats *stats, struct err *e)
{
    bool good = moving.real->scan(st, scan, fn, context, stats, e);
    return moving.times-- > 0 ? err_set_retryable(e, EX_UNAVAILABLE, "it has just expired") : good;
}

static void move_watermarks(struct store *st)
{
    moving.real = st->reader;
    moving.ops = *st->reader;
    moving.ops.scan = scan_moving;
    st->reader = &moving.ops;
}

static void verify_as(struct desk *k, const char *path)
{
    struct err e;
    struct verify v;
    struct position p = {0};
    bool more;
    free(k->said);
    FILE *out = open_memstream(&k->said, &k->said_len);
    struct store *st = store_open(k->url, STORE_READ, NULL, 0, &e);
    assert_non_null(st);
    move_watermarks(st);
    verify_init(&v, k->config, st, out);
    assert_true(store_positions(st, take_position, &p, &e));
    if (!verify_file(&v, path, fixture_decode(), NULL, &p, &more, &e))
        fail_msg("%s", e.text);
    for (size_t i = 0; i < st->report_count && k->gone > 0; i++)
        v.missing[i] = (struct verify_missing){.events = k->gone, .late = k->gone};
    v.differences = k->gone > 0 ? 0 : v.differences;
    if (!verify_buckets(&v, &e))
        fail_msg("%s", e.text);
    assert_true(v.compared > 100);
    k->differences = v.differences;
    k->bounded = v.bounded;
    verify_fini(&v);
    store_close(st);
    fclose(out);
}

static void assert_all_equal(struct desk *k)
{
    verify_as(k, k->log);
    if (k->differences != 0)
        fail_msg("%s", k->said);
    assert_string_equal(k->said, "");
}

/* How many differences an audit finds that takes so many cells at a time. */
static uint64_t audit(struct desk *k, size_t cells_max, const char *words)
{
    struct err e;
    struct audit a;
    char *said;
    size_t len;
    FILE *out = open_memstream(&said, &len);
    struct store *st = store_open(k->url, STORE_READ, NULL, 0, &e);
    assert_non_null(st);
    audit_init(&a, st, out);
    a.cells_max = cells_max;
    if (!audit_store(&a, &e))
        fail_msg("%s", e.text);
    const uint64_t differences = a.differences;
    audit_fini(&a);
    store_close(st);
    fclose(out);
    if (strstr(said, words) == NULL)
        fail_msg("audit found \"%s\", expected \"%s\"", said, words);
    free(said);
    return differences;
}

static void assert_said(struct desk *k, const char *words)
{
    verify_as(k, k->log);
    assert_true(k->differences > 0);
    if (strstr(k->said, words) == NULL)
        fail_msg("found \"%s\", expected \"%s\"", k->said, words);
}

static void test_untouched_store_is_all_equal(void **state)
{
    struct desk *k = *state;
    count(k, FIXTURE_COUNT);
    assert_all_equal(k);
    scratch_write_gzip(scratch_path(&k->scratch, "log.gz"), text_slice(&k->lines));
    verify_as(k, scratch_path(&k->scratch, "log.gz"));
    assert_int_equal(k->differences, 0);
    scratch_append(k->log, slice_text("more lines, not counted yet\n"));
    assert_all_equal(k);
}

/* Give the reports a histogram and distinct counts, too. */
static void add_sketches(struct desk *k)
{
    struct err e;
    fixture_free(k->reports);
    for (size_t i = 0; i < FIXTURE_COUNT; i++) {
        struct report *r = &k->reports[i];
        const char *const names[] = {"site", "pages", "clients"};
        assert_true(report_init(r, slice_text(names[i]), 1, &e));
        if (i > 0)
            assert_true(report_add_dimension(r, slice_text(i == FIXTURE_PAGES ? "path" : "host"), &e));
        assert_true(report_add_measure(r, slice_text("hits"), slice_text("count"), &e));
        assert_true(report_add_measure(r, slice_text("sizes"), slice_text("histogram(bytes)"), &e));
        assert_true(report_add_measure(r, slice_text("places"), slice_text("distinct(path)"), &e));
        assert_true(report_add_measure(r, slice_text("agents"), slice_text("distinct(agent)"), &e));
        assert_true(report_finish(r, &e));
    }
}

/* How a test changes a sketch behind the store's back. */
enum change { SHIFT_BUCKET, ADD_TEXT, COUNT_TWICE, DROP_IT, CHANGES };

struct row {
    const struct report *report;
    enum change change;
    struct arena arena;
    struct body_item items[BODY_SERIES * BODY_SLOTS];
    size_t count;
};

static union sketch changed(struct row *row, size_t sketch, struct slice packed)
{
    const enum sketch_kind kind = measure_sketch_kind(report_sketched(row->report, sketch));
    union sketch s = {0};
    if (row->change == DROP_IT)
        return s;
    assert_true(sketch_merge(kind, &s, &row->arena, packed));
    if (row->change == COUNT_TWICE) {
        assert_true(sketch_merge(kind, &s, &row->arena, packed));
    } else if (kind == SKETCH_DISTINCT) {
        distinct_add(&s.distinct, &row->arena, 0x123456789abcdef);
    } else {
        const union sketch before = s;
        struct histogram_walk w = histogram_walk(&before.histogram);
        struct histogram_bucket b;
        s = (union sketch){0};
        for (bool is_first = true; histogram_next(&w, &b); is_first = false) {
            if (is_first) /* one of its numbers is in the bucket behind it */
                histogram_add(&s.histogram, &row->arena, b.slot + 1, 1);
            if (b.count > is_first)
                histogram_add(&s.histogram, &row->arena, b.slot, b.count - is_first);
        }
    }
    return s;
}

static bool take_item(void *context, uint32_t series, uint32_t slot, const int64_t *values,
                      const struct slice *sketches)
{
    struct row *row = context;
    const struct report *r = row->report;
    union sketch *copies = arena_add(&row->arena, r->sketch_count * sizeof *copies);
    const struct slice columns = slice_of((char *)(uintptr_t)values, r->column_count * sizeof *values);
    memset(copies, 0, r->sketch_count * sizeof *copies);
    for (size_t i = 0; i < r->sketch_count; i++)
        assert_true(
            sketch_merge(measure_sketch_kind(report_sketched(r, i)), &copies[i], &row->arena, sketches[i]));
    const size_t sketch = row->change == ADD_TEXT ? 1 : 0;
    if (row->count == 0 && sketches[sketch].len > 0)
        copies[sketch] = changed(row, sketch, sketches[sketch]);
    int64_t *numbers = arena_add(&row->arena, columns.len);
    memcpy(numbers, values, columns.len);
    row->items[row->count++] = (struct body_item){series, slot, numbers, copies};
    return true;
}

/* Items are sorted by (series, slot), but read with the newest slot first. */
static int compare_items(const void *a, const void *b)
{
    const struct body_item *one = a, *two = b;
    return one->series != two->series ? (one->series > two->series) - (one->series < two->series)
                                      : (one->slot > two->slot) - (one->slot < two->slot);
}

/* Makes another body of a row's. */
typedef void body_change_fn(void *context, struct slice old, struct body_buffer *changed);

/* Change the body of the first row of a table. */
static void change_first_row(const struct desk *k, const char *table, body_change_fn *fn, void *context)
{
    char sql[128];
    sqlite3 *db;
    sqlite3_stmt *get, *put;
    struct body_buffer changed = {0};
    assert_int_equal(sqlite3_open_v2(k->db, &db, SQLITE_OPEN_READWRITE, sqlite_vfs_name()), SQLITE_OK);
    snprintf(sql, sizeof sql, "SELECT at, body FROM %s ORDER BY at LIMIT 1", table);
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &get, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(get), SQLITE_ROW);
    fn(context, slice_of(sqlite3_column_blob(get, 1), (size_t)sqlite3_column_bytes(get, 1)), &changed);
    snprintf(sql, sizeof sql, "UPDATE %s SET body = ? WHERE at = ?", table);
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &put, NULL), SQLITE_OK);
    sqlite3_bind_blob(put, 1, changed.data, (int)changed.len, SQLITE_STATIC);
    sqlite3_bind_int64(put, 2, sqlite3_column_int64(get, 0));
    sqlite3_finalize(get);
    assert_int_equal(sqlite3_step(put), SQLITE_DONE);
    sqlite3_finalize(put);
    sqlite3_close(db);
    body_buffer_fini(&changed);
}

static void write_changed(void *context, struct slice old, struct body_buffer *changed)
{
    static const struct body_want all = {{UINT64_MAX, UINT64_MAX}, 0, BODY_SLOTS, UINT64_MAX};
    struct row *row = context;
    assert_true(body_each(old, row->report, &all, take_item, row, &changed->loose));
    qsort(row->items, row->count, sizeof *row->items, compare_items);
    assert_true(body_merge(slice_of(NULL, 0), row->items, row->count, row->report, changed));
}

/* Change a sketch of the first row of a table of the report `site`. */
static void change_sketch(struct desk *k, const char *table, enum change change)
{
    static struct row row;
    row.report = &k->reports[FIXTURE_SITE];
    row.change = change;
    row.count = 0;
    arena_init(&row.arena, 1 << 16);
    change_first_row(k, table, write_changed, &row);
    arena_fini(&row.arena);
}

static void test_changed_sketch_is_found_in_every_level(void **state)
{
    static const struct {
        const char *table, *resolution;
    } levels[] = {{"hour_1", "minute"}, {"day_1", "hour"}, {"month_1", "day"}, {"year_1", "month"}};
    static const size_t sizes[] = {40, 1000};
    struct desk *k = *state;
    add_sketches(k);
    count(k, FIXTURE_COUNT);
    assert_all_equal(k);
    for (size_t i = 0; i < COUNT_OF(levels); i++) {
        for (enum change change = 0; change < CHANGES; change++) {
            char words[64], kept[256];
            snprintf(kept, sizeof kept, "CREATE TABLE kept AS SELECT * FROM %s", levels[i].table);
            run_sql(k, kept);
            change_sketch(k, levels[i].table, change);
            snprintf(words, sizeof words, "by %s: stored ", levels[i].resolution);
            assert_said(k, words);
            assert_non_null(strstr(k->said, change == ADD_TEXT ? "site \"\" places 2" : "site \"\" sizes 2"));
            assert_int_equal(k->differences, 1);
            const uint64_t found = audit(k, AUDIT_CELLS_MAX, "site \"\" ");
            assert_true(found > 0);
            for (size_t s = 0; s < COUNT_OF(sizes); s++)
                assert_int_equal(audit(k, sizes[s], change == ADD_TEXT ? "places 2" : "sizes 2"), found);
            snprintf(kept, sizeof kept, "DELETE FROM %s; INSERT INTO %s SELECT * FROM kept; DROP TABLE kept",
                     levels[i].table, levels[i].table);
            run_sql(k, kept);
        }
    }
    assert_all_equal(k);
    assert_int_equal(audit(k, 1, ""), 0);
    assert_int_equal(audit(k, AUDIT_CELLS_MAX, ""), 0);
}

/* Sketches of series beyond the limit are together in `other`. */
static void test_other_series_have_the_sketches_that_miss(void **state)
{
    struct desk *k = *state;
    add_sketches(k);
    k->reports[FIXTURE_PAGES].series_max = 20;
    k->reports[FIXTURE_CLIENTS].series_max = 1;
    count(k, FIXTURE_COUNT);
    assert_all_equal(k);
}

/* If records are gone, the store has at least what is left of them. */
static void test_sketches_of_gone_records_include_what_is_left(void **state)
{
    struct desk *k = *state;
    add_sketches(k);
    count(k, FIXTURE_COUNT);
    k->gone = LINES;
    const char *middle = memchr(k->lines.ptr + k->lines.len / 2, '\n', k->lines.len / 2);
    scratch_write(k->log, slice_of(k->lines.ptr, (size_t)(middle + 1 - k->lines.ptr)));
    verify_as(k, k->log);
    assert_int_equal(k->differences, 0);
    assert_true(k->bounded > 0);
    change_sketch(k, "day_1", DROP_IT);
    verify_as(k, k->log);
    assert_int_equal(k->differences, 1);
    assert_non_null(strstr(k->said, " by hour: stored nothing, recounted p50 "));
    assert_non_null(strstr(k->said, " of what is left"));
}

static void add_item(void *context, struct slice old, struct body_buffer *changed)
{
    const struct row *row = context;
    assert_true(body_merge(old, row->items, 1, row->report, changed));
}

/* So many more hits of series 1 in slot 0 of the first row of `table`. */
static void change_body(struct desk *k, const char *table, int64_t by)
{
    static struct row row;
    const int64_t add[] = {by, 0};
    row.report = &k->reports[FIXTURE_SITE];
    row.items[0] = (struct body_item){1, 0, add, NULL};
    change_first_row(k, table, add_item, &row);
}

static void test_watermarks_that_move_meanwhile_are_no_difference(void **state)
{
    struct desk *k = *state;
    count(k, FIXTURE_COUNT);
    moving.times = 3;
    assert_all_equal(k);
    assert_true(moving.times < 0);
}

static void test_changed_count_is_found_in_every_level(void **state)
{
    struct desk *k = *state;
    static const struct {
        const char *table, *resolution;
    } levels[] = {{"hour_1", "minute"}, {"day_1", "hour"}, {"month_1", "day"}, {"year_1", "month"}};
    count(k, FIXTURE_COUNT);
    for (size_t i = 0; i < COUNT_OF(levels); i++) {
        char words[32];
        change_body(k, levels[i].table, 1);
        snprintf(words, sizeof words, "by %s: stored ", levels[i].resolution);
        assert_said(k, words);
        assert_non_null(strstr(k->said, "site \"\" hits 2015-0"));
        change_body(k, levels[i].table, -1); /* may leave a slot of zeros, which counts nothing */
        assert_all_equal(k);
    }
}

static void test_missing_and_surplus_rows_are_found(void **state)
{
    struct desk *k = *state;
    count(k, FIXTURE_COUNT);
    run_sql(k, "CREATE TABLE kept AS SELECT * FROM hour_2; DELETE FROM hour_2 WHERE at = (SELECT min(at) "
               "FROM hour_2)");
    assert_said(k, "by minute: stored 0, recounted ");
    run_sql(k, "INSERT OR REPLACE INTO hour_2 SELECT * FROM kept");
    assert_all_equal(k);
    run_sql(k, "INSERT INTO hour_2 SELECT at + (1 << 30), body FROM kept ORDER BY at LIMIT 1");
    assert_said(k, ", recounted 0");
}

static void test_changed_key_of_a_series_is_found(void **state)
{
    struct desk *k = *state;
    count(k, FIXTURE_COUNT);
    run_sql(k, "UPDATE series_2 SET keys = replace(keys, '/once', '/oncf')");
    assert_said(k, "pages \"(unknown)\" hits");
    assert_non_null(
        strstr(k->said, "pages \"/once\" hits 2015-05-17T09:00:00Z by minute: stored 0, recounted 1"));
}

static void test_changed_books_are_found(void **state)
{
    static const struct {
        const char *sql, *words;
    } cases[] = {
        {"UPDATE book SET value = value + 1 WHERE entry = 'consumed'", "books: consumed is "},
        {"UPDATE book SET value = value - 1 WHERE entry = 'rejected.empty'", "books: rejected.empty is "},
        {"DELETE FROM book WHERE entry = 'counted' AND report = 2",
         "books of pages: counted is 0, recounted "},
        {"INSERT INTO book SELECT source, part, report, 'filtered', 1 FROM book WHERE entry = 'counted'",
         "books of site: filtered is 1, recounted 0"},
        {"UPDATE book SET value = value + 1 WHERE entry = 'counted' AND report = 3", "do not balance"},
    };
    struct desk *k = *state;
    count(k, FIXTURE_COUNT);
    run_sql(k, "CREATE TABLE kept AS SELECT * FROM book");
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        run_sql(k, cases[i].sql);
        assert_said(k, cases[i].words);
        run_sql(k, "DELETE FROM book; INSERT INTO book SELECT * FROM kept");
        assert_all_equal(k);
    }
}

static void test_changed_file_is_found(void **state)
{
    struct desk *k = *state;
    count(k, FIXTURE_COUNT);
    char *method = strstr(k->lines.ptr + k->lines.len / 2, "GET /page");
    assert_non_null(method);
    memcpy(method + 4, "/pagx", 5);
    scratch_write(k->log, text_slice(&k->lines));
    assert_said(k, "pages \"/pagx/");
    scratch_write(k->log, slice_of(k->lines.ptr, k->lines.len / 2));
    assert_said(k, "books: consumed is ");
}

/* Only so many lines are printed; all are counted. */
static void test_many_differences_are_cut_short(void **state)
{
    struct desk *k = *state;
    count(k, FIXTURE_COUNT);
    run_sql(k, "DELETE FROM hour_3; DELETE FROM day_3; DELETE FROM month_3; DELETE FROM year_3");
    assert_said(k, "… and more\n");
    size_t lines = 0;
    for (const char *p = k->said; (p = strchr(p, '\n')) != NULL; p++)
        lines++;
    assert_int_equal(lines, VERIFY_PRINTED_MAX + 1);
    assert_true(k->differences > VERIFY_PRINTED_MAX);
}

/* A report that came when a part of the source had been counted is compared from there on. */
static void test_report_added_later_is_compared_since_then(void **state)
{
    struct desk *k = *state;
    const char *feed = memchr(k->lines.ptr + k->lines.len / 2, '\n', k->lines.len / 2);
    scratch_write(k->log, slice_of(k->lines.ptr, (size_t)(feed + 1 - k->lines.ptr)));
    count(k, 1);
    assert_all_equal(k);
    scratch_write(k->log, text_slice(&k->lines));
    count(k, FIXTURE_COUNT);
    assert_all_equal(k);
    run_sql(k, "UPDATE book SET value = value - 2000 WHERE entry = 'since' AND report = 2");
    assert_said(k, "books of pages: parsed is ");
    run_sql(k, "DELETE FROM book WHERE entry = 'since' AND report = 2");
    assert_said(k, "books of pages: parsed is ");
}

/* Series beyond the limit are together in `other`: what misses elsewhere must be there, no more, no less. */
static void test_other_series_take_what_misses(void **state)
{
    struct desk *k = *state;
    k->reports[FIXTURE_PAGES].series_max = 20;
    k->reports[FIXTURE_CLIENTS].series_max = 1;
    count(k, FIXTURE_COUNT);
    assert_all_equal(k);
    change_body(k, "month_2", 1);
    assert_said(k, "by day: stored ");
}

static void test_every_length_of_bucket_sees_a_lost_day(void **state)
{
    struct desk *k = *state;
    count(k, FIXTURE_COUNT);
    run_sql(k, "DELETE FROM month_1; DELETE FROM year_1");
    assert_said(k, "by day: stored 0");
    assert_non_null(strstr(k->said, "by month: stored 0"));
    assert_null(strstr(k->said, "by hour"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_untouched_store_is_all_equal),
        TEST(test_watermarks_that_move_meanwhile_are_no_difference),
        TEST(test_changed_count_is_found_in_every_level),
        TEST(test_missing_and_surplus_rows_are_found),
        TEST(test_changed_key_of_a_series_is_found),
        TEST(test_changed_books_are_found),
        TEST(test_changed_file_is_found),
        TEST(test_many_differences_are_cut_short),
        TEST(test_report_added_later_is_compared_since_then),
        TEST(test_other_series_take_what_misses),
        TEST(test_every_length_of_bucket_sees_a_lost_day),
        TEST(test_changed_sketch_is_found_in_every_level),
        TEST(test_other_series_have_the_sketches_that_miss),
        TEST(test_sketches_of_gone_records_include_what_is_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
