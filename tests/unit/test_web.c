/* The HTTP server over real sockets: routes, error classes, hosts, limits. */
#include "base/mem.h"
#include "tests/support/world.h"
#include "web/api.h"
#include "web/assets.h"
#include "web/listen.h"
#include "web/server.h"

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

struct fixture {
    void *world_state;
    struct world *w;
    struct clock clock;
    struct status status;
    struct report reports[FIXTURE_COUNT];
    struct books books; /* to note */
    struct server *server;
    int port;
};

static void start(struct fixture *f, const char *store_url, const char *listen, unsigned connections_max)
{
    struct err e = {0};
    struct server_options options = {.store_url = store_url,
                                     .listen = listen,
                                     .connections_max = connections_max,
                                     .streams_max = 4,
                                     .timeout_ms = 1000,
                                     .limits = {.rows_max = 1000, .points_max = 100, .series_max = 10},
                                     .clock = &clock_system,
                                     .status = &f->status};
    f->server = server_start(&options, &e);
    if (f->server == NULL)
        fail_msg("%s", e.text);
    f->port = atoi(strrchr(server_address(f->server), ':') + 1);
}

static int setup(void **state)
{
    struct fixture *f = xcalloc(1, sizeof *f);
    world_kind = &world_kinds[1];
    world_setup(&f->world_state);
    f->w = f->world_state;
    world_hit(f->w, FIXTURE_PAGES, "/index.html", "2015-05-17T10:05", 100);
    world_hit(f->w, FIXTURE_PAGES, "/index.html", "2015-05-17T10:06", 100);
    world_hit(f->w, FIXTURE_PAGES, "/<script>alert(1)</script>", "2015-05-17T10:05", 7);
    world_hit(f->w, FIXTURE_PAGES, "/a b&c=d+e%", "2015-05-17T10:07", 7);
    world_apply(f->w, 400);
    f->clock = clock_fake(1431856800000); /* 2015-05-17T10:00:00Z */
    f->clock.fake_mono_ms = 1000000;
    fixture_reports(f->reports);
    status_init(&f->status, &(struct status_options){.clock = &f->clock,
                                                     .store = "sqlite:test.db",
                                                     .source = "standard \"input\"",
                                                     .reports = f->reports,
                                                     .report_count = FIXTURE_COUNT});
    books_init(&f->books, FIXTURE_COUNT);
    start(f, f->w->url, "127.0.0.1:0", 16);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    server_stop(f->server);
    status_fini(&f->status);
    fixture_free(f->reports);
    books_fini(&f->books);
    world_teardown(&f->world_state);
    free(f);
    return 0;
}

static int dial(const struct fixture *f)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)f->port)};
    struct timeval limit = {.tv_sec = 10};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    return fd;
}

/* Everything until the server closes; "" where it closed without a word. */
static void drain(int fd, struct text *out)
{
    char buf[4096];
    ssize_t n;
    text_puts(out, "");
    while ((n = recv(fd, buf, sizeof buf, 0)) > 0)
        text_add(out, buf, (size_t)n);
    close(fd);
}

static void say(int fd, struct slice bytes)
{
    while (bytes.len > 0) {
        ssize_t n = send(fd, bytes.ptr, bytes.len, MSG_NOSIGNAL);
        if (n <= 0)
            return; /* the server had enough */
        bytes = slice_of(bytes.ptr + n, bytes.len - (size_t)n);
    }
}

/* Send a request as it stands, and take the answer, headers and all. */
static void exchange(const struct fixture *f, struct slice request, struct text *out)
{
    int fd = dial(f);
    text_clear(out);
    say(fd, request);
    drain(fd, out);
}

static void ask(const struct fixture *f, const char *method, const char *target, const char *more,
                struct text *out)
{
    struct text request = {0};
    text_printf(&request, "%s %s HTTP/1.1\r\nConnection: close\r\n%s\r\n", method, target, more);
    exchange(f, text_slice(&request), out);
    text_fini(&request);
}

