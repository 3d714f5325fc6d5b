/* A file that is damaged, another's, or not there: an error that a user can act on, or an answer, and never a
 * crash. */
#include "store/sqlite/vfs.h"
#include "tests/support/dice.h"
#include "tests/support/disk.h"
#include "tests/support/fault_vfs.h"
#include "tests/support/world.h"

#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <cmocka.h>

static bool take_next(void *context, const struct position *p)
{
    *(int64_t *)context = p->range.to;
    return true;
}

static void nothing(void *context, uint32_t series, int64_t bucket_ms, const int64_t *values)
{
    (void)context, (void)series, (void)bucket_ms, (void)values;
}

static bool no_series(void *context, uint32_t series, struct slice key)
{
    assert_true(series < 1 << 26); /* whoever numbers them by an array can */
    *(size_t *)context += key.len + series;
    return true;
}

static bool no_book(void *context, const char *source, const char *partition, const char *report,
                    const char *entry, int64_t value)
{
    *(size_t *)context += strlen(source) + strlen(partition) + strlen(report) + strlen(entry) + (value != 0);
    return true;
}

static void check_answer(bool good, const struct err *e)
{
    if (!good)
        assert_true(e->code != 0 && e->text[0] != '\0');
}

/* Ask it everything; an answer may be wrong or refused, but there is one. */
static void read_all(struct store *st)
{
    struct err e = {0};
    struct text key = {0};
    size_t sum = 0;
    int64_t next;
    for (size_t r = 0; r < st->report_count; r++) {
        for (enum span slot = SPAN_MINUTE; slot < SPAN_COUNT; slot++) {
            struct scan scan = {r, slot, 0, CIVIL_END_MS, world_every_series, UINT64_MAX, 0, NULL};
            struct scan_stats stats = {0};
            check_answer(store_scan(st, &scan, nothing, NULL, &stats, &e), &e);
            scan.series = (struct series_set){.kind = SERIES_ONE, .one = 5};
            check_answer(store_scan(st, &scan, nothing, NULL, &stats, &e), &e);
        }
        check_answer(store_series_each(st, r, no_series, &sum, &e), &e);
        check_answer(store_series_key(st, r, 3, &key, &e), &e);
    }
    check_answer(store_positions(st, take_next, &next, &e), &e);
    check_answer(store_books(st, no_book, &sum, &e), &e);
    text_fini(&key);
}

static void write_more(struct store *st)
{
    struct err e = {0};
    struct batcher *b = batcher_new(disk_reports, FIXTURE_COUNT, 2);
    int64_t next = DISK_BATCHES * 100;
    check_answer(store_positions(st, take_next, &next, &e), &e);
    next = next >= 0 && next < INT64_MAX - 100 ? next : 0;
    disk_add_batch(b, NULL, 4);
    check_answer(store_apply(st, batcher_seal(b, "access", next, next + 100), &e), &e);
    check_answer(store_housekeep(st, true, &e), &e);
    batcher_free(b);
}

/* A file with folded and with fresh rows. */
static void make_store(void)
{
    struct store *st = disk_open(disk_url);
    disk_fill(st);
    store_close(st);
}

static struct text read_file(const char *path)
{
    struct text t = {0};
    scratch_read(path, &t);
    return t;
}

static void damage(struct dice *d, struct text *file)
{
    int kind = (int)dice_roll(d, 10);
    size_t page = (size_t)dice_roll(d, (int64_t)file->len / 8192) * 8192;
    if (kind == 0)
        file->len = (size_t)dice_roll(d, (int64_t)file->len);
    else if (kind == 1)
        memset(file->ptr + page, (int)dice_roll(d, 256), 8192);
    else if (kind == 2)
        memcpy(file->ptr + page, file->ptr + (size_t)dice_roll(d, (int64_t)file->len / 8192) * 8192, 8192);
    for (int64_t n = dice_roll(d, 20); kind > 2 && n >= 0; n--)
        file->ptr[kind < 6 ? page + (size_t)dice_roll(d, 200) : (size_t)dice_roll(d, (int64_t)file->len)] =
            (char)dice_roll(d, 256);
}

static void test_damaged_file_is_an_error_or_an_answer(void **state)
{
    struct dice d = dice_new("damage");
    (void)state;
    make_store();
    struct text good = read_file(disk_path);
    int refused = 0;
    for (int round = 0; round < 120; round++) {
        struct err e = {0};
        struct text bad = {0};
        text_add(&bad, good.ptr, good.len);
        damage(&d, &bad);
        disk_clean(NULL);
        scratch_write(disk_path, text_slice(&bad));
        text_fini(&bad);
        struct store *st = store_open(disk_url, STORE_READ, NULL, 0, &e);
        check_answer(st != NULL, &e);
        refused += st == NULL;
        if (st != NULL)
            read_all(st);
        store_close(st);
        st = store_open(disk_url, STORE_WRITE, disk_reports, FIXTURE_COUNT, &e);
        check_answer(st != NULL, &e);
        if (st != NULL) {
            write_more(st);
            read_all(st);
        }
        store_close(st);
    }
    assert_in_range(refused, 1, 119);
    text_fini(&good);
}

