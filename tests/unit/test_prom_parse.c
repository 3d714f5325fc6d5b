/* PromQL: what is taken, how it binds, and the words of what is refused. */
#include "prom/eval.h"
#include "prom/lex.h"
#include "prom/parse.h"
#include "tests/support/world.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define CHUNK_BYTES 4096

static const struct query_limits limits = {.rows_max = 1000, .points_max = 100, .series_max = 10};

static void test_scalars_come_to_what_arithmetic_says(void **state)
{
    struct world *w = *state;
    static const struct {
        const char *text;
        double value;
    } cases[] = {{"1+1", 2},
                 {"1 + 2 * 3", 7},
                 {"(1 + 2) * 3", 9},
                 {"10 - 2 - 3", 5},
                 {"2 ^ 3 ^ 2", 512},
                 {"-2 ^ 2", -4},
                 {"2 ^ -1", 0.5},
                 {"-2 * -3", 6},
                 {"--1", 1},
                 {"+-+1", -1},
                 {"7 % 4 / 2", 1.5},
                 {"-7 % 4", -3},
                 {"1 / 4", 0.25},
                 {"1 / 0", INFINITY},
                 {"-1 / 0", -INFINITY},
                 {"Inf - 1", INFINITY},
                 {"0x1F + .5 + 1e3 + 1e-3 + 2E+1", 31 + .5 + 1000 + .001 + 20},
                 {"1 == bool 1", 1},
                 {"1 < bool 1", 0},
                 {"1 + 1 >= bool 2 * 1", 1},
                 {"1 > bool 0 == bool 1", 1},
                 {" # a comment\n 1 # another\n+2", 3}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct eval_question q = {.text = slice_text(cases[i].text), .limits = limits};
        struct eval_answer a;
        struct err e;
        if (!eval_run(w->store, &q, &a, &e))
            fail_msg("%s: %s", cases[i].text, e.text);
        assert_int_equal(a.type, TYPE_SCALAR);
        assert_int_equal(a.vector.series_count, 1);
        if (a.vector.values[0] != cases[i].value)
            fail_msg("%s: expected %g, got %g", cases[i].text, cases[i].value, a.vector.values[0]);
        eval_fini(&a);
    }
}

static void test_vectors_are_taken(void **state)
{
    static const char *const cases[] = {
        "a",
        "a:b_c",
        "{__name__=\"a\"}",
        "a{}",
        "a{b=\"c\"}",
        "a{b=\"c\",}",
        "a { b != 'c' , d =~ `e.*\\d` , f !~ \"\" }",
        "a offset 5m",
        "a offset -1h30m",
        "rate(a[5m])",
        "rate(a{b=\"\\\"\\\\\\n\\x41\\u00e9\\101\"}[1d] offset 1w)",
        "sum(a)",
        "SUM BY (b) (a)",
        "sum(a) by (b, c,)",
        "sum without () (a)",
        "topk(2 + 1, a)",
        "bottomk by (x) (1, a)",
        "count(a) / 2 > 1",
        "a + on (b) c",
        "a / ignoring (b, d) c",
        "a and b or c unless d",
        "a > bool 1",
        "-a",
        "sum",
        "sum + rate",
        "by",
        "offset",
        "bool",
        "vector(1)",
        "a or vector(0)",
        "(((a)))",
        "last_over_time(a[1y2w3d4h5m6s7ms])",
        "a @ 5.5 offset -1m",
        "a offset 1m @ start()",
        "max_over_time(rate(a[5m] @ end())[1h:] offset 1d)",
        "max_over_time(max_over_time(a[5m:1m])[1h:5m] @ 7)",
        "a * on (b) group_left (c, d) e",
        "a * ignoring () group_right e",
        "label_replace(a, \"b\", \"$1\", \"c\", \"(.*)\")",
        "label_join(a, \"b\", \"\")",
        "hour()",
        "a atan2 c",
        "count_values without (b) (\"v\", a)",
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct arena arena;
        struct err e;
        arena_init(&arena, CHUNK_BYTES);
        struct node *n = parse_expression(slice_text(cases[i]), &arena, &e);
        if (n == NULL)
            fail_msg("%s: %s", cases[i], e.text);
        assert_int_equal(n->type, TYPE_VECTOR);
        arena_fini(&arena);
    }
}

