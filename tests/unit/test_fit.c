/* Which format fits lines: the right one, or none; never one that reads fields moved. */
#include "base/check.h"
#include "ingest/decode/fit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#define LINE_MAX 65536
#define LINES    6
#define NONE     "none"

#define AT       "[10/Oct/2000:13:55:36 -0700]"
#define GET      AT " \"GET /a HTTP/1.1\" 200 12345"
#define AGENT    " \"-\" \"curl/7\""
#define PLAIN    "10.0.0.1 - - " GET
#define COMBINED PLAIN AGENT

#define APACHE_LINE "%h %l %u %t \"%r\" %>s %b \"%{Referer}i\" \"%{User-Agent}i\""
#define NGINX_LINE                                                                                       \
    "$remote_addr - $remote_user [$time_local] \"$request\" $status $body_bytes_sent \"$http_referer\" " \
    "\"$http_user_agent\""

#define ID "752178adb17130b291aefd8c386279e7"
#define INGRESS_FIELDS                                                                          \
    " $request_length $request_time [$proxy_upstream_name] [$proxy_alternative_upstream_name] " \
    "$upstream_addr "                                                                           \
    "$upstream_response_length $upstream_response_time $upstream_status $req_id"

struct fitting {
    const char *lines[LINES];
    const char *want; /* as fit_print() prints it, without its doubt */
    const char *line; /* of the first line alone, with its doubt; NULL: the same as `want` */
};

#define SKIPS " (fields behind the agent, which could be several, are skipped: give the server's format)"

