/* The HTTP server over real sockets: routes, error classes, hosts, limits. */
#include "base/mem.h"
#include "tests/support/web.h"
#include "web/api.h"
#include "web/assets.h"
#include "web/listen.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define HOUR_OF_TESTS "from=2015-05-17T10:00&to=2015-05-17T11:00"

static void test_web_query_answers_in_three_formats(void **state)
{
    struct web *f = *state;
    web_check(f, "/api/v1/query?report=pages&filter=path%3D/index.html&" HOUR_OF_TESTS, 200,
              "\"values\":[[\"2015-05-17T10:00:00Z\",2]]");
    web_check(f, "/api/v1/query?report=pages&format=csv&measure=bytes&" HOUR_OF_TESTS, 200,
              "time,value\n2015-05-17T10:00:00Z,214\n");
    web_check(f, "/api/v1/query?report=pages&format=table&" HOUR_OF_TESTS, 200, "4");
    web_check(f, "/api/v1/query?report=pages&top=1&" HOUR_OF_TESTS, 200,
              "\"top\":[{\"series\":{\"path\":\"/index.html\"},\"values\":[2]}]");
    web_check(f,
              "/api/v1/query?report=pages&step=minute&format=csv&from=2015-05-17T10:05&to=2015-05-17T10:07",
              200, "time,value\n2015-05-17T10:05:00Z,2\n2015-05-17T10:06:00Z,1\n");
    web_check(f,
              "/api/v1/query?report=pages&step=day&tz=Europe/Berlin&from=2015-05-17&to=2015-05-18&format=csv",
              200, "time,value\n2015-05-17T00:00:00+02:00,");
}

static void test_web_top_has_share_and_trend(void **state)
{
    struct web *f = *state;
    web_check(f, "/api/v1/top?report=pages&limit=1&" HOUR_OF_TESTS, 200,
              "\"total\":4,\"before\":{\"from\":\"2015-05-17T09:00:00Z\",\"to\":\"2015-05-17T10:00:00Z\","
              "\"total\":0},\"series\":[{\"series\":{\"path\":\"/index.html\"},\"value\":2,\"share\":0.5,"
              "\"before\":null}]}");
    web_check(f, "/api/v1/top?report=pages&format=csv&" HOUR_OF_TESTS, 200,
              "path,value,share,before\n/index.html,2,0.5,\n");
    web_check(f, "/api/v1/top?report=pages&limit=0", 400,
              "limit: found \\\"0\\\", expected a number from 1 to 999999999");
    web_check(f, "/api/v1/top?report=pages&step=day", 400, "unknown parameter");
}

static void test_web_series_completes_a_prefix(void **state)
{
    struct web *f = *state;
    web_check(f, "/api/v1/series?report=pages&dimension=path&prefix=/i", 200,
              "{\"values\":[\"/index.html\"],\"more\":false}\n");
    web_check(f, "/api/v1/series?report=pages&limit=1", 200,
              "{\"values\":[\"/\\u003cscript\\u003ealert(1)\\u003c/script\\u003e\"],\"more\":true}\n");
    web_check(f, "/api/v1/series?report=pages&dimension=host", 400, "unknown dimension");
    web_check(f, "/api/v1/series?report=pages&from=now", 400, "unknown parameter");
}

static void test_web_query_decodes_parameters(void **state)
{
    struct web *f = *state;
    web_check(f, "/api/v1/query?report=pages&format=csv&" HOUR_OF_TESTS "&filter=path=/a+b%26c%3Dd%2Be%25",
              200, "Z,1\n");
    web_check(f,
              "/api/v1/query?report=pages&format=csv&" HOUR_OF_TESTS
              "&filter=path=/%3Cscript%3Ealert(1)%3C/script%3E",
              200, "Z,1\n");
    web_check(f, "/api/v1/query?report=pages&format=csv&" HOUR_OF_TESTS "&filter=path=/index.html%00", 200,
              "Z,0\n");
}

static void test_web_query_errors_have_their_class(void **state)
{
    struct web *f = *state;
    web_check(f, "/api/v1/query", 400, "{\"error\":\"unknown report");
    web_check(f, "/api/v1/query?report=page", 400, "did you mean \\\"pages\\\"?");
    web_check(f, "/api/v1/query?report=pages&colour=red", 400, "unknown parameter");
    web_check(f, "/api/v1/query?report=pages&from=tomorrow", 400, "expected a time");
    web_check(f, "/api/v1/query?report", 400, "unknown report");
    web_check(f, "/api/v1/query?report=pages&from=2015-05-01&to=2015-05-17&step=minute", 422,
              "query.points_max");
    web_check(f, "/api/v1/query?report=pages&from=1971-01-01&to=1971-01-02&step=day&tz=Africa/Monrovia", 422,
              "within a minute");
    web_check(f, "/api/v1/query?report=pages&tz=Berlin", 400, "did you mean \\\"Europe/Berlin\\\"?");
    struct text target = {0};
    text_puts(&target, "/api/v1/query?report=pages");
    for (int i = 0; i < SERVER_PARAMETERS_MAX; i++)
        text_puts(&target, "&top=1");
    web_check(f, target.ptr, 400, "too many parameters");
    text_fini(&target);
}

