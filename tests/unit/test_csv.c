#include "tests/support/decoded.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define T  "2010-10-10T14:17:22Z,"
#define AT "1286720242000"

static void test_csv_lines_become_events(void **state)
{
    (void)state;
    static const struct decoded_case cases[] = {
        {T "10.0.0.1,x,/a?b,200,0.25",
         AT " host=10.0.0.1 target=/a?b path=/a status=200#200 duration=0.25#250000"},
        {T "\"10.0.0.1\",\"x,\t\",\"/a,\"\"b\"\"\",\"200\",\"\"",
         AT " host=10.0.0.1 target=/a,\"b\" path=/a,\"b\" status=200#200 duration="},
        {"\"2010-10-10 14:17:22\",,,,,", AT},
        {T "-,-,-,-,-", AT " duration=-"},
        {T "a\"b\",,/\xc3\xa4\\,,1e3\r",
         AT " host=a\"b\" target~~=/\\xc3\\xa4\\ path~~=/\\xc3\\xa4\\ duration=1e3#1000000000"},
        {T "\"\"\"\",\"\"\"\",,,\"a\"\"\"", AT " host=\" duration=a\""},
        {"\xEF\xBB\xBF" T ",,,,", AT},
    };
    decoded_check("csv:time,host,-,target,status,duration", NULL, cases, COUNT_OF(cases));
}

static void test_csv_wrong_lines_are_rejected_where_they_are_wrong(void **state)
{
    (void)state;
    static const struct decoded_case cases[] = {
        {"", "reject empty 1"},
        {"time,host,status", "reject time 1"},
        {T "a", "reject columns 23"},
        {T "a,200,", "reject columns 27"},
        {T "a,\"200\"x", "reject columns 29"},
        {T "\"a\" ,200", "reject columns 25"},
        {T "a,\"200", "reject unterminated 24"},
        {T "\"a,200\"\"", "reject unterminated 22"},
        {T "\"", "reject unterminated 22"},
        {T "a,2x", AT " host=a"}, /* no status */
        {",a,200", "reject no_time 1"},
        {"-,a,200", "reject no_time 1"},
        {"\"\",a,200", "reject no_time 1"},
        {"now,a,200", "reject time 1"},
        {"\"2010-10-32 14:17:22\",a,200", "reject time_range 2"},
    };
    decoded_check("csv:time,host,status", NULL, cases, COUNT_OF(cases));
}

static void test_tsv_has_tabs(void **state)
{
    (void)state;
    static const struct decoded_case cases[] = {
        {"10/Oct/2010:14:17:22 +0000\ta,b\t\"c\td\"\tGET /x HTTP/1.1", AT
         " host=a,b user~~=c\\x09d request=GET /x HTTP/1.1 method=GET target=/x path=/x protocol=HTTP/1.1"},
        {"10/Oct/2010:14:17:22 +0000\ta", "reject columns 29"},
    };
    decoded_check("tsv: time, host, user, request", NULL, cases, COUNT_OF(cases));
}

static void test_csv_times_have_names(void **state)
{
    (void)state;
    static const struct decoded_case two[] = {{"1,2,a", "2000 host=a"},
                                              {"1,,a", "1000 host=a"},
                                              {"1,-,a", "1000 host=a"},
                                              {"-,,a", "reject no_time 1"}};
    static const struct decoded_case named[] = {{"1,2,a", "1000 host=a time=2#2000000"}};
    static const struct decoded_case brokers[] = {{"x,2,a", "1286720242123 host=a time=2#2000000 at=x"}};
    static const struct decoded_case syslog[] = {{"<13>Oct 10 13:55:36 host app: 7,b", "7000 host=b"}};
    decoded_check("csv:ts,timestamp,host", NULL, two, COUNT_OF(two));
    decoded_check("csv:at,time,host", "/at", named, COUNT_OF(named));
    decoded_check("csv:at,time,host", "broker", brokers, COUNT_OF(brokers));
    decoded_check("syslog csv:time,host", NULL, syslog, COUNT_OF(syslog));
}