#define HOST "Host: 127.0.0.1:8080\r\n"

static int status_of(const struct text *answer)
{
    int code = 0;
    if (answer->len == 0 || sscanf(answer->ptr, "HTTP/1.1 %d", &code) != 1)
        return 0;
    return code;
}

static const char *body_of(const struct text *answer)
{
    const char *end = strstr(answer->ptr, "\r\n\r\n");
    assert_non_null(end);
    return end + 4;
}

static void check(const struct fixture *f, const char *target, int code, const char *body)
{
    struct text answer = {0};
    ask(f, "GET", target, HOST, &answer);
    if (status_of(&answer) != code || strstr(body_of(&answer), body) == NULL)
        fail_msg("%s: expected %d and %s, got %s", target, code, body, answer.ptr);
    text_fini(&answer);
}

static void test_web_query_answers_in_three_formats(void **state)
{
    struct fixture *f = *state;
    check(f, "/api/v1/query?report=pages&filter=path%3D/index.html&" HOUR_OF_TESTS, 200,
          "\"values\":[[\"2015-05-17T10:00:00Z\",2]]");
    check(f, "/api/v1/query?report=pages&format=csv&measure=bytes&" HOUR_OF_TESTS, 200,
          "time,value\n2015-05-17T10:00:00Z,214\n");
    check(f, "/api/v1/query?report=pages&format=table&" HOUR_OF_TESTS, 200, "4");
    check(f, "/api/v1/query?report=pages&top=1&" HOUR_OF_TESTS, 200,
          "\"top\":[{\"series\":{\"path\":\"/index.html\"},\"values\":[2]}]");
    check(f, "/api/v1/query?report=pages&step=minute&format=csv&from=2015-05-17T10:05&to=2015-05-17T10:07",
          200, "time,value\n2015-05-17T10:05:00Z,2\n2015-05-17T10:06:00Z,1\n");
    check(f, "/api/v1/query?report=pages&step=day&tz=Europe/Berlin&from=2015-05-17&to=2015-05-18&format=csv",
          200, "time,value\n2015-05-17T00:00:00+02:00,");
}

static void test_web_top_has_share_and_trend(void **state)
{
    struct fixture *f = *state;
    check(f, "/api/v1/top?report=pages&limit=1&" HOUR_OF_TESTS, 200,
          "\"total\":4,\"before\":{\"from\":\"2015-05-17T09:00:00Z\",\"to\":\"2015-05-17T10:00:00Z\","
          "\"total\":0},\"series\":[{\"series\":{\"path\":\"/index.html\"},\"value\":2,\"share\":0.5,"
          "\"before\":null}]}");
    check(f, "/api/v1/top?report=pages&format=csv&" HOUR_OF_TESTS, 200,
          "path,value,share,before\n/index.html,2,0.5,\n");
    check(f, "/api/v1/top?report=pages&limit=0", 400,
          "limit: found \\\"0\\\", expected a number from 1 to 999999999");
    check(f, "/api/v1/top?report=pages&step=day", 400, "unknown parameter");
}

static void test_web_series_completes_a_prefix(void **state)
{
    struct fixture *f = *state;
    check(f, "/api/v1/series?report=pages&dimension=path&prefix=/i", 200,
          "{\"values\":[\"/index.html\"],\"more\":false}\n");
    check(f, "/api/v1/series?report=pages&limit=1", 200,
          "{\"values\":[\"/\\u003cscript\\u003ealert(1)\\u003c/script\\u003e\"],\"more\":true}\n");
    check(f, "/api/v1/series?report=pages&dimension=host", 400, "unknown dimension");
    check(f, "/api/v1/series?report=pages&from=now", 400, "unknown parameter");
}