/* By the VFS that sets the checksums of pages: only rows are damaged then. NULL: by another program. */
static void run_sql_by(const char *vfs, const char *sql)
{
    sqlite3 *db;
    char *why = NULL;
    assert_int_equal(sqlite3_open_v2(disk_path, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, vfs),
                     SQLITE_OK);
    if (sqlite3_exec(db, sql, NULL, NULL, &why) != SQLITE_OK)
        fail_msg("%s: %s", sql, why);
    sqlite3_close(db);
}

static void run_sql(const char *sql)
{
    run_sql_by(sqlite_vfs_name(), sql);
}

static void count_problem(void *context, const char *problem)
{
    assert_non_null(strstr(problem, disk_path));
    ++*(int *)context;
}

static int problems(void)
{
    struct err e = {0};
    int count = 0;
    struct store *st = store_open(disk_url, STORE_READ, NULL, 0, &e);
    assert_non_null(st);
    assert_true(store_check(st, count_problem, &count, &e));
    store_close(st);
    return count;
}

static void test_check_finds_damage(void **state)
{
    (void)state;
    make_store();
    assert_int_equal(problems(), 0);
    run_sql("UPDATE day_2 SET body = x'ff' WHERE at = (SELECT min(at) FROM day_2)");
    assert_int_equal(problems(), 1);
    disk_clean(NULL);
    make_store();
    struct text file = read_file(disk_path);
    file.ptr[file.len - 100] = (char)(file.ptr[file.len - 100] ^ 1); /* of a row */
    disk_clean(NULL);
    scratch_write(disk_path, text_slice(&file));
    text_fini(&file);
    assert_true(problems() > 0);
}

/* Rows that SQLite takes for good and this store could not have written. */
static void test_impossible_rows_are_errors_or_answers(void **state)
{
    static const char *const damages[] = {
        "INSERT INTO fresh_2 (at, body) VALUES (1 << 60, x'000101')",
        "CREATE TRIGGER stays BEFORE DELETE ON fresh_2 BEGIN SELECT RAISE(IGNORE); END",
        "INSERT INTO fresh_2 (at, body) VALUES (-5, x'000101')",
        "INSERT INTO hour_2 (at, body) VALUES (1 << 60, x'0003000202')",
        "INSERT INTO hour_2 (at, body) VALUES ((1 << 32) - 1, x'0003000202')",
        "INSERT INTO month_2 (at, body) VALUES ((1 << 60) - 1, x'0003000202')",
        "UPDATE hour_2 SET body = x''",
        "UPDATE hour_2 SET body = 'text'",
        "INSERT INTO year_2 (at, body) VALUES ((1 << 60) - 1, x'0003000202')",
        "UPDATE month_2 SET body = 5",
        "UPDATE year_2 SET body = 5",
        "UPDATE series_2 SET block = 9000000000 WHERE block = 1",
        "UPDATE series_2 SET block = 500000 WHERE block = 1",
        "UPDATE series_2 SET block = -3 WHERE block = 1",
        "UPDATE series_2 SET keys = 5 WHERE block = 1",
        "UPDATE series_2 SET keys = x''",
        "UPDATE series_2 SET keys = 'no line'",
        "UPDATE lookup_2 SET entries = x''",
        "UPDATE lookup_2 SET entries = substr(entries, 2)",
        "UPDATE lookup_2 SET entries = substr(entries, 1, 4) || x'ffffffff'",
        "DELETE FROM lookup_2",
        "UPDATE position SET next = -1",
        "UPDATE position SET next = 'x', tail_len = -1, source = x'00ff', label = 4",
        "UPDATE book SET value = 'x', entry = x'00' WHERE entry = 'consumed'",
        "UPDATE report SET definition = 'by what'",
        "UPDATE report SET definition = x''",
        "UPDATE report SET name = 'no such name!', generation = 'x' WHERE id = 2",
        "DELETE FROM report",
        "DROP TABLE day_2",
        "DROP TABLE lookup_2",
        "DROP TABLE position",
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(damages); i++) {
        struct err e = {0};
        disk_clean(NULL);
        make_store();
        run_sql(damages[i]);
        struct store *st = store_open(disk_url, STORE_READ, NULL, 0, &e);
        check_answer(st != NULL, &e);
        if (st != NULL)
            read_all(st);
        store_close(st);
        st = store_open(disk_url, STORE_WRITE, disk_reports, FIXTURE_COUNT, &e);
        check_answer(st != NULL, &e);
        if (st != NULL)
            write_more(st);
        store_close(st);
    }
}