struct refusal {
    const char *text, *complaint;
};

static void check_refused(const struct refusal *cases, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct arena arena;
        struct err e = {0};
        arena_init(&arena, CHUNK_BYTES);
        struct node *n = parse_expression(slice_text(cases[i].text), &arena, &e);
        if (n != NULL || strstr(e.text, cases[i].complaint) == NULL)
            fail_msg("%s: expected %s, got %s", cases[i].text, cases[i].complaint,
                     n != NULL ? "no complaint" : e.text);
        assert_int_equal(e.code, EX_PROTOCOL);
        arena_fini(&arena);
    }
}

static void test_what_is_refused_says_where_and_why(void **state)
{
    static const struct refusal cases[] = {
        {"", "1:1: parse error: unexpected end of input"},
        {"1 +", "1:4: parse error: unexpected end of input"},
        {"1 1", "1:3: parse error: unexpected \"1\", expected an operator or the end"},
        {"sum(\n  a", "2:4: parse error: unexpected end of input, expected \")\""},
        {"a{", "the name of a label"},
        {"a{b}", "1:4: parse error: unexpected \"}\", expected =, !=, =~ or !~"},
        {"a{b=c}", "a text in quotes"},
        {"a{b=\"c\" d=\"e\"}", "\",\" or \"}\""},
        {"a{b:c=\"d\"}", "it has a colon"},
        {"a{b=\"c}", "1:5: parse error: a string without an end"},
        {"a{b=\"\\d\"}", "1:7: parse error: unknown escape"},
        {"a{b=\"\\ud800\"}", "unknown escape"},
        {"a[5m]", "a range vector is no answer"},
        {"a[5]", "expected a duration"},
        {"a[0s]", "longer than nothing"},
        {"a[5m", "expected \"]\""},
        {"a[5m:1m]", "a range vector is no answer"},
        {"sum(a)[5m]", "1:7: parse error: a range follows a selector: write [5m:]"},
        {"a offset 1m [5m]", "a range follows a selector"},
        {"a[5m:0s]", "the step of a subquery must be longer than nothing"},
        {"a[5m][5m:]", "only a vector can be asked for over a range"},
        {"1[5m:]", "only a vector can be asked for over a range"},
        {"rate(a[5m:])", "rate of a subquery is not answered here: its values are no counts"},
        {"rate(a)", "rate expects a range vector"},
        {"sum(a[5m])", "sum expects an instant vector, found a range vector"},
        {"topk(a, a)", "topk expects a scalar"},
        {"topk(1)", "expected \",\""},
        {"sum(1)", "sum expects an instant vector, found a scalar"},
        {"vector(a)", "vector expects a scalar"},
    };
    (void)state;
    check_refused(cases, COUNT_OF(cases));
}

static void test_calls_and_modifiers_that_are_refused_say_why(void **state)
{
    static const struct refusal cases[] = {
        {"delta(a[5m])", "the function \"delta\" is not answered here: it extrapolates"},
        {"rat(a[5m])", "there is no function \"rat\" (did you mean \"rate\"?)"},
        {"quantile(a, a)", "quantile expects a scalar"},
        {"count_values(a, a)", "count_values expects a text"},
        {"count_values(\"a:b\", a)", "count_values expects the name of a label"},
        {"clamp(a, 1)", "clamp expects more arguments"},
        {"time(1)", "time takes no more arguments"},
        {"label_replace(a, \"~\", \"\", \"b\", \"\")", "label_replace expects the name of a label"},
        {"label_join(a, \"b\", \"-\", \"~\")", "label_join expects the name of a label"},
        {"a @ b", "expected seconds since 1970, start() or end()"},
        {"a @ NaN", "expected seconds since 1970"},
        {"a @ 5 @ 5", "1:7: parse error: @ follows a selector or a subquery, once"},
        {"sum(a) offset 5m", "offset follows a selector or a subquery, once"},
        {"a + group_left b", "group_left follows on or ignoring"},
        {"a and on (b) group_left c", "group_left follows on or ignoring, and not with and"},
        {"a + fill (0) b", "fill is not answered here"},
        {"\"a\" + 1", "a text is no operand"},
        {"\"a\"", "a text alone is not answered here"},
        {"a offset b", "expected a duration"},
        {"a[5m] + 1", "a range vector is no operand"},
        {"-a[5m]", "a range vector has no sign"},
        {"1 == 1", "needs the modifier bool"},
        {"1 + bool 1", "bool belongs to comparisons"},
        {"1 and 2", "between vectors"},
        {"a + on (b) 1", "on and ignoring are between vectors"},
        {"sum by (a) (b) by (c)", "only one by or without"},
        {"\"text\"", "a text alone"},
        {"5m", "unexpected \"5m\""},
        {"5mm", "expected a number or a duration"},
        {"1x", "expected a number or a duration"},
        {"99999999999999999999y", "expected a number or a duration"},
        {"a ? b", "1:3: parse error: unexpected \"?\""},
        {"a ! b", "unexpected \"!\""},
        {":a", "unexpected \":\""},
        {"\xff", "unexpected \"\\xff\""},
    };
    (void)state;
    check_refused(cases, COUNT_OF(cases));
}