static void test_web_query_decodes_parameters(void **state)
{
    struct fixture *f = *state;
    check(f, "/api/v1/query?report=pages&format=csv&" HOUR_OF_TESTS "&filter=path=/a+b%26c%3Dd%2Be%25", 200,
          "Z,1\n");
    check(f,
          "/api/v1/query?report=pages&format=csv&" HOUR_OF_TESTS
          "&filter=path=/%3Cscript%3Ealert(1)%3C/script%3E",
          200, "Z,1\n");
    check(f, "/api/v1/query?report=pages&format=csv&" HOUR_OF_TESTS "&filter=path=/index.html%00", 200,
          "Z,0\n");
}

static void test_web_query_errors_have_their_class(void **state)
{
    struct fixture *f = *state;
    check(f, "/api/v1/query", 400, "{\"error\":\"unknown report");
    check(f, "/api/v1/query?report=page", 400, "did you mean \\\"pages\\\"?");
    check(f, "/api/v1/query?report=pages&colour=red", 400, "unknown parameter");
    check(f, "/api/v1/query?report=pages&from=yesterday", 400, "expected a time");
    check(f, "/api/v1/query?report", 400, "unknown report");
    check(f, "/api/v1/query?report=pages&from=2015-05-01&to=2015-05-17&step=minute", 422, "query.points_max");
    check(f, "/api/v1/query?report=pages&from=1971-01-01&to=1971-01-02&step=day&tz=Africa/Monrovia", 422,
          "within a minute");
    check(f, "/api/v1/query?report=pages&tz=Berlin", 400, "did you mean \\\"Europe/Berlin\\\"?");
    struct text target = {0};
    text_puts(&target, "/api/v1/query?report=pages");
    for (int i = 0; i < SERVER_PARAMETERS_MAX; i++)
        text_puts(&target, "&top=1");
    check(f, target.ptr, 400, "too many parameters");
    text_fini(&target);
}

static void test_web_store_not_there_yet_is_asked_again(void **state)
{
    struct fixture *f = *state;
    struct fixture late = {.status = f->status};
    struct report reports[FIXTURE_COUNT];
    struct err e = {0};
    char url[sizeof f->w->url];
    snprintf(url, sizeof url, "sqlite:%s/later.db", f->w->dir);
    start(&late, url, "127.0.0.1:0", 16);
    struct text answer = {0};
    ask(&late, "GET", "/api/v1/query?report=pages", HOST, &answer);
    assert_int_equal(status_of(&answer), 503);
    assert_non_null(strstr(answer.ptr, "Retry-After: 1"));
    assert_non_null(strstr(answer.ptr, "nothing was counted yet"));
    check(&late, "/api/v1/reports", 503, "nothing was counted yet");
    check(&late, "/", 200, "<!doctype html>");

    fixture_reports(reports);
    struct store *st = store_open(url, STORE_WRITE, reports, FIXTURE_COUNT, &e);
    assert_non_null(st);
    check(&late, "/api/v1/query?report=pages&format=csv", 200, "time,value");
    store_close(st);
    fixture_free(reports);
    text_fini(&answer);
    server_stop(late.server);
}

static void test_web_damaged_store_is_500(void **state)
{
    struct fixture *f = *state;
    struct fixture broken = {.status = f->status};
    char path[96], url[sizeof path + 8];
    snprintf(path, sizeof path, "%s/broken.db", f->w->dir);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs("this is no database, and never was one", file);
    fclose(file);
    snprintf(url, sizeof url, "sqlite:%s", path);
    start(&broken, url, "127.0.0.1:0", 16);
    check(&broken, "/api/v1/query?report=pages", 500, "\"error\":");
    server_stop(broken.server);
}

static void test_web_reports_names_what_can_be_asked(void **state)
{
    check(*state, "/api/v1/reports", 200,
          "{\"name\":\"clients\",\"dimensions\":[\"host\",\"method\",\"status\"],\"measures\":[\"hits\","
          "\"bytes\"],\"expressions\":[\"count\",\"sum(bytes)\"]}]");
}