/* New series would get numbers that belong to others. */
static void test_dictionary_that_ends_impossibly_is_refused(void **state)
{
    static const char *const damages[] = {"UPDATE series_2 SET block = 600000 WHERE block = 1",
                                          "UPDATE series_2 SET keys = x''",
                                          "UPDATE series_2 SET keys = keys || keys"};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(damages); i++) {
        struct err e = {0};
        disk_clean(NULL);
        make_store();
        run_sql(damages[i]);
        assert_null(store_open(disk_url, STORE_WRITE, disk_reports, FIXTURE_COUNT, &e));
        assert_int_equal(e.code, EX_DATAERR);
        assert_non_null(strstr(e.text, "the dictionary"));
    }
}

static void assert_refused(enum store_mode mode, int code, const char *words)
{
    struct err e = {0};
    struct store *st = store_open(disk_url, mode, disk_reports, FIXTURE_COUNT, &e);
    assert_null(st);
    if (e.code != code || strstr(e.text, words) == NULL || strstr(e.text, disk_path) == NULL)
        fail_msg("found %d \"%s\", expected %d, \"%s\" and the path", e.code, e.text, code, words);
}

static void assert_both_refused(int code, const char *words)
{
    assert_refused(STORE_WRITE, code, words);
    assert_refused(STORE_READ, code, words);
}

static void test_file_of_another_version_is_refused(void **state)
{
    (void)state;
    make_store();
    run_sql("PRAGMA user_version = 7");
    assert_both_refused(EX_DATAERR, "format 7, this tallyd knows 3 to 6: use the later version");
    run_sql("INSERT INTO format VALUES (7, '0.7.1')");
    assert_both_refused(EX_DATAERR, "format 7, this tallyd knows 3 to 6: use tallyd 0.7.1 or later");
    run_sql("PRAGMA user_version = 2");
    assert_both_refused(EX_DATAERR, "format 2, this tallyd knows 3 to 6:");
}

static void test_file_of_another_program_is_refused(void **state)
{
    (void)state;
    run_sql_by(NULL, "CREATE TABLE things (name TEXT)");
    assert_both_refused(EX_DATAERR, "another program");
    run_sql_by(NULL, "PRAGMA application_id = 5");
    assert_both_refused(EX_DATAERR, "another program");
}

static void test_file_that_is_no_store_is_refused(void **state)
{
    (void)state;
    struct text lines = {0};
    for (int i = 0; i < 1000; i++)
        text_puts(&lines, "::1 - - [17/May/2015:10:05:03 +0000] \"GET / HTTP/1.1\" 200 1\n");
    scratch_write(disk_path, text_slice(&lines));
    assert_both_refused(EX_DATAERR, "is no SQLite file");
    struct text after = read_file(disk_path);
    assert_true(slice_equal(text_slice(&lines), text_slice(&after)));
    text_fini(&lines);
    text_fini(&after);
}

static void test_directory_is_refused(void **state)
{
    (void)state;
    assert_int_equal(mkdir(disk_path, 0700), 0);
    assert_both_refused(EX_CANTCREAT, "is a directory");
}

static void test_missing_directory_is_refused(void **state)
{
    struct err e = {0};
    char missing[200];
    (void)state;
    snprintf(missing, sizeof missing, "%s.d/store.db", disk_url);
    assert_null(store_open(missing, STORE_WRITE, disk_reports, FIXTURE_COUNT, &e));
    assert_int_equal(e.code, EX_CANTCREAT);
    assert_non_null(strstr(e.text, "store.db"));
    assert_null(store_open(missing, STORE_READ, NULL, 0, &e));
    assert_int_equal(e.code, EX_NOINPUT);
}

static void test_read_only_file_can_be_read_but_not_written(void **state)
{
    (void)state;
    struct err e = {0};
    make_store();
    fault_vfs.is_read_only = true;
    assert_refused(STORE_WRITE, EX_NOPERM, "cannot be written");
    struct store *st = store_open(disk_url, STORE_READ, NULL, 0, &e);
    if (st == NULL)
        fail_msg("%s", e.text);
    disk_check_counts(st, DISK_BATCHES);
    store_close(st);
}

static void test_empty_file_is_a_new_store(void **state)
{
    (void)state;
    scratch_write(disk_path, slice_of("", 0));
    assert_refused(STORE_READ, EX_NOINPUT, "is empty");
    struct store *st = disk_open(disk_url);
    disk_check_counts(st, 0);
    store_close(st);
}

#define TEST(name) cmocka_unit_test_setup(name, disk_clean)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_damaged_file_is_an_error_or_an_answer),
        TEST(test_impossible_rows_are_errors_or_answers),
        TEST(test_check_finds_damage),
        TEST(test_dictionary_that_ends_impossibly_is_refused),
        TEST(test_file_of_another_version_is_refused),
        TEST(test_file_of_another_program_is_refused),
        TEST(test_file_that_is_no_store_is_refused),
        TEST(test_directory_is_refused),
        TEST(test_missing_directory_is_refused),
        TEST(test_read_only_file_can_be_read_but_not_written),
        TEST(test_empty_file_is_a_new_store),
    };
    return cmocka_run_group_tests(tests, disk_setup, disk_teardown);
}