static const struct fitting cases[] = {
    {{COMBINED}, "combined", NULL},
    {{COMBINED "\r"}, "combined", NULL},
    {{PLAIN}, "common", NULL},
    {{PLAIN, COMBINED}, "auto", "common"},
    {{"w.example:80 " COMBINED}, "vhost_combined", NULL},
    {{"[::1]:443 ::1 - - " GET AGENT}, "vhost_combined", NULL},
    {{"w.example:80 " PLAIN}, "apache:%v:%p %h %l %u %t \"%r\" %>s %b", NULL},
    /* a user of several words is one if another line has one of one word */
    {{"10.0.0.1 - anna b " GET AGENT, COMBINED}, "combined", NONE},
    {{"10.0.0.1 - 10.0.0.2 - " GET AGENT, "10.0.0.1 - 10.0.0.3 - " GET AGENT}, NONE, NULL},
    {{"10.0.0.1 frank - " GET AGENT}, "combined", NULL},
    {{"10.0.0.1 - - [x] " GET AGENT, COMBINED}, "combined", NONE},
    /* a name before the host: the server's only if it has several clients */
    {{"w.example " COMBINED, "w.example 10.0.0.2 - - " GET AGENT},
     "apache:%v " APACHE_LINE,
     "apache:%v " APACHE_LINE " (if it begins with the server's name)"},
    {{"w.example " COMBINED, "v.example 10.0.0.2 - - " GET AGENT, "w.example " COMBINED},
     NONE,
     "apache:%v " APACHE_LINE " (if it begins with the server's name)"},
    {{"w localhost - - " GET AGENT, "w " COMBINED},
     "apache:%v " APACHE_LINE,
     "apache:%v " APACHE_LINE " (if it begins with the server's name)"},
    {{"w.example " PLAIN, "w.example 10.0.0.2 - - " GET},
     "apache:%v %h %l %u %t \"%r\" %>s %b",
     "apache:%v %h %l %u %t \"%r\" %>s %b (if it begins with the server's name)"},
    /* addresses before the host: only a list shows that they are of X-Forwarded-For */
    {{"10.0.0.9 " COMBINED, "10.0.0.9, 10.0.0.8 " COMBINED},
     "apache:%{X-Forwarded-For}i " APACHE_LINE,
     "apache:%{X-Forwarded-For}i " APACHE_LINE " (if it begins with X-Forwarded-For)"},
    {{"10.0.0.9 " COMBINED, "10.0.0.8 " COMBINED},
     NONE,
     "apache:%{X-Forwarded-For}i " APACHE_LINE " (if it begins with X-Forwarded-For)"},
    {{"- " COMBINED}, NONE, NULL},
    {{"123 " COMBINED}, NONE, NULL},
    {{"0.123 " COMBINED}, NONE, NULL},
    {{"w.example " COMBINED, COMBINED},
     NONE,
     "apache:%v " APACHE_LINE " (if it begins with the server's name)"},
    /* behind the agent */
    {{COMBINED " 0.123"}, "nginx:" NGINX_LINE " $request_time", NULL},
    {{"10.0.0.1 joe - " GET AGENT " 0.123"}, "auto", "auto" SKIPS},
    {{COMBINED " 0.123 -", COMBINED " 0.100 0.100"},
     "nginx:" NGINX_LINE " $request_time $upstream_response_time",
     NULL},
    {{COMBINED " 0.123 0.100, 0.020"}, "nginx:" NGINX_LINE " $request_time $upstream_response_time", NULL},
    {{COMBINED " 0.123 0.100"}, "auto", "auto" SKIPS},
    {{COMBINED " - 0.100", COMBINED " 0.123 0.123"}, "auto", "auto" SKIPS},
    {{COMBINED " 971211336.250"}, "auto", "auto" SKIPS},
    {{COMBINED " 0.1"}, "auto", "auto" SKIPS},
    {{COMBINED " \"10.0.0.9\"", COMBINED " \"-\""}, "nginx:main", NULL},
    {{COMBINED " \"10.0.0.9, ::1\" 0.123 -"},
     "nginx:" NGINX_LINE " \"$http_x_forwarded_for\" $request_time $upstream_response_time",
     NULL},
    {{COMBINED " \"-\""}, "auto", "auto" SKIPS},
    {{COMBINED " \"10.0.0.9:80\""}, "auto", "auto" SKIPS},
    {{COMBINED " \"w.example\""}, "auto", "auto" SKIPS},
    {{COMBINED " 1234"}, "auto", "auto" SKIPS},
    {{COMBINED " rt=0.123 uct=\"0.000, 0.001\" uht=\"0.100\" urt=\"-\""}, "auto", "auto" SKIPS},
    {{COMBINED " a\"b\""}, NONE, NULL},
    {{COMBINED " 99 0.012 [default-web-80] [] 10.1.0.2:8080 512 0.012 200 " ID,
      COMBINED " 99 0.012 [default-web-80] [] 10.1.0.2:80, 10.1.0.3:80 0, 512 0.000, 0.012 502, 200 " ID,
      COMBINED " 99 0.000 [] [] - - - - " ID},
     "nginx:" NGINX_LINE INGRESS_FIELDS,
     NULL},
    {{COMBINED " 99 0.012 default-web-80 [] 10.1.0.2:8080 512 0.012 200 " ID}, "auto", "auto" SKIPS},
    {{COMBINED " 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15"}, "auto", "auto" SKIPS},
    {{COMBINED " 1 2 3 4 5 6 7 8 9 10 11 12 13 14 \"15"}, NONE, NULL},
    {{COMBINED " 321 12600"}, "apache:combinedio", NULL},
    {{"10.0.0.1 - - " AT " \"GET /a HTTP/1.1\" 200 123" AGENT " 321 400"}, "auto", "auto" SKIPS},
    {{COMBINED " 12600 321"}, "auto", "auto" SKIPS},
    {{COMBINED " 3 12600"}, "auto", "auto" SKIPS},
    {{COMBINED " 443 123456"}, "auto", "auto" SKIPS},
    {{COMBINED " 321 12600", COMBINED " 321"}, "auto", "apache:combinedio"},
    {{COMBINED " 321 12600", COMBINED}, "auto", "apache:combinedio"},
    {{COMBINED, PLAIN " \"-\" \"cut"}, "combined", NULL},
    {{PLAIN " 0.123"},
     "nginx:$remote_addr - $remote_user [$time_local] \"$request\" $status $body_bytes_sent "
     "$request_time",
     NULL},
    {{PLAIN " 1234"}, NONE, NULL},
    {{"w.example " COMBINED " 0.123", "w.example 10.0.0.2 - - " GET AGENT " 0.004"},
     "nginx:$server_name " NGINX_LINE " $request_time",
     "nginx:$server_name " NGINX_LINE " $request_time (if it begins with the server's name)"},
    /* no access log, or a broken one */
    {{PLAIN " \"http://a/\" \"Mozilla/5.0\""}, "combined", NULL},
    {{PLAIN " \"Mozilla/5.0\" \"http://a/\""}, NONE, NULL},
    {{""}, NONE, NULL},
    {{"odd"}, NONE, NULL},
    {{COMBINED, "odd"}, NONE, "combined"},
    {{"10.0.0.1 - - [10/Okt/2000:13:55:36 -0700] \"GET / HTTP/1.1\" 200 5"}, NONE, NULL},
    {{"10.0.0.1 - - " AT " \"GET / HTTP/1.1 200 5"}, NONE, NULL},
    {{"10.0.0.1 - - " AT " \"GET / HTTP/1.1\" OK 5"}, NONE, NULL},
    /* other steps */
    {{"<34>1 2003-10-11T22:14:15Z w nginx - - - " COMBINED}, "syslog,combined", NULL},
    {{"Oct 11 22:14:15 w nginx: w.example:80 " COMBINED}, "syslog,vhost_combined", NULL},
    {{"Oct 11 22:14:15 w cron[3]: odd"}, NONE, NULL},
    {{"2026-01-05T10:00:01.5Z stdout F " COMBINED, "2026-01-05T10:00:01Z stderr F 10.0.0.2 - - " GET AGENT},
     "cri,combined",
     NULL},
    {{"2026-01-05T10:00:01.5Z stdout P " COMBINED, "2026-01-05T10:00:01Z stdout F 10.0.0.2 - - " GET AGENT},
     NONE,
     NULL},
    {{"Oct 11 22:14:15 w haproxy[3]: 10.0.1.2:33313 [06/Feb/2009:12:12:51.443] a b/c 0/0/5 2 -- 0/0/0/0/3 "
      "0/0"},
     "haproxy",
     NULL},
    {{COMBINED " 4 \"-\" \"-\" 0ms"}, "traefik", NULL},
    {{COMBINED " 4 \"-\" \"-\" 0ms", COMBINED}, "auto", "traefik"},
    {{"{\"message\":\"10.0.0.1 - - " AT " \\\"GET / HTTP/1.1\\\" 200 5\",\"time\":\"2020-01-01T00:00:00Z\"}"},
     "json:/message,common",
     NULL},
    {{"{\"log\":\"10.0.0.1 - - " AT " \\\"GET / HTTP/1.1\\\" 200 5\\n\",\"time\":\"2020-01-01T00:00:00Z\"}"},
     "json:/log,common",
     NULL},
    {{"{\"message\":\"odd\",\"time\":\"2020-01-01T00:00:00Z\"}"}, "json", NULL},
    {{"{\"time\":\"2020-01-01T00:00:00Z\"}", "{\"ts\":1600000000}"}, "json", NULL},
    {{"{\"time_iso8601\":\"2020-01-01T00:00:00+00:00\"}"}, "json, time: /time_iso8601", NULL},
    {{"{\"time_local\":\"05/Jan/2026:10:00:00 +0000\"}"}, "json, time: /time_local", NULL},
    {{"{\"when\":\"2020-01-01T00:00:00Z\"}"}, NONE, NULL},
    {{"{\"time\":\"2020-01-01T00:00:00Z\""}, NONE, NULL},
    {{"{\"name\":\"a\",\"value\":1,\"ts\":1600000000}"}, "metric", NULL},
    {{"{\"resourceLogs\":[{\"scopeLogs\":[{\"logRecords\":[{\"timeUnixNano\":\"1600000000000000000\"}]}]}]}"},
     "otlp",
     NULL},
    {{"{\"resourceSpans\":[]}"}, NONE, NULL},
    {{"{\"name\":\"a\",\"ts\":1600000000}"}, "json", NULL},
    {{"ts=2020-01-01T00:00:00Z level=info msg=\"a b\""}, "logfmt", NULL},
    {{"cpu,host=a usage=1.5,up=true 1600000000000000000"}, "influx", NULL},
    {{"t=2020-01-01T00:00:00Z lvl=info"}, "logfmt, time: /t", NULL},
    {{"level=info msg=\"a b\""}, NONE, NULL},
};