static void test_web_store_not_there_yet_is_asked_again(void **state)
{
    struct web *f = *state;
    struct web late = {.status = f->status};
    struct report reports[FIXTURE_COUNT];
    struct err e = {0};
    char url[sizeof f->w->url];
    snprintf(url, sizeof url, "sqlite:%s/later.db", f->w->dir);
    web_start(&late, url, "127.0.0.1:0", 16);
    struct text answer = {0};
    web_ask(&late, "GET", "/api/v1/query?report=pages", WEB_HOST, &answer);
    assert_int_equal(web_status_of(&answer), 503);
    assert_non_null(strstr(answer.ptr, "Retry-After: 1"));
    assert_non_null(strstr(answer.ptr, "nothing was counted yet"));
    web_check(&late, "/api/v1/reports", 503, "nothing was counted yet");
    web_check(&late, "/", 200, "<!doctype html>");

    fixture_reports(reports);
    struct store *st = store_open(url, STORE_WRITE, reports, FIXTURE_COUNT, &e);
    assert_non_null(st);
    web_check(&late, "/api/v1/query?report=pages&format=csv", 200, "time,value");
    store_close(st);
    fixture_free(reports);
    text_fini(&answer);
    server_stop(late.server);
}

static void test_web_damaged_store_is_500(void **state)
{
    struct web *f = *state;
    struct web broken = {.status = f->status};
    char path[96], url[sizeof path + 8];
    snprintf(path, sizeof path, "%s/broken.db", f->w->dir);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs("this is no database, and never was one", file);
    fclose(file);
    snprintf(url, sizeof url, "sqlite:%s", path);
    web_start(&broken, url, "127.0.0.1:0", 16);
    web_check(&broken, "/api/v1/query?report=pages", 500, "\"error\":");
    server_stop(broken.server);
}

static void test_web_reports_names_what_can_be_asked(void **state)
{
    web_check(*state, "/api/v1/reports", 200,
              "{\"name\":\"clients\",\"dimensions\":[\"host\",\"method\",\"status\"],\"measures\":[\"hits\","
              "\"bytes\"],\"expressions\":[\"count\",\"sum(bytes)\"]}]");
}

static void pass_time(struct web *f, int64_t ms)
{
    pthread_mutex_lock(&f->status.lock); /* the server reads the clock under it */
    f->clock.fake_mono_ms += ms;
    pthread_mutex_unlock(&f->status.lock);
}

static void test_web_status_and_health(void **state)
{
    struct web *f = *state;
    *books_source(&f->books, BOOK_CONSUMED) = 40;
    *books_source(&f->books, BOOK_REJECTED + REJECT_FUTURE) = 2;
    status_note(&f->status, &(struct status_figures){.state = STATUS_COUNTING, .books = &f->books});
    web_check(f, "/api/v1/status", 200, "\"state\":\"counting\",\"now\":\"2015-05-17T10:00:00Z\"");
    web_check(f, "/api/v1/status", 200,
              "\"source\":\"standard \\\"input\\\"\",\"messages\":0,\"consumed\":40,\"rejected\":2");
    web_check(f, "/api/v1/status?x=1", 400, "unknown parameter \\\"x\\\": there is none");
    web_check(f, "/api/v1/rejects", 200, "{\"rejected\":2,\"reasons\":[{\"reason\":\"future\"");
    web_check(f, "/api/v1/rejects?x=1", 400, "unknown parameter \\\"x\\\": there is none");
    web_check(f, "/healthz", 200, "ok\n");
    pass_time(f, STATUS_SILENCE_MS);
    web_check(f, "/healthz", 200, "ok\n");
    web_check(f, "/readyz", 200, "ok\n");
    web_check(f, "/metrics", 200, "\ntallyd_lines_consumed_total 40\n");
    pass_time(f, 1);
    web_check(f, "/readyz", 503, "a thread hangs");
    web_check(f, "/healthz", 503, "nothing was read or stored for 30 s");
    web_check(f, "/api/v1/status", 200, "\"state\":\"silent\"");
}

