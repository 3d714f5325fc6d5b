#include "ingest/file/listing.h"

#include "tests/support/scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static void write_file(const char *name)
{
    scratch_write(scratch_path(&scratch_own, name), slice_text("x"));
}

static void make_folder(const char *name)
{
    assert_int_equal(mkdir(scratch_path(&scratch_own, name), 0700), 0);
}

static bool add(struct listing *l, const char *name, struct err *e)
{
    struct err wrong;
    struct pattern *p = pattern_new(slice_text(scratch_path(&scratch_own, name)), &wrong);
    if (p == NULL)
        fail_msg("%s", wrong.text);
    bool good = listing_add(l, p, e);
    pattern_free(p);
    return good;
}

/* The paths behind the scratch folder, each with | behind it. */
static void expect_paths(char **paths, size_t count, const char *wanted)
{
    struct text found = {0};
    text_puts(&found, "");
    for (size_t i = 0; i < count; i++)
        text_printf(&found, "%s|", paths[i] + strlen(scratch_own.dir));
    assert_string_equal(found.ptr, wanted);
    text_fini(&found);
}

static void expect(const char *pattern, const char *files, const char *folders)
{
    struct listing l = {0};
    struct err e = {0};
    if (!add(&l, pattern, &e))
        fail_msg("%s: %s", pattern, e.text);
    expect_paths(l.files, l.file_count, files);
    expect_paths(l.folders, l.folder_count, folders);
    assert_string_equal(l.unread, "");
    listing_fini(&l);
}

static void test_listing_has_the_files_that_match(void **state)
{
    (void)state;
    static const char *const names[] = {"b.log",  "a.log",   "a b\n.log", "\xff.log",
                                        ".h.log", "[x].log", "a.txt"};
    for (size_t i = 0; i < COUNT_OF(names); i++)
        write_file(names[i]);
    make_folder("d.log");
    assert_int_equal(mkfifo(scratch_path(&scratch_own, "f.log"), 0600), 0);
    assert_int_equal(symlink("a.txt", scratch_path(&scratch_own, "l.log")), 0);
    assert_int_equal(symlink("missing", scratch_path(&scratch_own, "m.log")), 0);
    expect("*.log", "/[x].log|/a b\n.log|/a.log|/b.log|/l.log|/\xff.log|", "|");
    expect(".*.log", "/.h.log|", "|");
    expect(".*", "/.h.log|", "|");
    expect("\\[x\\].log", "/[x].log|", "|");
    expect("{vhost}.txt", "/a.txt|", "|");
    expect("f.log", "/f.log|", "|");
    expect("d.log", "", "|");
    expect("none.log", "", "|");
}

static void test_listing_walks_through_folders(void **state)
{
    (void)state;
    make_folder("x");
    make_folder("y");
    make_folder("y/logs");
    make_folder("z");
    make_folder("z/logs");
    write_file("y/logs/b.log");
    write_file("z/logs/a.log");
    write_file("z/logs/b.log");
    write_file("file");
    assert_int_equal(symlink("z", scratch_path(&scratch_own, "w")), 0);
    expect("*/logs/{v}.log", "/w/logs/a.log|/w/logs/b.log|/y/logs/b.log|/z/logs/a.log|/z/logs/b.log|",
           "|/w/logs|/x/logs|/y/logs|/z/logs|");
    expect("[xy]/logs/b.log", "/y/logs/b.log|", "|/x/logs|/y/logs|");
    expect("y/./logs//b.log", "/y/logs/b.log|", "/y/logs|");
    expect("file/x*", "", "/file|");
    expect("missing/*/x", "", "/missing|");
}

static void test_listing_of_several_patterns_has_each_file_once(void **state)
{
    (void)state;
    struct listing l = {0};
    struct err e = {0};
    write_file("a.log");
    write_file("b.log");
    assert_true(add(&l, "b*", &e) && add(&l, "*.log", &e) && add(&l, "a.log", &e));
    expect_paths(l.files, l.file_count, "/a.log|/b.log|");
    expect_paths(l.folders, l.folder_count, "|");
    listing_fini(&l);
}

static void test_listing_of_a_relative_pattern(void **state)
{
    (void)state;
    struct listing l = {0};
    struct err e = {0};
    char here[512];
    struct pattern *p = pattern_new(slice_text("./*.log"), &e);
    assert_non_null(getcwd(here, sizeof here));
    write_file("a.log");
    assert_int_equal(chdir(scratch_own.dir), 0);
    bool good = listing_add(&l, p, &e);
    assert_int_equal(chdir(here), 0);
    assert_true(good);
    assert_int_equal(l.file_count, 1);
    assert_string_equal(l.files[0], "a.log");
    assert_int_equal(l.folder_count, 1);
    assert_string_equal(l.folders[0], ".");
    pattern_free(p);
    listing_fini(&l);
}

static void test_listing_says_what_it_could_not_read(void **state)
{
    (void)state;
    struct listing l = {0};
    struct err e = {0};
    write_file("a.log");
    assert_int_equal(symlink("loop", scratch_path(&scratch_own, "loop")), 0);
    assert_true(add(&l, "*.log", &e) && add(&l, "loop/*.log", &e));
    assert_int_equal(l.file_count, 1);
    struct text wanted = {0};
    text_printf(&wanted, "cannot read the folder %s/loop/: Too many levels of symbolic links",
                scratch_own.dir);
    assert_string_equal(l.unread, wanted.ptr);
    text_fini(&wanted);
    listing_fini(&l);
}

static void test_listing_has_a_limit(void **state)
{
    (void)state;
    struct listing l = {0};
    struct err e = {0};
    char name[16];
    for (int i = 0; i < LISTING_MAX; i++) {
        snprintf(name, sizeof name, "%d", i);
        assert_int_equal(symlink("/etc/passwd", scratch_path(&scratch_own, name)), 0);
    }
    assert_true(add(&l, "*", &e));
    assert_int_equal(l.file_count, LISTING_MAX);
    listing_fini(&l);
    write_file("x");
    assert_false(add(&l, "*", &e));
    assert_int_equal(e.code, EX_CONFIG);
    assert_non_null(strstr(e.text, "/* matches more than 10000 files or folders: narrow it"));
    listing_fini(&l);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, scratch_set_up, scratch_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_listing_has_the_files_that_match),
        TEST(test_listing_walks_through_folders),
        TEST(test_listing_of_several_patterns_has_each_file_once),
        TEST(test_listing_of_a_relative_pattern),
        TEST(test_listing_says_what_it_could_not_read),
        TEST(test_listing_has_a_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
