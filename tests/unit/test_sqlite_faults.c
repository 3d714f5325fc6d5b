/* The embedded store on a disk that fills up, fails or loses its power: an error that a user can act on,
 * nothing lost, nothing counted twice. */
#include "store/backend/backend.h"
#include "tests/support/dice.h"
#include "tests/support/disk.h"
#include "tests/support/fault_vfs.h"

#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

static void check_told(const struct err *e)
{
    assert_true(e->code == EX_IOERR && e->retryable);
    assert_non_null(strstr(e->text, disk_path));
    if (fault_vfs.code == SQLITE_FULL)
        assert_non_null(strstr(e->text, "the disk is full"));
}

/* Try until the fault is over; the store still tells the truth after every failure. */
static void apply_or_retry(struct store *st, struct batcher *b, int i)
{
    struct err e = {0};
    disk_add_batch(b, NULL, i);
    const struct batch *batch = batcher_seal(b, "access", i * 100, (i + 1) * 100);
    while (!store_apply(st, batch, &e)) {
        assert_true(fault_vfs.failed > 0);
        check_told(&e);
        disk_check_counts(st, i);
    }
    batcher_clear(b);
}

static void housekeep_or_retry(struct store *st, bool all)
{
    struct err e = {0};
    while (!store_housekeep(st, all, &e)) {
        assert_true(fault_vfs.failed > 0);
        check_told(&e);
    }
}

/* True if the fault came before the end. */
static bool play_with_fault(uint64_t fail_at, uint64_t failures, int code)
{
    struct store *st = disk_open(disk_url);
    struct batcher *b = batcher_new(disk_reports, FIXTURE_COUNT, 2);
    fault_vfs.calls = fault_vfs.failed = 0;
    fault_vfs.fail_at = fail_at;
    fault_vfs.failures = failures;
    fault_vfs.code = code;
    for (int i = 0; i < DISK_BATCHES; i++) {
        apply_or_retry(st, b, i);
        if (i % 2 == 1)
            housekeep_or_retry(st, i == 5);
    }
    bool has_failed = fault_vfs.failed > 0;
    disk_check_counts(st, DISK_BATCHES);
    store_close(st);
    batcher_free(b);
    fault_vfs_reset();
    st = disk_open(disk_url);
    disk_check_counts(st, DISK_BATCHES);
    store_close(st);
    return has_failed;
}

static void test_failed_write_is_told_and_the_batch_applied_again(void **state)
{
    static const int codes[] = {SQLITE_FULL, SQLITE_IOERR_WRITE, SQLITE_IOERR_FSYNC, SQLITE_IOERR_TRUNCATE};
    struct dice d = dice_new("faults");
    (void)state;
    int runs = 0;
    for (uint64_t at = 1 + (uint64_t)dice_roll(&d, 2);; at += 1 + (uint64_t)dice_roll(&d, 3), runs++) {
        int code = codes[dice_roll(&d, COUNT_OF(codes))];
        uint64_t failures = dice_roll(&d, 2) == 0 ? 1 : 1 + (uint64_t)dice_roll(&d, 40);
        disk_clean(NULL);
        if (!play_with_fault(at, failures, code))
            break;
    }
    assert_true(runs > 20);
}

/* A store that fails while it is created or opened says so, and is there the next time. */
static void test_failed_opening_is_told(void **state)
{
    (void)state;
    bool opened = false;
    for (uint64_t at = 1; !opened; at++) {
        struct err e = {0};
        disk_clean(NULL);
        fault_vfs.fail_at = at;
        fault_vfs.failures = 1000000;
        fault_vfs.code = SQLITE_FULL;
        struct store *st = store_open(disk_url, STORE_WRITE, disk_reports, FIXTURE_COUNT, &e);
        opened = st != NULL;
        assert_true(opened || e.text[0] != '\0');
        assert_true(opened || at < 1000);
        store_close(st);
        fault_vfs_reset();
        st = disk_open(disk_url);
        disk_check_counts(st, 0);
        store_close(st);
    }
}

static void copy_file(const char *from, const char *to)
{
    char buf[65536];
    FILE *in = fopen(from, "r"), *out = fopen(to, "w");
    assert_non_null(out);
    for (size_t n; in != NULL && (n = fread(buf, 1, sizeof buf, in)) > 0;)
        assert_int_equal(fwrite(buf, 1, n, out), n);
    if (in != NULL)
        fclose(in);
    fclose(out);
}

/* The files on the disk now, without the state of a process (PATH-shm). */
static void copy_store(void *context)
{
    (void)context;
    copy_file(disk_path, scratch_path(&disk_scratch, "crashed.db"));
    copy_file(disk_beside("-wal"), scratch_path(&disk_scratch, "crashed.db-wal"));
    unlink(scratch_path(&disk_scratch, "crashed.db-shm"));
}

static bool take_next(void *context, const struct position *p)
{
    *(int64_t *)context = p->range.to;
    return true;
}

/* The batches that are there after a crash: all that were acknowledged, and at most the one under way. */
static void check_crashed(int acknowledged)
{
    char crashed[160];
    struct err e;
    int64_t next = 0;
    snprintf(crashed, sizeof crashed, "sqlite:%s", scratch_path(&disk_scratch, "crashed.db"));
    struct store *st = disk_open(crashed);
    assert_true(store_positions(st, take_next, &next, &e));
    assert_in_range(next / 100, acknowledged, acknowledged + 1);
    disk_check_counts(st, (int)next / 100);
    assert_true(store_housekeep(st, true, &e));
    disk_check_counts(st, (int)next / 100);
    store_close(st);
}

static void test_crash_within_any_write_leaves_whole_batches(void **state)
{
    struct dice d = dice_new("crash");
    (void)state;
    for (uint64_t at = 1 + (uint64_t)dice_roll(&d, 2);; at += 1 + (uint64_t)dice_roll(&d, 3)) {
        disk_clean(NULL);
        struct store *st = disk_open(disk_url);
        struct batcher *b = batcher_new(disk_reports, FIXTURE_COUNT, 2);
        int acknowledged = -1;
        fault_vfs_reset();
        fault_vfs.crash_at = at;
        fault_vfs.crash = copy_store;
        for (int i = 0; i < DISK_BATCHES; i++) {
            apply_or_retry(st, b, i);
            if (i % 2 == 1)
                housekeep_or_retry(st, i == 5);
            if (acknowledged < 0 && fault_vfs.calls >= at)
                acknowledged = i;
        }
        fault_vfs_reset();
        if (acknowledged >= 0)
            check_crashed(acknowledged);
        store_close(st);
        batcher_free(b);
        if (acknowledged < 0)
            break;
    }
}

#define TEST(name) cmocka_unit_test_setup(name, disk_clean)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_failed_write_is_told_and_the_batch_applied_again),
        TEST(test_failed_opening_is_told),
        TEST(test_crash_within_any_write_leaves_whole_batches),
    };
    return cmocka_run_group_tests(tests, disk_setup, disk_teardown);
}
