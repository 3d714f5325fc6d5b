/* The values of a dimension, by prefix. */
#include "base/mem.h"
#include "query/values.h"
#include "tests/support/asking.h"
#include "tests/support/dice.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static void begin(struct query *q)
{
    static const struct query_limits limits = {.rows_max = 1000, .points_max = 100, .series_max = 50};
    query_init(q, 0, &limits);
    q->top = 3;
}

static const struct asking values = {begin, values_set, values_run};

static int setup(void **state)
{
    static const char *const pages[] = {"/b", "/a", "/ab\"", "/abc", "/c", "/\xc3\xa9", "x"};
    static const char *const clients[] = {"::1\tGET\t200", "::1\tPOST\t200", "h\tGET\t404", "h\tPUT\t200"};
    world_setup(state);
    for (size_t i = 0; i < COUNT_OF(pages); i++)
        world_hit(*state, FIXTURE_PAGES, pages[i], "2015-05-17T10:05", 1);
    for (size_t i = 0; i < COUNT_OF(clients); i++)
        world_hit(*state, FIXTURE_CLIENTS, clients[i], "2015-05-17T10:05", 1);
    world_apply(*state, 1);
    return 0;
}

static void test_values_are_sorted_and_end_at_the_limit(void **state)
{
    asking_check(&values, *state, PARAMETERS("report=pages"),
                 "{\"values\":[\"/a\",\"/ab\\\"\",\"/abc\"],\"more\":true}\n");
    asking_check(&values, *state, PARAMETERS("report=pages", "dimension=path", "prefix=/a"),
                 "{\"values\":[\"/a\",\"/ab\\\"\",\"/abc\"],\"more\":false}\n");
    asking_check(&values, *state, PARAMETERS("report=pages", "prefix=/ab", "limit=1"),
                 "{\"values\":[\"/ab\\\"\"],\"more\":true}\n");
    asking_check(&values, *state, PARAMETERS("report=pages", "prefix=/abcd"),
                 "{\"values\":[],\"more\":false}\n");
    asking_check(&values, *state, PARAMETERS("report=pages", "prefix=/\xc3"),
                 "{\"values\":[\"/\xc3\xa9\"],\"more\":false}\n");
}

static void test_values_of_one_dimension_of_several_come_once(void **state)
{
    asking_check(&values, *state, PARAMETERS("report=clients", "dimension=host"),
                 "{\"values\":[\"::1\",\"h\"],\"more\":false}\n");
    asking_check(&values, *state, PARAMETERS("report=clients", "dimension=method"),
                 "{\"values\":[\"GET\",\"POST\",\"PUT\"],\"more\":false}\n");
    asking_check(&values, *state, PARAMETERS("report=clients", "dimension=method", "prefix=P", "limit=1"),
                 "{\"values\":[\"POST\"],\"more\":true}\n");
    asking_check(&values, *state, PARAMETERS("report=clients", "dimension=status", "prefix=2"),
                 "{\"values\":[\"200\"],\"more\":false}\n");
}

static void test_refusals(void **state)
{
    asking_refused(&values, *state, PARAMETERS("report=page"), EX_USAGE, "did you mean \"pages\"?");
    asking_refused(&values, *state, PARAMETERS("report=clients"), EX_USAGE,
                   "report clients: unknown dimension");
    asking_refused(&values, *state, PARAMETERS("report=clients", "dimension=hots"), EX_USAGE,
                   "did you mean \"host\"?");
    asking_refused(&values, *state, PARAMETERS("report=site"), EX_USAGE, "there is none");
    asking_refused(&values, *state, PARAMETERS("report=pages", "limit=51"), EX_USAGE, "limit: found");
    asking_refused(&values, *state, PARAMETERS("report=pages", "limit=-1"), EX_USAGE, "limit: found");
    asking_refused(&values, *state, PARAMETERS("report=pages", "from=now"), EX_USAGE, "unknown parameter");
}

static int compare_texts(const void *left, const void *right)
{
    return strcmp(*(char *const *)left, *(char *const *)right);
}

/* Random series, in any order, against a sorted list of them. */
static void test_random_against_a_sorted_list(void **state)
{
    struct world *w = *state;
    struct dice dice = dice_new("values");
    char texts[300][8], *sorted[300];
    struct text out = {0}, expected = {0};
    struct err e = {0};
    size_t known = 0;
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        snprintf(texts[i], sizeof texts[i], "q%03lld", (long long)dice_roll(&dice, 400));
        sorted[i] = texts[i];
        world_hit(w, FIXTURE_PAGES, texts[i], "2015-05-17T10:05", 1);
    }
    world_apply(w, 1);
    qsort(sorted, COUNT_OF(sorted), sizeof *sorted, compare_texts);
    text_puts(&expected, "{\"values\":[");
    for (size_t i = 0; i < COUNT_OF(sorted) && known < 50; i++) {
        if (i == 0 || strcmp(sorted[i - 1], sorted[i]) != 0)
            text_printf(&expected, "%s\"%s\"", known++ > 0 ? "," : "", sorted[i]);
    }
    text_puts(&expected, "],\"more\":true}\n");
    if (!asking_run(&values, w, PARAMETERS("report=pages", "prefix=q", "limit=50"), &out, &e))
        fail_msg("%s", e.text);
    assert_string_equal(out.ptr, expected.ptr);
    text_fini(&out);
    text_fini(&expected);
}

int main(void)
{
#define VALUES_TEST(f) cmocka_unit_test_setup_teardown(f, setup, world_teardown)
    const struct CMUnitTest tests[] = {
        VALUES_TEST(test_values_are_sorted_and_end_at_the_limit),
        VALUES_TEST(test_values_of_one_dimension_of_several_come_once),
        VALUES_TEST(test_refusals),
        VALUES_TEST(test_random_against_a_sorted_list),
    };
    int failed = 0;
    for (size_t i = 0; i < world_kind_count(); i++) {
        world_kind = &world_kinds[i];
        failed += cmocka_run_group_tests_name(world_kind->name, tests, NULL, NULL);
    }
    return failed;
}
