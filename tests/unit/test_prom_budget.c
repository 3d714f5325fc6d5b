/* The cost of one question: its parts take from one budget, and a refusal names the limit. */
#include "prom/eval.h"
#include "prom/list.h"
#include "prom/regex.h"
#include "tests/support/world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define NOON "2015-05-17T12:00"

static int setup(void **state)
{
    static const char *const paths[] = {"/a", "/b", "/c", "/d", "/e", "/f"};
    world_setup(state);
    struct world *w = *state;
    for (size_t i = 0; i < COUNT_OF(paths); i++)
        world_hit(w, FIXTURE_PAGES, paths[i], "2015-05-17T11:59", (int64_t)i + 1);
    world_apply(w, 1);
    return 0;
}

/* The text once, and as often again, joined by `or`. */
static bool ask(struct world *w, const char *text, size_t copies, uint64_t rows_max, struct err *e)
{
    struct text expression = {0};
    struct eval_answer a;
    for (size_t i = 0; i < copies; i++)
        text_printf(&expression, "%s%s", i > 0 ? " or " : "", text);
    struct eval_question q = {
        .text = text_slice(&expression),
        .from_ms = fixture_ms(NOON),
        .to_ms = fixture_ms(NOON),
        .limits = {.rows_max = rows_max, .points_max = 100, .series_max = 100},
    };
    bool good = eval_run(w->store, &q, &a, e);
    if (good)
        eval_fini(&a);
    text_fini(&expression);
    return good;
}

static void test_all_parts_of_a_question_take_from_one_budget(void **state)
{
    static const struct {
        const char *text, *complaint;
        uint64_t rows_max;
        size_t copies; /* one of them is answered, so many are not */
    } cases[] = {
        {"count(pages:hits{path!=\"\"} offset 1y)",
         "more than 40 names of series (10 for each of query.rows_max): use fewer selectors", 4, 10},
        {"count by (path) (pages:hits{path=~\"/[ac]\"} offset 1y)",
         "more than 2000 steps of regular expressions (500 for each of query.rows_max)", 4, 4},
        {"sum by (path) (pages:hits offset 1y)", "more than 40 names of series", 4, 10},
        {"increase(pages:hits[1h])",
         "more than 8 rows of the store (query.rows_max): select fewer series, a shorter range or a longer "
         "step",
         8, 20},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct err e = {0};
        if (!ask(*state, cases[i].text, 1, cases[i].rows_max, &e))
            fail_msg("%s: %s", cases[i].text, e.text);
        assert_false(ask(*state, cases[i].text, cases[i].copies, cases[i].rows_max, &e));
        if (strstr(e.text, cases[i].complaint) == NULL)
            fail_msg("%s: \"%s\" is not in \"%s\"", cases[i].text, cases[i].complaint, e.text);
        assert_int_equal(e.code, EX_UNAVAILABLE);
    }
}

/* Ten names may be looked at: there are seven, and `other` of each report without any. */
static void test_metrics_of_one_report_look_at_its_names_once(void **state)
{
    struct slice selector = slice_text("{path!=\"\"}");
    struct list_ask ask_of = {.selectors = &selector, .selector_count = 1, .max = 100, .rows_max = 1};
    struct text out = {0};
    struct err e = {0};
    bool is_cut;
    struct world *w = *state;
    if (!ask(w, "count({path!=\"\",__name__!=\"\"} offset 1y)", 1, 1, &e))
        fail_msg("%s", e.text);
    if (!list_values(w->store, slice_text("__name__"), &ask_of, &out, &is_cut, &e))
        fail_msg("%s", e.text);
    assert_string_equal(out.ptr, "[\"pages:bytes\",\"pages:hits\"]");
    assert_false(is_cut);
    text_fini(&out);
}

static struct store_reader_ops counting;
static const struct store_reader_ops *real;
static size_t key_count, walk_count;

static bool count_key(struct store *st, size_t report, uint32_t series, struct text *key, struct err *e)
{
    key_count++;
    return real->series_key(st, report, series, key, e);
}

static bool count_walk(struct store *st, size_t report, series_fn *fn, void *context, struct err *e)
{
    walk_count++;
    return real->series_each(st, report, fn, context, e);
}

static void test_names_are_looked_up_for_what_needs_them_only(void **state)
{
    static const struct {
        const char *text;
        size_t keys, walks;
    } cases[] = {{"topk(2, pages:bytes)", 2, 0},
                 {"bottomk(1, increase(pages:bytes[1h]))", 1, 0},
                 {"topk by (path) (1, pages:bytes)", 6, 0},
                 {"count(pages:hits)", 0, 0},
                 {"max by () (max_over_time(pages:bytes[5m]))", 0, 0},
                 {"sum by (path) (pages:hits)", 0, 1},
                 {"sum by (path) (pages:hits{path=\"/a\"})", 1, 0},
                 {"pages:hits", 6, 0}};
    struct world *w = *state;
    real = w->store->reader;
    counting = *real;
    counting.series_key = count_key;
    counting.series_each = count_walk;
    w->store->reader = &counting;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct err e;
        key_count = walk_count = 0;
        if (!ask(w, cases[i].text, 1, 1000, &e))
            fail_msg("%s: %s", cases[i].text, e.text);
        if (key_count != cases[i].keys || walk_count != cases[i].walks)
            fail_msg("%s: %zu keys, %zu walks", cases[i].text, key_count, walk_count);
    }
    w->store->reader = real;
}

