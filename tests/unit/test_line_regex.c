#include "tests/support/decoded.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define T  "2010-10-10T14:17:22Z "
#define AT "1286720242000"
#define COMBINED                                                                                      \
    "regex:(?<host>\\S+) (?<logname>\\S+) (?<user>\\S+) \\[(?<time>[^]]+)\\] \"(?<request>[^\"]*)\" " \
    "(?<status>\\d+|-) (?<bytes>\\d+|-) \"(?<referrer>[^\"]*)\" \"(?<agent>[^\"]*)\"(?: (?<cost>\\S+))?"

static void test_regex_lines_become_events(void **state)
{
    (void)state;
    static const struct decoded_case cases[] = {
        {"10.0.0.1 - frank [10/Oct/2010:14:17:22 +0000] \"GET /a?b HTTP/1.1\" 200 17 \"-\" \"curl\" 0.25",
         AT " host=10.0.0.1 user=frank request=GET /a?b HTTP/1.1 method=GET target=/a?b path=/a "
            "protocol=HTTP/1.1 "
            "status=200#200 bytes=17#17 agent=curl cost=0.25#250000"},
        {"h - - [10/Oct/2010:14:17:23 +0000] \"\" - - \"\\x\" \"\xff\"\r",
         "1286720243000 host=h referrer~~=\\x agent~~=\\xff"},
        {"h - - [10/Oct/2010:14:17:22 +0000] \"-\" 2000 - \"\" \"\"", "reject status 40"},
        {"h - - [10/Oct/2010 14:17:22 +0000] \"-\" 200 - \"\" \"\"", "reject time 8"},
        {"h - - [] \"-\" 200 - \"\" \"\"", "reject regex 1"},
        {"h - - [-] \"-\" 200 - \"\" \"\"", "reject no_time 1"},
        {"h - - [10/Oct/2010:14:17:22 +0000] \"-\" 200 - \"\" \"\" a b", "reject regex 1"},
        {"", "reject empty 1"},
    };
    decoded_check(COMBINED, NULL, cases, COUNT_OF(cases));
}

static void test_regex_must_match_the_whole_line(void **state)
{
    (void)state;
    static const struct decoded_case cases[] = {{"7 a", "7000 host=a"},
                                                {"7 a ", "reject regex 1"},
                                                {" 7 a", "reject regex 1"},
                                                {"7 ab", "reject regex 1"}};
    static const struct decoded_case either[] = {
        {"7 b", "7000 host=b"}, {"7 a", "reject regex 1"}, {"8", "8000"}};
    static const struct decoded_case bytes[] = {{"7 \xc3\xa4\x01", "7000 host~~=\\xc3 user~~=\\xa4\\x01"}};
    decoded_check("regex:(?<time>\\d) (?<host>a)", NULL, cases, COUNT_OF(cases));
    decoded_check("regex:(?<time>\\d)(?: (?<host>b))?", NULL, either, COUNT_OF(either));
    decoded_check("regex:(?<time>\\d) (?<host>.)(?<user>.*)", NULL, bytes, COUNT_OF(bytes));
}

static void test_regex_times_have_names(void **state)
{
    (void)state;
    static const struct decoded_case two[] = {{"1 2", "2000"}, {"1", "1000"}};
    static const struct decoded_case named[] = {{"1 2", "1000 time=2#2000000"}};
    static const struct decoded_case brokers[] = {{"x 2", "1286720242123 time=2#2000000 at=x"}};
    static const struct decoded_case syslog[] = {{"<13>Oct 10 13:55:36 host app: " T "b", AT " host=b"}};
    static const struct decoded_case json[] = {{"{\"log\": \"" T "\\u00e4\"}", AT " host~~=\\xc3\\xa4"}};
    decoded_check("regex:(?<ts>\\d+)(?: (?<timestamp>\\d+))?", NULL, two, COUNT_OF(two));
    decoded_check("regex:(?<at>\\d+) (?<time>.*)", "/at", named, COUNT_OF(named));
    decoded_check("regex:(?<at>.*) (?<time>.*)", "broker", brokers, COUNT_OF(brokers));
    decoded_check("syslog regex:(?<time>\\S+) (?<host>.*)", NULL, syslog, COUNT_OF(syslog));
    decoded_check("json:/log regex:(?<time>\\S+) (?<host>.*)", NULL, json, COUNT_OF(json));
}

