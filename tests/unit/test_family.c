/* Which files are rotated ones of a log, and in which order were they written? */
#include "base/check.h"
#include "base/text.h"
#include "ingest/file/family.h"
#include "tests/support/scratch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

/* The linker has the calls of the system come here (--wrap): then `failing` of them fails, if it is not 0. */
enum failing { NONE, READDIR, STAT };
static enum failing failing;
static int failing_with;

static bool must_fail(enum failing call)
{
    errno = failing == call ? failing_with : errno;
    return failing == call;
}

struct dirent *__real_readdir(DIR *dir);
struct dirent *__wrap_readdir(DIR *dir);
struct dirent *__wrap_readdir(DIR *dir)
{
    return must_fail(READDIR) ? NULL : __real_readdir(dir);
}

int __real_stat(const char *name, struct stat *status);
int __wrap_stat(const char *name, struct stat *status);
int __wrap_stat(const char *name, struct stat *status)
{
    return must_fail(STAT) ? -1 : __real_stat(name, status);
}

static void test_names(void **state)
{
    (void)state;
    static const struct {
        const char *base, *name;
        bool is;
    } cases[] = {
        {"access.log", "access.log.1", true},
        {"access.log", "access.log.12", true},
        {"access.log", "access.log-1", true},
        {"access.log", "access.log.1.gz", true},
        {"access.log", "access.log.1.zst", true},
        {"access.log", "access.log.1.bz2", true},
        {"access.log", "access.log.1.xz", true},
        {"access.log", "access.log-20261123", true},
        {"access.log", "access.log-20261123.gz", true},
        {"access.log", "access.log-20261123-1763856000", true},
        {"access.log", "access.log.2026-11-23_10", true},
        {"access.log", "access.log.2026-11-23T10:30", true},
        {"access.log", "access.log.old", true},
        {"access.log", "access.log.old.gz", true},
        {"access.log", "access-20261123.log", true},
        {"access.log", "access-20261123.log.gz", true},
        {"access.log", "access.1.log", true},
        {"syslog", "syslog.1", true},
        {"0.log", "0.log.20260105-030351", true}, /* a container's, by the kubelet */
        {"0.log", "0.log.20260105-030351.gz", true},
        {"0.log", "1.log", false}, /* of the container's next start */
        {"access.log", "access.log", false},
        {"access.log", "access.log.gz", false},
        {"access.log", "access.log.bak", false},
        {"access.log", "access.log.1.bak", false},
        {"access.log", "access.log.1.lz4", false},
        {"access.log", "access.log.", false},
        {"access.log", "access.log.1.", false},
        {"access.log", "access.log1", false},
        {"access.log", "access.log.older", false},
        {"access.log", "access.logger.1", false},
        {"access.log", "error.log.1", false},
        {"access.log", "access", false},
        {"access.log", "access-ssl.log", false},
        {"access.log", "access-20261123.txt", false},
        {"access.log", "access.log.d", false},
        {"site.log", "site-2.log", false}, /* another site's */
        {"site.log", "site-202.log", false},
        {"site.log", "site-20261123.log", true},
        {"syslog", "syslog-2", true},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        if (family_has(slice_text(cases[i].base), slice_text(cases[i].name)) != cases[i].is)
            fail_msg("%s: %s", cases[i].base, cases[i].name);
    }
}