static void test_web_limits_change_while_it_serves(void **state)
{
    struct web *f = *state;
    web_check(f, "/api/v1/query?report=pages&step=minute&" HOUR_OF_TESTS, 200, "values");
    server_set_limits(
        f->server,
        &(struct query_limits){.rows_max = 1000, .points_max = 59, .series_max = 10, .memory_max = 1 << 20});
    web_check(f, "/api/v1/query?report=pages&step=minute&" HOUR_OF_TESTS, 422, "query.points_max");
}

static void test_web_assets_are_all_there(void **state)
{
    struct web *f = *state;
    web_check(f, "/", 200, "<!doctype html>");
    web_check(f, "/?report=pages&measure=hits", 200, "<!doctype html>");
    web_check(f, "/page.js", 200, "import");
    web_check(f, "/dom.js", 200, "textContent");
    web_check(f, "/range.js", 200, "RANGES");
    web_check(f, "/chart.js", 200, "Dygraph");
    web_check(f, "/heatmap.js", 200, "drawHeatmap");
    web_check(f, "/tables.js", 200, "drawTop");
    web_check(f, "/promql.js", 200, "increaseOf");
    web_check(f, "/rejects.js", 200, "drawRejects");
    web_check(f, "/page.css", 200, "prefers-color-scheme");
    web_check(f, "/icon.svg", 200, "<svg");
    web_check(f, "/dygraph.min.css", 200, ".dygraph-axis-label");
    web_check(f, "/dygraph.min.js", 200, "Dygraph");
    web_check(f, "/../etc/passwd", 404, "nothing is here");
    web_check(f, "/api/v1", 404, "nothing is here");
    web_check(f, "/page.js/", 404, "nothing is here");
}

static void test_web_asset_known_is_not_sent_again(void **state)
{
    struct web *f = *state;
    struct text answer = {0}, more = {0};
    text_printf(&more, WEB_HOST "If-None-Match: %s\r\n", assets_find("/page.js")->etag);
    web_ask(f, "GET", "/page.js", more.ptr, &answer);
    assert_int_equal(web_status_of(&answer), 304);
    assert_string_equal(web_body_of(&answer), "");
    web_ask(f, "GET", "/page.js", WEB_HOST "If-None-Match: \"0\"\r\n", &answer);
    assert_int_equal(web_status_of(&answer), 200);
    text_fini(&answer);
    text_fini(&more);
}

static void test_web_assets_are_sent_packed(void **state)
{
    const struct asset *a = assets_find("/dygraph.min.js");
    struct text answer = {0};
    assert_in_range(a->packed.len, 10000, a->bytes.len / 2);
    web_ask(*state, "GET", a->path, WEB_HOST "Accept-Encoding: gzip\r\n", &answer);
    assert_non_null(strstr(answer.ptr, "\r\nContent-Encoding: gzip\r\n"));
    const char *body = web_body_of(&answer);
    assert_true(slice_equal(slice_of(body, (size_t)(answer.ptr + answer.len - body)), a->packed));
    text_fini(&answer);
}

static void test_web_security_headers_on_everything(void **state)
{
    static const char *const targets[] = {"/", "/api/v1/status", "/api/v1/query", "/nothing"};
    struct text answer = {0};
    for (size_t i = 0; i < COUNT_OF(targets); i++) {
        web_ask(*state, "GET", targets[i], WEB_HOST, &answer);
        assert_non_null(strstr(answer.ptr, "\r\nContent-Security-Policy: default-src 'self'; "));
        assert_non_null(strstr(answer.ptr, "\r\nX-Content-Type-Options: nosniff\r\n"));
        assert_non_null(strstr(answer.ptr, "\r\nReferrer-Policy: no-referrer\r\n"));
        assert_non_null(strstr(answer.ptr, i == 0 ? "\r\nCache-Control: no-cache\r\n"
                                                  : "\r\nCache-Control: no-store\r\n"));
    }
    text_fini(&answer);
}

static void test_web_head_has_no_body(void **state)
{
    struct text answer = {0};
    web_ask(*state, "HEAD", "/dygraph.min.js", WEB_HOST, &answer);
    assert_int_equal(web_status_of(&answer), 200);
    assert_non_null(strstr(answer.ptr, "Content-Length: 1"));
    assert_string_equal(web_body_of(&answer), "");
    text_fini(&answer);
}