static void pass_time(struct fixture *f, int64_t ms)
{
    pthread_mutex_lock(&f->status.lock); /* the server reads the clock under it */
    f->clock.fake_mono_ms += ms;
    pthread_mutex_unlock(&f->status.lock);
}

static void test_web_status_and_health(void **state)
{
    struct fixture *f = *state;
    *books_source(&f->books, BOOK_CONSUMED) = 40;
    *books_source(&f->books, BOOK_REJECTED + REJECT_FUTURE) = 2;
    status_note(&f->status, &(struct status_figures){.state = STATUS_COUNTING, .books = &f->books});
    check(f, "/api/v1/status", 200, "\"state\":\"counting\",\"now\":\"2015-05-17T10:00:00Z\"");
    check(f, "/api/v1/status", 200,
          "\"source\":\"standard \\\"input\\\"\",\"messages\":0,\"consumed\":40,\"rejected\":2");
    check(f, "/api/v1/status?x=1", 400, "unknown parameter \\\"x\\\": there is none");
    check(f, "/healthz", 200, "ok\n");
    pass_time(f, STATUS_SILENCE_MS);
    check(f, "/healthz", 200, "ok\n");
    check(f, "/readyz", 200, "ok\n");
    check(f, "/metrics", 200, "\ntallyd_lines_consumed_total 40\n");
    pass_time(f, 1);
    check(f, "/readyz", 503, "a thread hangs");
    check(f, "/healthz", 503, "nothing was read or stored for 30 s");
    check(f, "/api/v1/status", 200, "\"state\":\"silent\"");
}

static void test_web_limits_change_while_it_serves(void **state)
{
    struct fixture *f = *state;
    check(f, "/api/v1/query?report=pages&step=minute&" HOUR_OF_TESTS, 200, "values");
    server_set_limits(f->server,
                      &(struct query_limits){.rows_max = 1000, .points_max = 59, .series_max = 10});
    check(f, "/api/v1/query?report=pages&step=minute&" HOUR_OF_TESTS, 422, "query.points_max");
}

static void test_web_assets_are_all_there(void **state)
{
    struct fixture *f = *state;
    check(f, "/", 200, "<!doctype html>");
    check(f, "/?report=pages&measure=hits", 200, "<!doctype html>");
    check(f, "/page.js", 200, "import");
    check(f, "/dom.js", 200, "textContent");
    check(f, "/range.js", 200, "RANGES");
    check(f, "/chart.js", 200, "Dygraph");
    check(f, "/tables.js", 200, "drawTop");
    check(f, "/page.css", 200, "prefers-color-scheme");
    check(f, "/icon.svg", 200, "<svg");
    check(f, "/dygraph.min.css", 200, ".dygraph-axis-label");
    check(f, "/dygraph.min.js", 200, "Dygraph");
    check(f, "/../etc/passwd", 404, "nothing is here");
    check(f, "/api/v1", 404, "nothing is here");
    check(f, "/page.js/", 404, "nothing is here");
}

static void test_web_asset_known_is_not_sent_again(void **state)
{
    struct fixture *f = *state;
    struct text answer = {0}, more = {0};
    text_printf(&more, HOST "If-None-Match: %s\r\n", assets_find("/page.js")->etag);
    ask(f, "GET", "/page.js", more.ptr, &answer);
    assert_int_equal(status_of(&answer), 304);
    assert_string_equal(body_of(&answer), "");
    ask(f, "GET", "/page.js", HOST "If-None-Match: \"0\"\r\n", &answer);
    assert_int_equal(status_of(&answer), 200);
    text_fini(&answer);
    text_fini(&more);
}