static void check_too_deep(const char *open, const char *middle, const char *close, size_t times, bool good)
{
    struct text text = {0};
    struct arena arena;
    struct err e = {0};
    for (size_t i = 0; i < times; i++)
        text_puts(&text, open);
    text_puts(&text, middle);
    for (size_t i = 0; i < times; i++)
        text_puts(&text, close);
    arena_init(&arena, CHUNK_BYTES);
    assert_int_equal(parse_expression(text_slice(&text), &arena, &e) != NULL, good);
    if (!good && strstr(e.text, "more than") == NULL)
        fail_msg("%s", e.text);
    arena_fini(&arena);
    text_fini(&text);
}

static void test_depth_and_length_have_limits(void **state)
{
    (void)state;
    check_too_deep("(", "1", ")", PARSE_DEPTH_MAX - 1, true);
    check_too_deep("(", "1", ")", PARSE_DEPTH_MAX, false);
    check_too_deep("-", "1", "", PARSE_DEPTH_MAX, false);
    check_too_deep("2^", "1", "", PARSE_DEPTH_MAX, false);
    check_too_deep("1+", "1", "", PARSE_DEPTH_MAX - 1, true);
    check_too_deep("1+", "1", "", PARSE_DEPTH_MAX, false);
    check_too_deep("sum(", "a", ")", PARSE_DEPTH_MAX, false);
    check_too_deep(" ", "1", "", PARSE_BYTES_MAX, false);
}

static void test_durations(void **state)
{
    int64_t ms;
    (void)state;
    assert_true(lex_duration(slice_text("1h30m"), &ms));
    assert_int_equal(ms, 90 * MINUTE_MS);
    assert_true(lex_duration(slice_text("250ms"), &ms));
    assert_int_equal(ms, 250);
    assert_true(lex_duration(slice_text("2w1y"), &ms));
    assert_int_equal(ms, 379LL * DAY_MS);
    static const char *const bad[] = {"", "5", "m", "5x", "5m3", "-5m", "9999y", "99999999999999999999ms"};
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        assert_false(lex_duration(slice_text(bad[i]), &ms));
}

static void test_selector_alone(void **state)
{
    struct arena arena;
    struct err e;
    (void)state;
    arena_init(&arena, CHUNK_BYTES);
    struct node *n = parse_selector(slice_text("a:b{c=\"\\x64\"}"), &arena, &e);
    assert_non_null(n);
    assert_int_equal(n->selector.matcher_count, 2);
    assert_true(slice_is(n->selector.matchers[0].value, "a:b"));
    assert_true(slice_is(n->selector.matchers[1].name, "c"));
    assert_true(slice_is(n->selector.matchers[1].value, "d"));
    assert_null(parse_selector(slice_text("sum(a)"), &arena, &e));
    assert_non_null(strstr(e.text, "expected a selector"));
    assert_null(parse_selector(slice_text("a[5m]"), &arena, &e));
    arena_fini(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_scalars_come_to_what_arithmetic_says, world_setup,
                                        world_teardown),
        cmocka_unit_test(test_vectors_are_taken),
        cmocka_unit_test(test_what_is_refused_says_where_and_why),
        cmocka_unit_test(test_calls_and_modifiers_that_are_refused_say_why),
        cmocka_unit_test(test_depth_and_length_have_limits),
        cmocka_unit_test(test_durations),
        cmocka_unit_test(test_selector_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
