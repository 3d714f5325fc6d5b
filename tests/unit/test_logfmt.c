#include "tests/support/decoded.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define T  "time=2010-10-10T14:17:22Z "
#define AT "1286720242000"

static void test_logfmt_lines_become_events(void **state)
{
    (void)state;
    static const struct decoded_case cases[] = {
        {T "host=10.0.0.1 status=200 bytes=17", AT " host=10.0.0.1 status=200#200 bytes=17#17"},
        {"level=info msg=\"GET \\\"/a\\\"\" " T, AT " level=info msg=GET \"/a\""},
        {T "request=\"GET /a?b HTTP/1.1\"",
         AT " request=GET /a?b HTTP/1.1 method=GET target=/a?b path=/a protocol=HTTP/1.1"},
        {T "path=/other request=\"GET /a HTTP/1.1\"",
         AT " request=GET /a HTTP/1.1 method=GET target=/a path=/other protocol=HTTP/1.1"},
        {T "target=/a?b=c host=- agent=\"-\"", AT " target=/a?b=c path=/a"},
        {T "agent=\"\" referrer= user=", AT ""},
        {T "duration=0.25 level=18ms", AT " level=18ms duration=0.25#250000"},
        {"\t " T "  msg=a\tlevel=b \t", AT " level=b msg=a"},
        {T "msg=a=b=c level==", AT " level== msg=a=b=c"},
        {T "msg", AT " msg="},
        {T "msg=1 msg=2", AT " msg=2#2000000"},
        {T "unknown=\"\\u00e9 \\xff\" MSG=x ms=y msgs=z", AT},
        {T "msg=\"\\u00e9\\\\\\n\\xff\\x41\\/\" level=\"\\ud83d\\ude00\"",
         AT " level~~=\\xf0\\x9f\\x98\\x80 msg~~=\\xc3\\xa9\\\\x0a\\xffA/"},
        {T "msg=\xc3\xa4 level=a\\b", AT " level~~=a\\b msg~~=\\xc3\\xa4"},
        {T "msg=a\r", AT " msg=a"},
        {"\xEF\xBB\xBF" T "msg=a", AT " msg=a"},
        {"at=info method=GET path=\"/\" host=example.org fwd=\"1.2.3.4\" dyno=web.1 status=200 bytes=13 " T,
         AT " host=example.org method=GET path=/ status=200#200 bytes=13#13"},
    };
    decoded_check("logfmt", NULL, cases, COUNT_OF(cases));
}

static void test_logfmt_wrong_lines_are_rejected_where_they_are_wrong(void **state)
{
    (void)state;
    static const struct decoded_case cases[] = {
        {"", "reject empty 1"},
        {"\r", "reject empty 1"},
        {" \t", "reject logfmt 1"},
        {"a few words", "reject logfmt 1"},
        {"=a", "reject logfmt 1"},
        {"a=b =c", "reject logfmt 5"},
        {"a=\"b\"c", "reject logfmt 6"},
        {"a=b\"c\"", "reject logfmt 4"},
        {"a\"b\"=c", "reject logfmt 2"},
        {"a=\"b", "reject unterminated 3"},
        {"a=\"b\\\"", "reject unterminated 3"},
        {"a=\"b\\", "reject logfmt 5"},
        {"a=\"\\q\"", "reject logfmt 4"},
        {"a=\"\\u12g4\"", "reject logfmt 4"},
        {"a=\"\\x4\"", "reject logfmt 4"},
        {"a=\x01", "reject logfmt 3"},
        {"a=b\x7f", "reject logfmt 4"},
        {"{\"a\":1}", "reject logfmt 2"},
        {"msg=a", "reject no_time 1"},
        {"time=- msg=a", "reject no_time 1"},
        {"msg=a time=now", "reject time 12"},
        {"time=2010-13-10T14:17:22Z", "reject time_range 6"},
        {T "status=2000", AT}, /* no status, no size: absent */
        {T "bytes=many", AT},
    };
    decoded_check("logfmt", NULL, cases, COUNT_OF(cases));
}

