/* Which logs does a follower find, and when does it list folders? */
#include "daemon/file/follow_internal.h"
#include "tests/support/fixture.h"
#include "tests/support/scratch.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#define NOW_MS INT64_C(1795390000000)

/* A follower of one source, without a thread. */
struct finder {
    struct scratch scratch;
    struct clock clock;
    struct feeds feeds;
    struct config *config;
    struct follow_source source;
    struct follow follow;
};

static int setup(void **state)
{
    struct finder *t = *state = calloc(1, sizeof *t);
    scratch_make(&t->scratch);
    t->clock = clock_fake(NOW_MS);
    lanes_init(&t->feeds.lanes, &t->clock);
    t->follow.feed.shared = &t->feeds;
    t->follow.feed.lane.lanes = &t->feeds.lanes;
    t->follow.sources = &t->source;
    t->follow.source_count = 1;
    return 0;
}

static int teardown(void **state)
{
    struct finder *t = *state;
    for (size_t i = 0; i < t->follow.count; i++)
        followed_free(&t->follow, t->follow.list[i]);
    free(t->follow.list);
    index_fini(&t->follow.by_path);
    listing_fini(&t->source.listing);
    config_free(t->config);
    lanes_fini(&t->feeds.lanes);
    scratch_remove(&t->scratch);
    free(t);
    return 0;
}

static void begin(struct finder *t, const char *yaml)
{
    t->config = fixture_config(yaml);
    t->source.config = &t->config->sources[0];
    t->source.has_begun = true; /* no store is asked for missed files */
    follow_find_plain(&t->follow);
}

static void test_a_path_is_not_taken_for_standard_input(void **state)
{
    struct finder *t = *state;
    static const char path[] = "/logs/uofnuzbba.log";
    begin(t, "sources: {a: {type: stdin}}");
    assert_int_equal(t->follow.count, 1);
    assert_int_equal((uint32_t)index_hash_text(path), 0); /* as that of standard input */
    assert_false(follow_has_log(&t->follow, path));
}

static void begin_globs(struct finder *t)
{
    struct text yaml = {0};
    text_printf(&yaml, "sources: {a: {path: '%s/*.log'}}", t->scratch.dir);
    begin(t, yaml.ptr);
    text_fini(&yaml);
}

/* A second later, the folder is listed if it may have changed. */
static bool is_listed(struct finder *t)
{
    struct err e;
    clock_pass(&t->clock, 1000);
    assert_true(follow_find(&t->follow, &e));
    return t->source.listed_ms == follow_now_ms(&t->follow);
}

static void change_folder(struct finder *t, int64_t changed_ms)
{
    const struct timespec at = {.tv_sec = changed_ms / 1000};
    assert_int_equal(utimensat(AT_FDCWD, t->scratch.dir, (struct timespec[2]){at, at}, 0), 0);
}

static void test_a_folder_is_listed_if_it_may_have_changed(void **state)
{
    struct finder *t = *state;
    begin_globs(t);
    change_folder(t, NOW_MS);
    assert_true(is_listed(t));
    assert_true(is_listed(t)); /* another change may have had the same time */
    assert_false(is_listed(t));
    change_folder(t, NOW_MS - 60000);
    assert_true(is_listed(t));
    assert_false(is_listed(t));
}

/* Another host's clock is ahead. */
static void test_a_folder_that_changed_in_the_future_is_listed_once(void **state)
{
    struct finder *t = *state;
    begin_globs(t);
    change_folder(t, NOW_MS + 3600000);
    assert_true(is_listed(t));
    assert_false(is_listed(t));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_path_is_not_taken_for_standard_input),
        TEST(test_a_folder_is_listed_if_it_may_have_changed),
        TEST(test_a_folder_that_changed_in_the_future_is_listed_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