/* None of these ends within years without a limit. */
static void test_regex_gives_up_lines_that_take_too_many_steps(void **state)
{
    (void)state;
    static const char *const steps[] = {"regex:(?<time>(a+)+)b", "regex:(?<time>(a|a)*)b",
                                        "regex:(?<time>(?:a|aa)+)b", "regex:(?<time>a*a*a*a*a*a*a*a*)b",
                                        "regex:(*NO_JIT)(?<time>(a+)+)b"};
    char line[2002];
    memset(line, 'a', sizeof line);
    memcpy(line + sizeof line - 3, "bc", 3);
    const struct decoded_case limit = {line, "reject match_limit 1"};
    for (size_t i = 0; i < COUNT_OF(steps); i++)
        decoded_check(steps[i], NULL, &limit, 1);
}

static void test_regex_is_interpreted_alike(void **state)
{
    (void)state;
    static const struct decoded_case cases[] = {
        {"7 a\\", "7000 host~~=a\\"}, {"7 ", "reject regex 1"}, {"8", "8000"}, {"x a", "reject regex 1"}};
    decoded_check("regex:(?<time>\\d)(?: (?<host>.+))?", NULL, cases, COUNT_OF(cases));
    decoded_check("regex:(*NO_JIT)(?<time>\\d)(?: (?<host>.+))?", NULL, cases, COUNT_OF(cases));
}

static void test_regex_wrong_ones_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *step, *expected;
    } cases[] = {
        {"regex:(?<time>a", "regex: found no regular expression: at byte 10, missing closing parenthesis"},
        {"regex:(?<time>a)(?<time>b)",
         "regex: found no regular expression: at byte 19, two named subpatterns have "
         "the same name (PCRE2_DUPNAMES not set)"},
        {"regex:(?J)(?<time>a)(?<time>b)", "regex: group 2: found \"time\" twice, expected each name once"},
        {"regex:(?<Time>a)",
         "regex: group 1: found \"Time\", expected a name of small letters, digits and _"},
        {"regex:", "regex: found no named group, expected some, as (?<time>\\S+) (?<host>\\S+)"},
        {"regex:(a)", "regex: found no named group, expected some, as (?<time>\\S+) (?<host>\\S+)"},
        {"regex:(?<host>a)",
         "found no time in regex, expected a time: name it, or say time: /NAME or broker"},
        {"regex:(*UTF)(?<time>a)",
         "regex: found no regular expression: at byte 7, using UTF is disabled by the "
         "application"},
    };
    struct decode d;
    struct err e;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        assert_false(decoded_configure(&d, cases[i].step, NULL, &e));
        assert_string_equal(e.text, cases[i].expected);
        assert_int_equal(e.code, EX_CONFIG);
    }
}

static void test_regex_steps_print_as_they_were_given(void **state)
{
    (void)state;
    struct decode d;
    struct err e;
    struct text out = {0};
    assert_true(decoded_configure(&d, "regex:(?<time>\\d+),'(?<target>.*)\"", NULL, &e));
    decode_print_steps(&d, &out);
    assert_string_equal(out.ptr, "[{regex: '(?<time>\\d+),''(?<target>.*)\"'}]");
    text_fini(&out);
    assert_true(decode_provides(&d, FIELD_PATH) && !decode_provides(&d, FIELD_HOST) && !decode_is_open(&d));
    assert_true(decode_takes_rest("regex:a{1,2}"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_regex_lines_become_events),
        cmocka_unit_test(test_regex_must_match_the_whole_line),
        cmocka_unit_test(test_regex_times_have_names),
        cmocka_unit_test(test_regex_gives_up_lines_that_take_too_many_steps),
        cmocka_unit_test(test_regex_is_interpreted_alike),
        cmocka_unit_test(test_regex_wrong_ones_are_refused),
        cmocka_unit_test(test_regex_steps_print_as_they_were_given),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