static void test_logfmt_takes_many_kinds_of_time(void **state)
{
    (void)state;
    static const struct decoded_case cases[] = {
        {"ts=2010-10-10T16:17:22.5+02:00", "1286720242500"},
        {"timestamp=1286720242.25", "1286720242250"},
        {"time=1286720242250", "1286720242250"},
        {"@timestamp=\"2010-10-10 14:17:22\"", AT},
        {"time=\"2010-10-10 14:17:22,123\"", "1286720242123"},
        {"time=\"2010/10/10 14:17:22\"", AT},
        {"time=\"10/Oct/2010:14:17:22 +0000\"", AT},
        {"time=\"[10/Oct/2010:07:17:22 -0700]\"", AT},
        {"time=\"10/Oct/2010:14:17:22 +0000]\"", "reject time 7"},
        {"time=\"30/Feb/2010:14:17:22 +0000\"", "reject time_range 7"},
        {"time=\"2010/13/10 14:17:22\"", "reject time_range 7"},
        {"time=\"Oct 10 14:17:22\"", "reject time 7"},
        {"ts=1 time=2 timestamp=3 @timestamp=4", "4000"},
        {"ts=1 time=2 timestamp=3 @timestamp=-", "3000"},
        {"ts=1 time=2", "2000"},
        {"ts=1 time=\"\"", "1000"},
        {"time=\"201\\u0030-10-10T14:17:22Z\"", AT},
    };
    static const struct decoded_case named[] = {
        {"when=7 time=0.5", "7000"},
        {"time=7", "reject no_time 1"},
    };
    static const struct decoded_case brokers[] = {
        {"time=nonsense msg=a", "1286720242123 msg=a"},
    };
    static const struct decoded_case own[] = {
        {"level=5 msg=a", "5000 level=5#5000000 msg=a"},
    };
    decoded_check("logfmt", NULL, cases, COUNT_OF(cases));
    decoded_check("logfmt", "/when", named, COUNT_OF(named));
    decoded_check("logfmt", "broker", brokers, COUNT_OF(brokers));
    decoded_check("logfmt", "/level", own, COUNT_OF(own));
}

static void test_logfmt_is_read_in_envelopes(void **state)
{
    (void)state;
    static const struct decoded_case syslog[] = {
        {"<13>Oct 10 13:55:36 host app: " T "msg=\"a b\"", AT " msg=a b"},
        {"<13>Oct 10 13:55:36 host app: time=", "reject no_time 1"},
    };
    static const struct decoded_case json[] = {
        {"{\"message\": \"" T "msg=\\\"a b\\\"\"}", AT " msg=a b"},
    };
    decoded_check("syslog logfmt", NULL, syslog, COUNT_OF(syslog));
    decoded_check("json:/message logfmt", NULL, json, COUNT_OF(json));
}

static void test_logfmt_wrong_configurations_are_refused(void **state)
{
    (void)state;
    struct decode d;
    struct err e;
    assert_false(decoded_configure(&d, "logfmt", "/a/b", &e));
    assert_non_null(strstr(e.text, "found /a/b, expected a time's pointer of one name"));
    assert_false(decoded_configure(&d, "logfmt", "/", &e));
    assert_false(decoded_configure(&d, "combined", "/when", &e));
    assert_true(decoded_configure(&d, "logfmt", NULL, &e));
    assert_false(decode_add_step(&d, slice_text("json"), &e));
    assert_true(decode_is_open(&d) && decode_provides(&d, FIELD_AGENT));
}

static int know_fields(void **state)
{
    static const char *const names[] = {"level", "msg", "duration"};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        enum field f;
        if (!field_intern(slice_text(names[i]), &f))
            return 1;
    }
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_logfmt_lines_become_events),
        cmocka_unit_test(test_logfmt_wrong_lines_are_rejected_where_they_are_wrong),
        cmocka_unit_test(test_logfmt_takes_many_kinds_of_time),
        cmocka_unit_test(test_logfmt_is_read_in_envelopes),
        cmocka_unit_test(test_logfmt_wrong_configurations_are_refused),
    };
    return cmocka_run_group_tests(tests, know_fields, NULL);
}