static void test_lists_take_from_a_budget(void **state)
{
    struct slice selectors[] = {slice_text("{path!=\"\"}"), slice_text("{path!=\"\",path!=\"/a\"}")};
    struct list_ask ask_of = {.selectors = selectors, .selector_count = 2, .max = 100, .rows_max = 1};
    struct text out = {0};
    struct world *w = *state;
    bool is_cut;
    for (size_t i = 0; i < 3; i++) {
        struct err e = {0};
        text_clear(&out);
        bool good = i == 0   ? list_labels(w->store, &ask_of, &out, &is_cut, &e)
                    : i == 1 ? list_values(w->store, slice_text("path"), &ask_of, &out, &is_cut, &e)
                             : list_series(w->store, &ask_of, &out, &is_cut, &e);
        assert_false(good);
        assert_int_equal(e.code, EX_UNAVAILABLE);
        assert_non_null(strstr(e.text, "more than 10 names of series"));
    }
    /* Without selectors the walk itself takes from it: of clients nothing, of pages six. */
    ask_of.selector_count = 0;
    ask_of.rows_max = 0;
    struct err e = {0};
    assert_false(list_values(w->store, slice_text("path"), &ask_of, &out, &is_cut, &e));
    assert_non_null(strstr(e.text, "more than 0 names of series"));
    text_fini(&out);
}

/* Each step that may be gone back to keeps two thousand groups. */
static void test_a_regular_expression_may_not_take_all_memory(void **state)
{
    struct text pattern = {0}, text = {0};
    struct budget b;
    struct err e = {0};
    bool matches;
    (void)state;
    for (size_t i = 0; i < 2000; i++)
        text_puts(&pattern, "()");
    text_puts(&pattern, "(?:(?:(?:a|b)|c)|d)*[ef]");
    for (size_t i = 0; i < 4000; i++)
        text_putc(&text, 'a');
    struct regex *r = regex_new(text_slice(&pattern), &e);
    assert_non_null(r);
    budget_init(&b, 1000, NULL, NULL);
    assert_false(regex_matches(r, text_slice(&text), &b, &matches, &e));
    assert_int_equal(e.code, EX_USAGE);
    assert_non_null(strstr(e.text, "or 16 MiB for a text of 4000 bytes"));
    assert_true(b.left[BUDGET_REGEX_STEPS] > b.max[BUDGET_REGEX_STEPS] - REGEX_STEPS_MAX);
    regex_free(r);
    text_fini(&pattern);
    text_fini(&text);
}

/* One step may read the whole text by a long class, so it may take fewer steps. */
static void test_a_step_over_many_bytes_costs_more(void **state)
{
    static const struct {
        size_t items, bytes, steps;
    } cases[] = {{0, 10, REGEX_STEPS_MAX}, {0, 5000, REGEX_LOOKS_MAX / (5001 * 2) + 1}, {600, 500, 34}};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct text pattern = {0}, text = {0};
        struct budget b;
        struct err e = {0};
        bool matches;
        char complaint[64];
        text_puts(&pattern, "(?:[^/");
        for (size_t item = 0; item < cases[i].items; item++)
            text_puts(&pattern, "\\pM");
        text_puts(&pattern, "]*.?)*[xy]");
        for (size_t at = 0; at < cases[i].bytes; at++)
            text_putc(&text, 'a');
        struct regex *r = regex_new(text_slice(&pattern), &e);
        assert_non_null(r);
        budget_init(&b, 1000, NULL, NULL);
        assert_false(regex_matches(r, text_slice(&text), &b, &matches, &e));
        snprintf(complaint, sizeof complaint, "takes more than %zu steps", cases[i].steps);
        if (strstr(e.text, complaint) == NULL)
            fail_msg("\"%s\" is not in \"%s\"", complaint, e.text);
        regex_free(r);
        text_fini(&pattern);
        text_fini(&text);
    }
}

static void test_what_is_worked_out_is_limited_too(void **state)
{
    struct budget b;
    struct err e;
    (void)state;
    budget_init(&b, UINT64_MAX, NULL, NULL);
    assert_true(budget_take(&b, BUDGET_ROWS, UINT64_MAX, &e));
    assert_true(budget_take(&b, BUDGET_NAMES, UINT64_MAX, &e));
    assert_true(budget_take(&b, BUDGET_POINTS, BUDGET_POINTS_MAX, &e));
    assert_false(budget_take(&b, BUDGET_POINTS, 1, &e));
    assert_non_null(strstr(e.text, "more than 100000000 values in all of its parts: use fewer operations"));
    assert_false(budget_take(&b, BUDGET_SERIES, BUDGET_SERIES_MAX + 1, &e));
    assert_non_null(strstr(e.text, "more than 200000 series with their labels: select fewer"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_all_parts_of_a_question_take_from_one_budget),
        TEST(test_metrics_of_one_report_look_at_its_names_once),
        TEST(test_names_are_looked_up_for_what_needs_them_only),
        TEST(test_lists_take_from_a_budget),
        cmocka_unit_test(test_a_regular_expression_may_not_take_all_memory),
        cmocka_unit_test(test_a_step_over_many_bytes_costs_more),
        cmocka_unit_test(test_what_is_worked_out_is_limited_too),
    };
    int failed = 0;
    for (size_t i = 0; i < 2; i++) {
        world_kind = &world_kinds[i];
        failed += cmocka_run_group_tests_name(world_kind->name, tests, NULL, NULL);
    }
    return failed;
}
