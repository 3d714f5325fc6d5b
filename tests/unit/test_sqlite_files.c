/* The files of an embedded store: pages at another place, logs that a crash left, older formats, other
 * programs, and the locks that a process must not lose. */
#include "store/backend/backend.h"
#include "store/sqlite/vfs.h"
#include "tests/support/dice.h"
#include "tests/support/disk.h"
#include "tests/support/fault_vfs.h"

#include <fcntl.h>
#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define PAGE  8192
#define FRAME (24 + PAGE)

static struct text read_file(const char *path)
{
    struct text t = {0};
    scratch_read(path, &t);
    return t;
}

/* The files that a crash leaves after all batches, and the end of each batch's frames in the log. */
struct crashed {
    struct text file, log;
    struct text index; /* the shared index before the last batch */
    size_t ends[DISK_BATCHES];
};

static struct crashed make_crashed(void)
{
    struct crashed c = {0};
    struct store *st = disk_open(disk_url);
    struct batcher *b = batcher_new(disk_reports, FIXTURE_COUNT, 2);
    for (int i = 0; i < DISK_BATCHES; i++) {
        text_fini(&c.index);
        c.index = read_file(disk_beside("-shm"));
        disk_apply(st, b, i);
        text_fini(&c.log);
        c.log = read_file(disk_beside("-wal"));
        c.ends[i] = c.log.len;
    }
    c.file = read_file(disk_path);
    batcher_free(b);
    store_close(st);
    return c;
}

static void put_down(const struct crashed *c)
{
    disk_clean(NULL);
    scratch_write(disk_path, text_slice(&c->file));
    scratch_write(disk_beside("-wal"), text_slice(&c->log));
}

static void crashed_fini(struct crashed *c)
{
    text_fini(&c->file);
    text_fini(&c->log);
    text_fini(&c->index);
}

static void assert_refused(enum store_mode mode, const char *words)
{
    struct err e = {0};
    assert_null(store_open(disk_url, mode, disk_reports, FIXTURE_COUNT, &e));
    if (e.code != EX_DATAERR || e.retryable || strstr(e.text, words) == NULL)
        fail_msg("found %d \"%s\", expected \"%s\"", e.code, e.text, words);
}

static void assert_read(int batches)
{
    struct err e;
    struct store *st = store_open(disk_url, STORE_READ, NULL, 0, &e);
    if (st == NULL)
        fail_msg("%s", e.text);
    disk_check_counts(st, batches);
    store_close(st);
}

static void assert_written(int batches)
{
    struct store *st = disk_open(disk_url);
    disk_check_counts(st, batches);
    store_close(st);
}

static void flip(struct text *t, size_t at, int bit)
{
    t->ptr[at] = (char)(t->ptr[at] ^ 1 << bit);
}

static void test_log_that_is_damaged_in_the_middle_is_refused(void **state)
{
    struct dice d = dice_new("log");
    struct crashed c = make_crashed();
    (void)state;
    for (int round = 0; round < 60; round++) {
        size_t at = (size_t)dice_roll(&d, (int64_t)c.ends[DISK_BATCHES - 2]);
        int bit = (int)dice_roll(&d, 8);
        flip(&c.log, at, bit);
        put_down(&c);
        assert_refused(STORE_READ, "-wal is damaged at frame ");
        assert_refused(STORE_WRITE, "-wal is damaged at frame ");
        flip(&c.log, at, bit);
    }
    put_down(&c);
    assert_read(DISK_BATCHES);
    assert_written(DISK_BATCHES);
    crashed_fini(&c);
}

/* So does a loss of power leave it: the writer goes on, and a reader does not answer without it. */
static void test_last_transaction_that_is_torn_is_counted_again(void **state)
{
    struct dice d = dice_new("torn");
    struct crashed c = make_crashed();
    (void)state;
    for (int round = 0; round < 10; round++) {
        size_t first = c.ends[DISK_BATCHES - 2];
        size_t frames =
            (c.log.len - first) / FRAME; /* of these, a byte of the page: no header says otherwise */
        size_t at = first + (size_t)dice_roll(&d, (int64_t)frames) * FRAME + 24 + (size_t)dice_roll(&d, PAGE);
        flip(&c.log, at, 3);
        put_down(&c);
        assert_refused(STORE_READ, "the last transaction is damaged");
        assert_written(DISK_BATCHES - 1);
        assert_read(DISK_BATCHES - 1);
        flip(&c.log, at, 3);
    }
    crashed_fini(&c);
}