static void test_web_assets_are_sent_packed(void **state)
{
    const struct asset *a = assets_find("/dygraph.min.js");
    struct text answer = {0};
    assert_in_range(a->packed.len, 10000, a->bytes.len / 2);
    ask(*state, "GET", a->path, HOST "Accept-Encoding: gzip\r\n", &answer);
    assert_non_null(strstr(answer.ptr, "\r\nContent-Encoding: gzip\r\n"));
    const char *body = body_of(&answer);
    assert_true(slice_equal(slice_of(body, (size_t)(answer.ptr + answer.len - body)), a->packed));
    text_fini(&answer);
}

static void test_web_security_headers_on_everything(void **state)
{
    static const char *const targets[] = {"/", "/api/v1/status", "/api/v1/query", "/nothing"};
    struct text answer = {0};
    for (size_t i = 0; i < COUNT_OF(targets); i++) {
        ask(*state, "GET", targets[i], HOST, &answer);
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
    ask(*state, "HEAD", "/dygraph.min.js", HOST, &answer);
    assert_int_equal(status_of(&answer), 200);
    assert_non_null(strstr(answer.ptr, "Content-Length: 1"));
    assert_string_equal(body_of(&answer), "");
    text_fini(&answer);
}

static void test_web_other_methods_and_bodies_are_refused(void **state)
{
    struct fixture *f = *state;
    struct text answer = {0};
    ask(f, "POST", "/api/v1/query", HOST "Content-Length: 3\r\n", &answer);
    assert_int_equal(status_of(&answer), 405);
    assert_non_null(strstr(answer.ptr, "\r\nAllow: GET, HEAD\r\n"));
    ask(f, "DELETE", "/", HOST, &answer);
    assert_int_equal(status_of(&answer), 405);
    ask(f, "PUT", "/prometheus/api/v1/query", HOST "Content-Length: 3\r\n", &answer);
    assert_int_equal(status_of(&answer), 405);
    assert_non_null(strstr(answer.ptr, "\r\nAllow: GET, HEAD, POST\r\n"));
    assert_non_null(strstr(body_of(&answer), "only GET, HEAD and POST are answered here"));
    ask(f, "POST", "/prometheus/api/v1/query", HOST "Content-Length: 3\r\nContent-Type: text/plain\r\n",
        &answer);
    assert_int_equal(status_of(&answer), 415);
    ask(f, "POST", "/prometheus/api/v1/query?query=1", HOST, &answer);
    assert_int_equal(status_of(&answer), 200);
    ask(f, "GET", "/", HOST "Content-Length: 1000000\r\n", &answer);
    assert_int_equal(status_of(&answer), 413);
    ask(f, "GET", "/", HOST "Transfer-Encoding: chunked\r\n", &answer);
    assert_int_equal(status_of(&answer), 413);
    ask(f, "GET", "/healthz", HOST "Content-Length: 0\r\n", &answer);
    assert_int_equal(status_of(&answer), 200);
    text_fini(&answer);
}

static void test_web_foreign_hosts_are_refused(void **state)
{
    struct fixture *f = *state;
    struct text answer = {0};
    ask(f, "GET", "/api/v1/status", "Host: evil.example\r\n", &answer);
    assert_int_equal(status_of(&answer), 403);
    assert_non_null(strstr(answer.ptr, "unknown host name"));
    assert_null(strstr(answer.ptr, "consumed"));
    ask(f, "GET", "/", "Host: evil.example:8080\r\n", &answer);
    assert_int_equal(status_of(&answer), 403);
    ask(f, "GET", "/", "Host: localhost:9\r\n", &answer);
    assert_int_equal(status_of(&answer), 200);
    text_fini(&answer);
}

static void test_web_oversized_requests_are_refused(void **state)
{
    struct fixture *f = *state;
    struct text target = {0}, answer = {0};
    text_puts(&target, "/api/v1/query?report=");
    for (int i = 0; i < 4 * SERVER_REQUEST_BYTES; i++)
        text_putc(&target, 'a');
    ask(f, "GET", target.ptr, HOST, &answer);
    assert_true(status_of(&answer) == 0 || status_of(&answer) == 414 || status_of(&answer) == 431);
    text_clear(&target);
    text_puts(&target, HOST "X-Long: ");
    for (int i = 0; i < 4 * SERVER_REQUEST_BYTES; i++)
        text_putc(&target, 'a');
    text_puts(&target, "\r\n");
    ask(f, "GET", "/", target.ptr, &answer);
    assert_true(status_of(&answer) == 0 || status_of(&answer) == 431);
    check(f, "/healthz", 200, "ok");
    text_fini(&target);
    text_fini(&answer);
}

static void test_web_rubbish_does_no_harm(void **state)
{
    static const char *const requests[] = {
        "\r\n\r\n", "\x16\x03\x01\x02", "GET", "GET / HTTP/9.9\r\n\r\n",
        "GET /api/v1/query?%zz=%&&==& HTTP/1.1\r\nConnection: close\r\n" HOST "\r\n"};
    struct fixture *f = *state;
    struct text answer = {0};
    for (size_t i = 0; i < COUNT_OF(requests); i++) {
        int fd = dial(f);
        say(fd, slice_text(requests[i]));
        shutdown(fd, SHUT_WR);
        text_clear(&answer);
        drain(fd, &answer);
        assert_int_not_equal(status_of(&answer), 200);
    }
    check(f, "/healthz", 200, "ok");
    text_fini(&answer);
}

static void test_web_silent_client_is_dropped(void **state)
{
    struct fixture *f = *state;
    struct text answer = {0};
    int64_t begun_ms = clock_mono_ms(&clock_system);
    exchange(f, slice_text("GET / HTTP/1.1\r\n" HOST), &answer);
    int64_t took_ms = clock_mono_ms(&clock_system) - begun_ms;
    assert_in_range(took_ms, 500, 5000);
    text_fini(&answer);
}

/* One connection only: who comes second is answered once the first is dropped for its silence. */
static void test_web_connections_over_the_limit_wait(void **state)
{
    struct fixture *f = *state;
    struct fixture narrow = {.status = f->status};
    start(&narrow, f->w->url, "127.0.0.1:0", 1);
    int64_t begun_ms = clock_mono_ms(&clock_system);
    int held = dial(&narrow);
    say(held, slice_text("GET"));
    usleep(100000);
    check(&narrow, "/healthz", 200, "ok");
    assert_in_range(clock_mono_ms(&clock_system) - begun_ms, 600, 5000);
    close(held);
    server_stop(narrow.server);
}

struct asker {
    const struct fixture *f;
    int good;
    pthread_t id;
};

static void *ask_often(void *context)
{
    struct asker *a = context;
    struct text answer = {0};
    for (int i = 0; i < 20; i++) {
        ask(a->f, "GET", "/api/v1/query?report=pages&format=csv&" HOUR_OF_TESTS, HOST, &answer);
        a->good += status_of(&answer) == 200 &&
                   strcmp(body_of(&answer), "time,value\n2015-05-17T10:00:00Z,4\n") == 0;
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
    struct fixture *f = *state;
    check(f, "/api/v1/query?report=pages&format=csv&" HOUR_OF_TESTS, 200, "Z,4\n");
    world_hit(f->w, FIXTURE_PAGES, "/new", "2015-05-17T10:08", 1);
    world_apply(f->w, 100);
    check(f, "/api/v1/query?report=pages&format=csv&" HOUR_OF_TESTS, 200, "Z,5\n");
    check(f, "/api/v1/query?report=pages&format=csv&filter=path=/new&" HOUR_OF_TESTS, 200, "Z,1\n");
}

static void test_web_start_says_what_is_wrong(void **state)
{
    struct fixture *f = *state;
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
#define WEB_TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
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
        WEB_TEST(test_web_connections_over_the_limit_wait),
        WEB_TEST(test_web_many_ask_at_once),
        WEB_TEST(test_web_sees_what_is_counted_meanwhile),
        WEB_TEST(test_web_start_says_what_is_wrong),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
