#include "ingest/decode/chain.h"
#include "tests/support/decoded.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define T  "2010-10-10 14:17:22 "
#define AT "1286720242000"

static void know(const char *name)
{
    enum field f;
    assert_true(field_intern(slice_text(name), &f));
}

static void test_w3c_lines_become_events(void **state)
{
    (void)state;
    static const struct decoded_case cases[] = {
        {T "10.0.0.1 GET /a b=c 200 Mozilla/5.0+(X;+Y) 15 443",
         AT " port=443 host=10.0.0.1 method=GET target=/a?b=c path=/a status=200#200 agent=Mozilla/5.0 (X; Y)"
            " duration=0.015#15000"},
        {T "10.0.0.1 GET /a - 200 - 15 443 ",
         AT " port=443 host=10.0.0.1 method=GET target=/a path=/a status=200#200 duration=0.015#15000"},
        {T "- - - b=c - - 1.5 -", AT " duration=1.5#1500000"},
        {"2010-10-10 14:17:22.250 - - - - - - - -", "1286720242250"},
        {T "- - - - - - many -\r", AT " duration=many"},
        {"2010-10-10\t14:17:22\ta b\t-\t/a b\t\"c\t-\t\"x\"\"\ty\"\t0\t-",
         AT " host=a b target=/a b?\"c path=/a b agent~~=x\"\\x09y duration=0#0"},
        {"2010-10-10\t14:17:22\ta b\t-\t/a b\tc\t-\t\"x\"\"y\t\"\t0\t-",
         AT " host=a b target=/a b?c path=/a b agent~~=x\"y\\x09 duration=0#0"},
        {T "- - \"/a \"\"b\" \"c d\" - \"one two\" 1000 -",
         AT " target=/a \"b?c d path=/a \"b agent=one two duration=1#1000000"},
        {T "- - /a - - \"curl+x\" 1 -", AT " target=/a path=/a agent=curl+x duration=0.001#1000"},
        {T "- - /a - - \"half 1 -", AT " target=/a path=/a agent=\"half duration=0.001#1000"},
    };
    know("duration");
    decoded_check(
        "w3c:date time c-ip cs-method cs-uri-stem cs-uri-query sc-status cs(User-Agent) time-taken s-port",
        NULL, cases, COUNT_OF(cases));
}

static void test_w3c_of_cloudfront(void **state)
{
    (void)state;
    static const struct decoded_case cases[] = {
        {"2010-10-10\t14:17:22\tLAX\td1.example.net\twww.example.com\tMozilla/5.0%20(X)%2a+%2\t2\t-",
         AT " vhost=www.example.com agent=Mozilla/5.0 (X)*+%2 duration=2#2000000 header_host=d1.example.net"},
    };
    know("header_host");
    decoded_check("w3c:date time x-edge-location cs(Host) x-host-header cs(User-Agent) time-taken cs(Cookie)",
                  NULL, cases, COUNT_OF(cases));
}

static void test_w3c_names_become_fields(void **state)
{
    (void)state;
    static const struct decoded_case cases[] = {
        {T "a b c d e f g h",
         AT " vhost=a host=b referrer=h x_forwarded_for=d response_server=e sc_substatus=f"},
    };
    static const struct decoded_case hosts[] = {{T "a b", AT " vhost=b header_host=a"}};
    know("x_forwarded_for");
    know("response_server");
    know("sc_substatus");
    know("header_host");
    decoded_check(
        "w3c:date time cs(Host) c-ip c-ip cs(X-Forwarded-For) sc(Server) sc-substatus sc-none cs(Referer)",
        NULL, cases, COUNT_OF(cases));
    decoded_check("w3c:date time cs(Host) cs-host", NULL, hosts, COUNT_OF(hosts));
}

static void test_w3c_wrong_lines_are_rejected_where_they_are_wrong(void **state)
{
    (void)state;
    static const struct decoded_case cases[] = {
        {"", "reject empty 1"},
        {"\r", "reject empty 1"},
        {T "a", "reject columns 22"},
        {T "a 200 x", "reject columns 27"},
        {T "a 2x0", "reject status 23"},
        {T "a \"2x\"", "reject status 24"},
        {"- 14:17:22 a 200", "reject member 1"},
        {"2010-10-10 - a 200", "reject member 1"},
        {"2010-10-32 14:17:22 a 200", "reject time_range 1"},
        {"10/10/2010 14:17:22 a 200", "reject time 1"},
    };
    static const struct decoded_case none[] = {{T "a", "reject fields 1"}};
    decoded_check("w3c:date time c-ip sc-status", NULL, cases, COUNT_OF(cases));
    decoded_check("w3c", NULL, none, COUNT_OF(none));
}