static void print(bool found, const struct fit_format *format, struct text *out)
{
    text_clear(out);
    if (found)
        fit_print(format, out);
    else
        text_puts(out, NONE);
}

static bool is_as(const char *found, const char *want, const char *of)
{
    if (strcmp(found, want) != 0)
        print_error("found %s, expected %s: %s\n", found, want, of);
    return strcmp(found, want) == 0;
}

static void test_a_format_is_found_only_if_it_is_sure(void **state)
{
    (void)state;
    struct fit *f = fit_new(LINE_MAX);
    struct fit_format format = {0};
    struct text out = {0};
    size_t failed = 0;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const struct fitting *c = &cases[i];
        fit_clear(f);
        for (size_t k = 0; k < LINES && c->lines[k] != NULL; k++)
            fit_add(f, slice_text(c->lines[k]));
        bool found = fit_find(f, &format);
        if (found && strcmp(format.steps.ptr, "auto") == 0)
            format.doubt = NULL;
        print(found, &format, &out);
        failed += !is_as(out.ptr, c->want, c->lines[0]);
        found = fit_line(f, slice_text(c->lines[0]), &format);
        print(found, &format, &out);
        failed += !is_as(out.ptr, c->line != NULL ? c->line : c->want, c->lines[0]);
    }
    text_fini(&out);
    text_fini(&format.steps);
    fit_free(f);
    assert_int_equal(failed, 0);
}

static void test_no_lines_fit_nothing(void **state)
{
    (void)state;
    struct fit *f = fit_new(LINE_MAX);
    struct fit_format format = {0};
    assert_false(fit_find(f, &format));
    fit_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_format_is_found_only_if_it_is_sure),
        cmocka_unit_test(test_no_lines_fit_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
