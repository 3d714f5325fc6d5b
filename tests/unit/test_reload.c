/* A reload takes every key that its table calls reloadable and no other, whatever keys there are. */
#include "config/config_read.h"
#include "config/keys.h"
#include "config/reload.h"
#include "tests/support/fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define SOURCE "sources:\n  access: {path: a.log}\n"
#define REPORT "reports:\n  pages: {by: [path]}\n"

static void check(const char *before, const char *after, const char *taken, const char *restart)
{
    struct config *running = fixture_config(before), *next = fixture_config(after);
    struct reload found;
    reload_take(running, next, &found);
    assert_string_equal(found.taken.ptr, taken);
    assert_string_equal(found.restart.ptr, restart);
    text_fini(&found.taken);
    /* The same once more finds nothing to take. */
    text_fini(&found.restart);
    reload_take(running, next, &found);
    assert_string_equal(found.taken.ptr, "");
    assert_string_equal(found.restart.ptr, restart);
    text_fini(&found.taken);
    text_fini(&found.restart);
    config_free(running);
    config_free(next);
}

static void test_reload_names_what_it_takes_and_keeps(void **state)
{
    (void)state;
    check(SOURCE, SOURCE, "", "");
    check(SOURCE, SOURCE "aggregate: {flush: 500ms}\nlog: {level: debug}",
          "aggregate.flush=500ms, log.level=debug", "");
    check(SOURCE "query: {rows_max: 5000}", SOURCE, "query.rows_max=1000000", "");
    check(SOURCE, SOURCE "http: {listen: '127.0.0.1:1'}\nlimits: {future_max: 2h, dimension_max: 64}",
          "limits.future_max=2h", "limits.dimension_max, http.listen");
    check(SOURCE, SOURCE "store: {url: 'sqlite:b.db'}", "", "store.url");
}

static void test_reload_compares_sources_and_reports_by_name(void **state)
{
    (void)state;
    check(SOURCE REPORT, "sources:\n  access: {path: b.log}\n" REPORT, "", "sources.access.path");
    check(SOURCE REPORT, "sources:\n  other: {path: a.log}\n" REPORT, "",
          "sources.other (new), sources.access (gone)");
    check(SOURCE REPORT, SOURCE "reports:\n  pages: {by: [path, status], where: [status<400]}\n", "",
          "reports.pages.by, reports.pages.where");
    check(SOURCE REPORT, SOURCE "reports:\n  pages: {by: [path], measures: {n: count}, series_max: 9}\n", "",
          "reports.pages.measures, reports.pages.series_max");
    check(SOURCE REPORT "  site: {}\n", SOURCE REPORT "  hosts: {by: [host]}\n", "",
          "reports.hosts (new), reports.site (gone)");
}

/* A secret is compared by what it is, and never shown. */
static void test_reload_sees_that_a_reference_stands_for_something_else(void **state)
{
    (void)state;
    setenv("TALLYD_TEST_URL", "sqlite:one.db", 1);
    struct config *running = fixture_config("store: {url: '${TALLYD_TEST_URL}'}"), *next;
    struct reload found;
    setenv("TALLYD_TEST_URL", "sqlite:two.db", 1);
    next = fixture_config("store: {url: '${TALLYD_TEST_URL}'}");
    reload_take(running, next, &found);
    assert_string_equal(found.restart.ptr, "store.url");
    assert_string_equal(running->store.url, "sqlite:one.db");
    text_fini(&found.taken);
    text_fini(&found.restart);
    config_free(running);
    config_free(next);
}

/* Each number of the table, moved to one of its ends. */
static void test_reload_follows_the_table(void **state)
{
    int taken = 0, kept = 0;
    (void)state;
    for (const struct key *k = keys_table; k->name != NULL; k++) {
        if (k->owner != KEY_OF_config ||
            (k->type != KEY_SIZE && k->type != KEY_DURATION && k->type != KEY_INTEGER))
            continue;
        struct config *running = config_default(), *next = config_default();
        struct reload found;
        int64_t value;
        memcpy(&value, (char *)running + k->offset, sizeof value);
        int64_t other = value == k->max ? k->min : k->max;
        memcpy((char *)next + k->offset, &other, sizeof other);
        reload_take(running, next, &found);
        memcpy(&value, (char *)running + k->offset, sizeof value);
        if ((value == other) != k->reload || (found.taken.len > 0) != k->reload ||
            (found.restart.len > 0) == k->reload)
            fail_msg("%s.%s", k->section, k->name);
        taken += k->reload;
        kept += !k->reload;
        text_fini(&found.taken);
        text_fini(&found.restart);
        config_free(running);
        config_free(next);
    }
    assert_true(taken >= 8 && kept >= 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reload_names_what_it_takes_and_keeps),
        cmocka_unit_test(test_reload_compares_sources_and_reports_by_name),
        cmocka_unit_test(test_reload_sees_that_a_reference_stands_for_something_else),
        cmocka_unit_test(test_reload_follows_the_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