/* The last frame's header is written, and its page in part: behind it are frames of an earlier attempt. */
static void test_process_killed_while_it_writes_the_last_frame(void **state)
{
    struct dice d = dice_new("killed");
    struct crashed c = make_crashed();
    (void)state;
    struct text stale = {0};
    text_add(&stale, c.log.ptr + c.log.len - (size_t)2 * FRAME, (size_t)2 * FRAME);
    text_add(&c.log, stale.ptr, stale.len);
    text_fini(&stale);
    for (int round = 0; round < 10; round++) {
        char was[PAGE];
        char *page = c.log.ptr + c.ends[DISK_BATCHES - 1] - PAGE;
        size_t from = (size_t)dice_roll(&d, 2) * PAGE / 2;
        memcpy(was, page, PAGE);
        memset(page + from, 0x5a, PAGE - from);
        put_down(&c);
        assert_refused(round % 2 ? STORE_READ : STORE_WRITE, "damaged at frame ");
        scratch_write(disk_beside("-shm"), text_slice(&c.index));
        assert_read(DISK_BATCHES - 1);
        scratch_write(disk_beside("-shm"), text_slice(&c.index));
        assert_written(DISK_BATCHES - 1);
        memcpy(page, was, PAGE);
    }
    crashed_fini(&c);
}

static void test_log_that_ends_within_a_transaction_is_read_up_to_it(void **state)
{
    struct dice d = dice_new("cut");
    struct crashed c = make_crashed();
    (void)state;
    for (int round = 0; round < 10; round++) {
        int batches = 1 + (int)dice_roll(&d, DISK_BATCHES - 1);
        size_t first = c.ends[batches - 1], whole = c.log.len;
        c.log.len = first + (size_t)dice_roll(&d, (int64_t)(c.ends[batches] - first));
        put_down(&c);
        assert_read(batches);
        assert_written(batches);
        c.log.len = whole;
    }
    crashed_fini(&c);
}

static void note_problem(void *context, const char *text)
{
    bool *found = context;
    *found |= strstr(text, "does not match its checksum") != NULL;
}

static void test_page_of_another_place_is_damage(void **state)
{
    struct err e = {0};
    (void)state;
    struct crashed c = make_crashed();
    crashed_fini(&c);
    struct text file = read_file(disk_path);
    assert_true(file.len > 8 * PAGE);
    char *a = file.ptr + 6 * PAGE, *b = file.ptr + 7 * PAGE, page[PAGE];
    memcpy(page, a, PAGE);
    memcpy(a, b, PAGE);
    memcpy(b, page, PAGE);
    disk_clean(NULL);
    scratch_write(disk_path, text_slice(&file));
    text_fini(&file);
    /* The open reads some pages, the check all of them. */
    struct store *st = store_open(disk_url, STORE_READ, NULL, 0, &e);
    bool found = st == NULL && e.code == EX_DATAERR && strstr(e.text, "does not match its checksum") != NULL;
    if (st != NULL && !store_check(st, note_problem, &found, &e))
        found = e.code == EX_DATAERR && strstr(e.text, "does not match its checksum") != NULL;
    store_close(st);
    assert_true(found);
}

/* As another program does. */
static void run_sql(const char *path, const char *sql)
{
    sqlite3 *db;
    char *why = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    if (sqlite3_exec(db, sql, NULL, NULL, &why) != SQLITE_OK)
        fail_msg("%s: %s", sql, why);
    sqlite3_close(db);
}

/* As sqlite3 does that is opened after a crash, and closed. */
static void test_log_that_another_program_moved_is_no_damage(void **state)
{
    struct crashed c = make_crashed();
    (void)state;
    put_down(&c);
    crashed_fini(&c);
    run_sql(disk_path, "SELECT count(*) FROM book");
    assert_int_not_equal(access(disk_beside("-wal"), F_OK), 0);
    assert_read(DISK_BATCHES);
    assert_written(DISK_BATCHES);
}

static void test_change_by_another_program_is_damage_until_vacuum(void **state)
{
    (void)state;
    struct crashed c = make_crashed();
    crashed_fini(&c);
    run_sql(disk_path, "INSERT INTO book VALUES ('', '', 0, 'other', 5)");
    assert_refused(STORE_WRITE, "does not match its checksum");
    run_sql(disk_path, "VACUUM");
    assert_read(DISK_BATCHES);
    assert_written(DISK_BATCHES);
}