static void test_web_other_methods_and_bodies_are_refused(void **state)
{
    struct web *f = *state;
    struct text answer = {0};
    web_ask(f, "POST", "/api/v1/query", WEB_HOST "Content-Length: 3\r\n", &answer);
    assert_int_equal(web_status_of(&answer), 405);
    assert_non_null(strstr(answer.ptr, "\r\nAllow: GET, HEAD\r\n"));
    web_ask(f, "DELETE", "/", WEB_HOST, &answer);
    assert_int_equal(web_status_of(&answer), 405);
    web_ask(f, "PUT", "/prometheus/api/v1/query", WEB_HOST "Content-Length: 3\r\n", &answer);
    assert_int_equal(web_status_of(&answer), 405);
    assert_non_null(strstr(answer.ptr, "\r\nAllow: GET, HEAD, POST\r\n"));
    assert_non_null(strstr(web_body_of(&answer), "only GET, HEAD and POST are answered here"));
    web_ask(f, "POST", "/prometheus/api/v1/query",
            WEB_HOST "Content-Length: 3\r\nContent-Type: text/plain\r\n", &answer);
    assert_int_equal(web_status_of(&answer), 415);
    web_ask(f, "POST", "/prometheus/api/v1/query?query=1", WEB_HOST, &answer);
    assert_int_equal(web_status_of(&answer), 200);
    web_ask(f, "GET", "/", WEB_HOST "Content-Length: 1000000\r\n", &answer);
    assert_int_equal(web_status_of(&answer), 413);
    web_ask(f, "GET", "/", WEB_HOST "Transfer-Encoding: chunked\r\n", &answer);
    assert_int_equal(web_status_of(&answer), 413);
    web_ask(f, "GET", "/healthz", WEB_HOST "Content-Length: 0\r\n", &answer);
    assert_int_equal(web_status_of(&answer), 200);
    text_fini(&answer);
}

static void test_web_foreign_hosts_are_refused(void **state)
{
    struct web *f = *state;
    struct text answer = {0};
    web_ask(f, "GET", "/api/v1/status", "Host: evil.example\r\n", &answer);
    assert_int_equal(web_status_of(&answer), 403);
    assert_non_null(strstr(answer.ptr, "unknown host name"));
    assert_null(strstr(answer.ptr, "consumed"));
    web_ask(f, "GET", "/", "Host: evil.example:8080\r\n", &answer);
    assert_int_equal(web_status_of(&answer), 403);
    web_ask(f, "GET", "/", "Host: localhost:9\r\n", &answer);
    assert_int_equal(web_status_of(&answer), 200);
    text_fini(&answer);
}

static void test_web_oversized_requests_are_refused(void **state)
{
    struct web *f = *state;
    struct text target = {0}, answer = {0};
    text_puts(&target, "/api/v1/query?report=");
    for (int i = 0; i < 4 * SERVER_REQUEST_BYTES; i++)
        text_putc(&target, 'a');
    web_ask(f, "GET", target.ptr, WEB_HOST, &answer);
    assert_true(web_status_of(&answer) == 0 || web_status_of(&answer) == 414 ||
                web_status_of(&answer) == 431);
    text_clear(&target);
    text_puts(&target, WEB_HOST "X-Long: ");
    for (int i = 0; i < 4 * SERVER_REQUEST_BYTES; i++)
        text_putc(&target, 'a');
    text_puts(&target, "\r\n");
    web_ask(f, "GET", "/", target.ptr, &answer);
    assert_true(web_status_of(&answer) == 0 || web_status_of(&answer) == 431);
    web_check(f, "/healthz", 200, "ok");
    text_fini(&target);
    text_fini(&answer);
}

static void test_web_rubbish_does_no_harm(void **state)
{
    static const char *const requests[] = {
        "\r\n\r\n", "\x16\x03\x01\x02", "GET", "GET / HTTP/9.9\r\n\r\n",
        "GET /api/v1/query?%zz=%&&==& HTTP/1.1\r\nConnection: close\r\n" WEB_HOST "\r\n"};
    struct web *f = *state;
    struct text answer = {0};
    for (size_t i = 0; i < COUNT_OF(requests); i++) {
        int fd = web_dial(f);
        web_say(fd, slice_text(requests[i]));
        shutdown(fd, SHUT_WR);
        text_clear(&answer);
        web_drain(fd, &answer);
        assert_int_not_equal(web_status_of(&answer), 200);
    }
    web_check(f, "/healthz", 200, "ok");
    text_fini(&answer);
}

static void test_web_silent_client_is_dropped(void **state)
{
    struct web *f = *state;
    struct text answer = {0};
    int64_t begun_ms = clock_mono_ms(&clock_system);
    web_exchange(f, slice_text("GET / HTTP/1.1\r\n" WEB_HOST), &answer);
    int64_t took_ms = clock_mono_ms(&clock_system) - begun_ms;
    assert_in_range(took_ms, 500, 5000);
    text_fini(&answer);
}