static void test_w3c_wrong_configurations_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *step, *time, *expected;
    } cases[] = {
        {"w3c:", NULL, "w3c: found 0 names, expected 1 to 128, as date time c-ip"},
        {"w3c:date c-ip", NULL,
         "w3c: found no date and time among the names, expected both, or time: broker"},
        {"syslog w3c", NULL, "found w3c behind another step, expected its names: {w3c: date time c-ip}"},
        {"w3c", "/time",
         "found /time, expected a time's pointer only where decode ends in json, logfmt, csv, tsv or regex"},
    };
    struct decode d;
    struct err e;
    struct text out = {0};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        assert_false(decoded_configure(&d, cases[i].step, cases[i].time, &e));
        assert_string_equal(e.text, cases[i].expected);
    }
    assert_true(decoded_configure(&d, "w3c:c-ip", "broker", &e));
    decode_print_steps(&d, &out);
    assert_string_equal(out.ptr, "[{w3c: 'c-ip'}]");
    text_clear(&out);
    assert_true(decoded_configure(&d, "w3c", NULL, &e) && decode_heeds_directives(&d));
    decode_print_steps(&d, &out);
    assert_string_equal(out.ptr, "[w3c]");
    text_fini(&out);
}

/* What becomes of a line: 'e', 'r' or '#'. */
static char result_of(struct chain *c, const char *line, int32_t partition)
{
    struct record r = {.value = slice_text(line), .partition = partition, .timestamp_ms = -1};
    struct event ev;
    struct reject why;
    struct slice bytes;
    chain_start(c, &r);
    enum chain_result what = chain_next(c, &ev, &why, &bytes);
    chain_flush(c);
    return what == CHAIN_EVENT ? 'e' : what == CHAIN_REJECT ? 'r' : '#';
}

static void test_directives_hold_in_a_file_but_not_over_messages(void **state)
{
    (void)state;
    struct decode d;
    struct err e;
    assert_true(decoded_configure(&d, "w3c", NULL, &e));
    struct chain *c = chain_new(&d, 100);
    assert_int_equal(result_of(c, "#Fields: date time c-ip", RECORD_NO_PARTITION), '#');
    assert_int_equal(result_of(c, T "a", RECORD_NO_PARTITION), 'e');
    assert_int_equal(result_of(c, T "a", 0), 'r');
    chain_set_directive(c, slice_text("\xEF\xBB\xBF#Fields: date time c-ip sc-status\r"));
    assert_int_equal(result_of(c, T "a 200", RECORD_NO_PARTITION), 'e');
    assert_int_equal(result_of(c, T "a", RECORD_NO_PARTITION), 'r');
    chain_set_directive(c, slice_of("", 0));
    assert_int_equal(result_of(c, T "a 200", RECORD_NO_PARTITION), 'r');
    chain_set_directive(c, slice_text("#Fields: date time c-ip"));
    assert_int_equal(result_of(c, T "a", RECORD_NO_PARTITION), 'e');
    chain_set_directive(c, slice_text("#Fields: date time c-ip                                             "
                                      "                                 x"));
    assert_int_equal(result_of(c, T "a", RECORD_NO_PARTITION), 'r');
    chain_free(c);
}

/* All results of a message's lines. */
static void check_message(struct chain *c, const char *message, const char *want)
{
    struct record r = {.value = slice_text(message), .partition = 0, .timestamp_ms = -1};
    struct event ev;
    struct reject why;
    struct slice bytes;
    chain_start(c, &r);
    for (enum chain_result what; (what = chain_next(c, &ev, &why, &bytes)) != CHAIN_END; want++) {
        assert_int_equal(what == CHAIN_EVENT ? 'e' : what == CHAIN_REJECT ? 'r' : '#', *want);
        if (what == CHAIN_REJECT)
            assert_int_equal(why.reason, REJECT_FIELDS);
    }
    assert_int_equal(*want, '\0');
    chain_flush(c);
}

/* The lines of the next messages would be read by the wrong names, so it is told. */
static void test_message_that_only_names_other_fields_is_rejected(void **state)
{
    (void)state;
    struct decode d;
    struct err e;
    assert_true(decoded_configure(&d, "w3c:date time c-ip", NULL, &e));
    struct chain *c = chain_new(&d, 1000);
    check_message(c, "#Fields: date time  c-ip", "#");
    check_message(c, "#Date: 2026-01-05 00:00:00", "#");
    check_message(c, "#Fields: date time c-ip sc-status", "r");
    check_message(c, "#Fields: date time c-ip sc-status\n#Date: 2026-01-05 00:00:00", "#r");
    check_message(c, "#Fields: date time c-ip sc-status\n" T "a 200\n#Date: 2026-01-05 00:00:00", "#e#");
    check_message(c, T "a", "e");
    chain_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_w3c_lines_become_events),
        cmocka_unit_test(test_w3c_of_cloudfront),
        cmocka_unit_test(test_w3c_names_become_fields),
        cmocka_unit_test(test_w3c_wrong_lines_are_rejected_where_they_are_wrong),
        cmocka_unit_test(test_w3c_wrong_configurations_are_refused),
        cmocka_unit_test(test_directives_hold_in_a_file_but_not_over_messages),
        cmocka_unit_test(test_message_that_only_names_other_fields_is_rejected),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