/* Make a file that changed so many minutes after another. */
static void put(const char *name, int minute)
{
    const char *path = scratch_path(&scratch_own, name);
    const struct timespec times[2] = {{.tv_sec = 1795390000 + minute * 60},
                                      {.tv_sec = 1795390000 + minute * 60}};
    scratch_write(path, slice_text("line\n"));
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

static void put_folder(const char *name)
{
    assert_int_equal(mkdir(scratch_path(&scratch_own, name), 0700), 0);
}

static void add_names(const struct family *f, struct text *names)
{
    for (size_t i = 0; i < f->count; i++)
        text_printf(names, "%s%s", i > 0 ? " " : "", f->files[i].path + strlen(scratch_own.dir) + 1);
}

/* The rotated files of access.log are these, in this order. */
static void assert_listed(const char *olddir, const char *expected)
{
    struct err e;
    struct family f;
    struct text names = {0};
    if (!family_list(&f, scratch_path(&scratch_own, "access.log"), olddir, &e))
        fail_msg("%s", e.text);
    add_names(&f, &names);
    assert_string_equal(names.ptr != NULL ? names.ptr : "", expected);
    text_fini(&names);
    family_fini(&f);
}

static void test_a_log_alone_has_none(void **state)
{
    (void)state;
    assert_listed(NULL, "");
    put("access.log", 0);
    put("error.log.1", 0);
    assert_listed(NULL, "");
}

/* Times do not matter: a copy may have another. */
static void test_numbers_say_the_order(void **state)
{
    (void)state;
    put("access.log", 4);
    put("access.log.1", 0);
    put("access.log.2.gz", 1);
    put("access.log.9.gz", 2);
    put("access.log.10.gz", 3);
    assert_listed(NULL, "access.log.10.gz access.log.9.gz access.log.2.gz access.log.1");
}

static void test_dates_say_the_order(void **state)
{
    (void)state;
    put("access.log-20261123", 0);
    put("access.log-20261122.gz", 1);
    put("access.log-20251231", 2);
    assert_listed(NULL, "access.log-20251231 access.log-20261122.gz access.log-20261123");
}

static void test_dates_before_the_extension_say_the_order(void **state)
{
    (void)state;
    put("access-20261123.log", 0);
    put("access-20261122.log.gz", 1);
    put("access-2.log", 2);
    assert_listed(NULL, "access-20261122.log.gz access-20261123.log");
}

static void test_times_say_the_order_of_names_of_several_kinds(void **state)
{
    (void)state;
    put("access.log.1", 3);
    put("access.log.old", 2);
    put("access.log-20261123", 1);
    assert_listed(NULL, "access.log-20261123 access.log.old access.log.1");
    put("access.log.1", 0);
    assert_listed(NULL, "access.log.1 access.log-20261123 access.log.old");
    put("access.log.old", 1); /* at one time: by name */
    assert_listed(NULL, "access.log.1 access.log-20261123 access.log.old");
}

static void test_a_file_that_is_being_packed_is_listed_once(void **state)
{
    (void)state;
    struct err e;
    struct family f;
    put("access.log.2.gz", 0);
    put("access.log.1", 1);
    put("access.log.1.gz", 2);
    put("access.log.1.xz", 2);
    assert_listed(NULL, "access.log.2.gz access.log.1");
    assert_true(family_list(&f, scratch_path(&scratch_own, "access.log"), NULL, &e));
    assert_true(f.files[0].is_packed);
    assert_false(f.files[1].is_packed);
    family_fini(&f);
}

static void test_a_file_is_described(void **state)
{
    (void)state;
    struct err e;
    struct family f;
    struct stat status;
    put("access.log.1", 1);
    assert_true(family_list(&f, scratch_path(&scratch_own, "access.log"), NULL, &e));
    assert_int_equal(f.count, 1);
    assert_int_equal(stat(f.files[0].path, &status), 0);
    assert_int_equal(f.files[0].device, status.st_dev);
    assert_int_equal(f.files[0].inode, status.st_ino);
    assert_int_equal(f.files[0].size, 5);
    assert_int_equal(f.files[0].changed_ns, INT64_C(1795390060) * 1000000000);
    family_fini(&f);
}

static void test_only_files_are_listed(void **state)
{
    (void)state;
    put_folder("access.log.1");
    assert_int_equal(mkfifo(scratch_path(&scratch_own, "access.log.2"), 0600), 0);
    assert_int_equal(symlink("nowhere", scratch_path(&scratch_own, "access.log.3")), 0);
    put("access.log.4", 0);
    assert_listed(NULL, "access.log.4");
}

/* logrotate may have moved some files before `olddir` was set. */
static void test_olddir_is_listed_beside_the_folder(void **state)
{
    (void)state;
    put_folder("old");
    put("old/access.log.2", 0);
    put("old/access.log.1", 2);
    put("old/access.log", 3);
    put("old/error.log.1", 0);
    put("access.log.3", 1);
    assert_listed(NULL, "access.log.3");
    assert_listed("old", "access.log.3 old/access.log.2 old/access.log.1");
    assert_listed(scratch_path(&scratch_own, "old"), "access.log.3 old/access.log.2 old/access.log.1");
}

static void test_all_files_are_listed_whatever_their_names(void **state)
{
    (void)state;
    struct err e;
    struct family f;
    struct text names = {0};
    put_folder("old");
    put("access.log", 3);
    put("kept.txt", 1);
    put("old/moved", 2);
    assert_true(family_list_all(&f, scratch_path(&scratch_own, "access.log"), "old", &e));
    add_names(&f, &names);
    assert_string_equal(names.ptr, "kept.txt old/moved");
    text_fini(&names);
    family_fini(&f);
}

/* FAMILY_FILES_MAX is not tried: it is only there to bound memory. */
static void test_a_folder_that_cannot_be_read_is_an_error(void **state)
{
    (void)state;
    struct err e = {0};
    struct family f;
    assert_false(family_list(&f, scratch_path(&scratch_own, "gone/access.log"), NULL, &e));
    assert_int_equal(e.code, EX_NOINPUT);
    assert_non_null(strstr(e.text, scratch_path(&scratch_own, "gone")));
    assert_int_equal(f.count, 0);
    put("access.log.1", 0);
    assert_false(family_list(&f, scratch_path(&scratch_own, "access.log"), "gone", &e));
    assert_int_equal(e.code, EX_NOINPUT);
    assert_int_equal(f.count, 0);
    assert_false(family_list(&f, scratch_path(&scratch_own, "access.log"), "access.log.1", &e));
    assert_int_equal(e.code, EX_NOINPUT);
    if (geteuid() == 0)
        return; /* root may read every folder */
    put_folder("locked");
    assert_int_equal(chmod(scratch_path(&scratch_own, "locked"), 0), 0);
    assert_false(family_list(&f, scratch_path(&scratch_own, "access.log"), "locked", &e));
    assert_int_equal(e.code, EX_NOPERM);
    assert_int_equal(chmod(scratch_path(&scratch_own, "locked"), 0700), 0);
}

/* A file that cannot be looked at may be there. */
static void test_files_that_cannot_be_looked_at_are_an_error(void **state)
{
    (void)state;
    static const struct {
        enum failing call;
        int why, code;
        bool retryable;
    } cases[] = {
        {READDIR, ESTALE, EX_IOERR, true}, {READDIR, EIO, EX_IOERR, true}, {STAT, ESTALE, EX_IOERR, true},
        {STAT, EACCES, EX_NOPERM, false},  {STAT, ENOENT, EX_OK, false},   {STAT, ENOTDIR, EX_OK, false},
    };
    put("access.log.1", 0);
    put("kept.txt", 0);
    const char *path = scratch_path(&scratch_own, "access.log");
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct err e = {0};
        struct family f;
        failing_with = cases[i].why;
        failing = cases[i].call;
        assert_int_equal(family_list(&f, path, NULL, &e), cases[i].code == EX_OK);
        assert_int_equal(e.code, cases[i].code);
        assert_int_equal(e.retryable, cases[i].retryable);
        assert_int_equal(f.count, 0);
        failing = NONE;
        family_fini(&f);
    }
    struct err e = {0};
    struct family f;
    assert_int_equal(unlink(scratch_path(&scratch_own, "access.log.1")), 0);
    failing_with = EACCES;
    failing = STAT;
    assert_true(family_list_all(&f, path, NULL, &e)); /* no name of this log */
    failing = NONE;
    assert_int_equal(f.count, 0);
    family_fini(&f);
}

static int tear_down(void **state)
{
    failing = NONE;
    return scratch_tear_down(state);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, scratch_set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        TEST(test_a_log_alone_has_none),
        TEST(test_numbers_say_the_order),
        TEST(test_dates_say_the_order),
        TEST(test_dates_before_the_extension_say_the_order),
        TEST(test_times_say_the_order_of_names_of_several_kinds),
        TEST(test_a_file_that_is_being_packed_is_listed_once),
        TEST(test_a_file_is_described),
        TEST(test_only_files_are_listed),
        TEST(test_olddir_is_listed_beside_the_folder),
        TEST(test_all_files_are_listed_whatever_their_names),
        TEST(test_a_folder_that_cannot_be_read_is_an_error),
        TEST(test_files_that_cannot_be_looked_at_are_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