struct asker {
    const struct web *f;
    int good;
    pthread_t id;
};

static void *ask_often(void *context)
{
    struct asker *a = context;
    struct text answer = {0};
    for (int i = 0; i < 20; i++) {
        web_ask(a->f, "GET", "/api/v1/query?report=pages&format=csv&" HOUR_OF_TESTS, WEB_HOST, &answer);
        a->good += web_status_of(&answer) == 200 &&
                   strcmp(web_body_of(&answer), "time,value\n2015-05-17T10:00:00Z,4\n") == 0;
    }
    text_fini(&answer);
    return NULL;
}

static void test_web_many_ask_at_once(void **state)
{
    struct asker askers[2 * READERS_MAX];
    for (size_t i = 0; i < COUNT_OF(askers); i++) {
        askers[i] = (struct asker){.f = *state};
        assert_int_equal(pthread_create(&askers[i].id, NULL, ask_often, &askers[i]), 0);
    }
    for (size_t i = 0; i < COUNT_OF(askers); i++) {
        pthread_join(askers[i].id, NULL);
        assert_int_equal(askers[i].good, 20);
    }
}

static void test_web_sees_what_is_counted_meanwhile(void **state)
{
    struct web *f = *state;
    web_check(f, "/api/v1/query?report=pages&format=csv&" HOUR_OF_TESTS, 200, "Z,4\n");
    world_hit(f->w, FIXTURE_PAGES, "/new", "2015-05-17T10:08", 1);
    world_apply(f->w, 100);
    web_check(f, "/api/v1/query?report=pages&format=csv&" HOUR_OF_TESTS, 200, "Z,5\n");
    web_check(f, "/api/v1/query?report=pages&format=csv&filter=path=/new&" HOUR_OF_TESTS, 200, "Z,1\n");
}

static void test_web_start_says_what_is_wrong(void **state)
{
    struct web *f = *state;
    struct err e;
    struct server_options options = {.store_url = "mem:",
                                     .listen = "127.0.0.1:0",
                                     .connections_max = 4,
                                     .timeout_ms = 1000,
                                     .status = &f->status};
    assert_null(server_start(&options, &e));
    assert_int_equal(e.code, EX_CONFIG);
    assert_non_null(strstr(e.text, "mem: cannot be served"));
    options.store_url = f->w->url;
    options.listen = server_address(f->server);
    assert_null(server_start(&options, &e));
    assert_int_equal(e.code, EX_UNAVAILABLE);
    assert_non_null(strstr(e.text, "--listen"));
    options.listen = "127.0.0.1";
    assert_null(server_start(&options, &e));
    assert_int_equal(e.code, EX_CONFIG);
    options.listen = "192.0.2.1:0";
    assert_null(server_start(&options, &e));
    assert_int_equal(e.code, EX_CONFIG);
}

int main(void)
{
#define WEB_TEST(f) cmocka_unit_test_setup_teardown(f, web_setup, web_teardown)
    const struct CMUnitTest tests[] = {
        WEB_TEST(test_web_query_answers_in_three_formats),
        WEB_TEST(test_web_top_has_share_and_trend),
        WEB_TEST(test_web_series_completes_a_prefix),
        WEB_TEST(test_web_query_decodes_parameters),
        WEB_TEST(test_web_query_errors_have_their_class),
        WEB_TEST(test_web_store_not_there_yet_is_asked_again),
        WEB_TEST(test_web_damaged_store_is_500),
        WEB_TEST(test_web_reports_names_what_can_be_asked),
        WEB_TEST(test_web_status_and_health),
        WEB_TEST(test_web_limits_change_while_it_serves),
        WEB_TEST(test_web_assets_are_all_there),
        WEB_TEST(test_web_asset_known_is_not_sent_again),
        WEB_TEST(test_web_assets_are_sent_packed),
        WEB_TEST(test_web_security_headers_on_everything),
        WEB_TEST(test_web_head_has_no_body),
        WEB_TEST(test_web_other_methods_and_bodies_are_refused),
        WEB_TEST(test_web_foreign_hosts_are_refused),
        WEB_TEST(test_web_oversized_requests_are_refused),
        WEB_TEST(test_web_rubbish_does_no_harm),
        WEB_TEST(test_web_silent_client_is_dropped),
        WEB_TEST(test_web_many_ask_at_once),
        WEB_TEST(test_web_sees_what_is_counted_meanwhile),
        WEB_TEST(test_web_start_says_what_is_wrong),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