/* The same tables in a file without checksums, as versions before made it. */
static void make_old_format(const char *path)
{
    sqlite3 *db;
    sqlite3_stmt *s;
    struct text all = {0};
    char sql[1024];
    snprintf(
        sql, sizeof sql,
        "PRAGMA page_size=8192; PRAGMA auto_vacuum=INCREMENTAL; PRAGMA journal_mode=WAL; ATTACH '%s' AS new;",
        disk_path);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(
        sqlite3_prepare_v2(db, "SELECT name, sql FROM new.sqlite_master WHERE sql IS NOT NULL", -1, &s, NULL),
        SQLITE_OK);
    while (sqlite3_step(s) == SQLITE_ROW) {
        const char *name = (const char *)sqlite3_column_text(s, 0);
        snprintf(sql, sizeof sql, "%s; INSERT INTO main.%s SELECT * FROM new.%s;",
                 (const char *)sqlite3_column_text(s, 1), name, name);
        text_puts(&all, sql);
    }
    sqlite3_finalize(s);
    text_puts(&all, "PRAGMA application_id=1952541817; PRAGMA user_version=4;");
    assert_int_equal(sqlite3_exec(db, all.ptr, NULL, NULL, NULL), SQLITE_OK);
    text_fini(&all);
    sqlite3_close(db);
}

static void test_file_of_an_older_format_gets_checksums(void **state)
{
    (void)state;
    char old[160];
    struct crashed c = make_crashed();
    crashed_fini(&c);
    snprintf(old, sizeof old, "%s", scratch_path(&disk_scratch, "old.db"));
    unlink(old);
    make_old_format(old);
    disk_clean(NULL);
    assert_int_equal(rename(old, disk_path), 0);
    assert_read(DISK_BATCHES); /* unchecked */
    assert_written(DISK_BATCHES);
    struct text file = read_file(disk_path);
    assert_int_equal(file.ptr[20], SQLITE_VFS_RESERVED);
    assert_int_equal(file.ptr[63], 5);
    for (size_t end = PAGE; end <= file.len; end += PAGE) {
        static const char zeros[SQLITE_VFS_RESERVED];
        assert_memory_not_equal(file.ptr + end - SQLITE_VFS_RESERVED, zeros, sizeof zeros);
    }
    text_fini(&file);
    assert_read(DISK_BATCHES);
}

/* Does a process other than this one find the file locked by SQLite's reader? */
static bool is_locked(void)
{
    int status;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct flock lock = {
            .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0x40000000 + 2, .l_len = 510};
        int fd = open(disk_path, O_RDWR);
        _exit(fd < 0 || fcntl(fd, F_GETLK, &lock) != 0 ? 2 : lock.l_type != F_UNLCK);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) < 2);
    return WEXITSTATUS(status) == 1;
}

/* A process that closes any descriptor of a file gives up all of its fcntl locks on it. */
static void test_reader_keeps_its_lock_where_a_writer_of_the_process_ends(void **state)
{
    struct err e;
    (void)state;
    struct store *writer = disk_open(disk_url), *reader = store_open(disk_url, STORE_READ, NULL, 0, &e);
    assert_non_null(reader);
    assert_true(store_hold(reader, &e));
    assert_true(is_locked());
    store_close(writer);
    assert_true(is_locked());
    writer = disk_open(disk_url); /* what was left open does not keep it out */
    store_close(writer);
    assert_true(is_locked());
    store_close(reader);
    assert_false(is_locked());
}

#define TEST(name) cmocka_unit_test_setup(name, disk_clean)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_log_that_is_damaged_in_the_middle_is_refused),
        TEST(test_last_transaction_that_is_torn_is_counted_again),
        TEST(test_process_killed_while_it_writes_the_last_frame),
        TEST(test_log_that_ends_within_a_transaction_is_read_up_to_it),
        TEST(test_page_of_another_place_is_damage),
        TEST(test_log_that_another_program_moved_is_no_damage),
        TEST(test_change_by_another_program_is_damage_until_vacuum),
        TEST(test_file_of_an_older_format_gets_checksums),
        TEST(test_reader_keeps_its_lock_where_a_writer_of_the_process_ends),
    };
    return cmocka_run_group_tests(tests, disk_setup, disk_teardown);
}