static void test_csv_wrong_columns_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *step, *time, *expected;
    } cases[] = {
        {"csv:", NULL, "csv: column 1: found \"\", expected a name of small letters, digits and _"},
        {"csv:time,Host", NULL,
         "csv: column 2: found \"Host\", expected a name of small letters, digits and _"},
        {"tsv:time,host,", NULL, "tsv: column 3: found \"\", expected a name of small letters, digits and _"},
        {"csv:time,-,host,-,host", NULL, "csv: column 5: found \"host\" twice, expected each name once"},
        {"csv:host,path", NULL,
         "found no time in csv, expected a time: name it, or say time: /NAME or broker"},
        {"csv:-", NULL, "found no time in csv, expected a time: name it, or say time: /NAME or broker"},
        {"csv:time,path", "/when",
         "found no when in csv, expected a time: name it, or say time: /NAME or broker"},
        {"csv:time,path", "/a/b", "found /a/b, expected a time's pointer of one name, as /when"},
    };
    struct decode d;
    struct err e;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        assert_false(decoded_configure(&d, cases[i].step, cases[i].time, &e));
        assert_string_equal(e.text, cases[i].expected);
        assert_int_equal(e.code, EX_CONFIG);
    }
}

static void test_csv_has_limits(void **state)
{
    (void)state;
    struct decode d;
    struct err e;
    struct text step = {0};
    text_puts(&step, "csv:time");
    for (int i = 1; i < 256; i++)
        text_puts(&step, ",-");
    assert_true(decoded_configure(&d, step.ptr, NULL, &e));
    text_puts(&step, ",-");
    assert_false(decoded_configure(&d, step.ptr, NULL, &e));
    assert_non_null(strstr(e.text, "found more columns than 256"));
    text_clear(&step);
    text_puts(&step, "csv:time");
    for (int i = 0; i < 64; i++)
        text_printf(&step, ",own_%d", i);
    assert_false(decoded_configure(&d, step.ptr, NULL, &e));
    assert_non_null(strstr(e.text, "column 65: found more names than 64"));
    text_clear(&step);
    text_puts(&step, "csv:time");
    for (int i = 0; i < 50; i++)
        text_printf(&step, ",own_%d", i);
    assert_false(decoded_configure(&d, step.ptr, NULL, &e));
    assert_non_null(strstr(e.text, "expected at most 48 names of your own"));
    text_fini(&step);
}

static void test_csv_steps_print_as_they_were_given(void **state)
{
    (void)state;
    struct decode d;
    struct err e;
    struct text out = {0};
    assert_true(decoded_configure(&d, "syslog csv:time,-,request", NULL, &e));
    decode_print_steps(&d, &out);
    assert_string_equal(out.ptr, "[syslog, {csv: 'time,-,request'}]");
    text_clear(&out);
    decode_print_step(&d, 1, &out);
    assert_string_equal(out.ptr, "csv:time,-,request");
    text_fini(&out);
    assert_true(decode_provides(&d, FIELD_METHOD) && !decode_provides(&d, FIELD_HOST) && !decode_is_open(&d));
    assert_true(decode_takes_rest("tsv:a,b") && !decode_takes_rest("csv") &&
                !decode_takes_rest("syslog,csv:a"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_csv_lines_become_events),
        cmocka_unit_test(test_csv_wrong_lines_are_rejected_where_they_are_wrong),
        cmocka_unit_test(test_tsv_has_tabs),
        cmocka_unit_test(test_csv_times_have_names),
        cmocka_unit_test(test_csv_wrong_columns_are_refused),
        cmocka_unit_test(test_csv_steps_print_as_they_were_given),
        cmocka_unit_test(test_csv_has_limits), /* the last one, since it uses up the names */
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
