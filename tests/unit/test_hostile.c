/* The HTTP server against clients that mean harm, over real sockets: syntax, sites, slow clients, memory. */
#include "base/mem.h"
#include "tests/support/web.h"
#include "web/clients.h"

#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define QUERY   "/prometheus/api/v1/query"
#define FORM    "Content-Type: application/x-www-form-urlencoded\r\n"
#define CLOSE   "Connection: close\r\n"
#define MANY    250
#define GET(p)  "GET " p " HTTP/1.1\r\n"
#define POST    "POST " QUERY " HTTP/1.1\r\n" WEB_HOST CLOSE FORM
#define CHUNKED "7\r\nquery=1\r\n0\r\n\r\n"

static int status_at_once(const struct web *f, struct slice request)
{
    struct text answer = {0};
    int64_t begun_ms = clock_mono_ms(&clock_system);
    web_exchange(f, request, &answer);
    int status = web_status_of(&answer);
    if (clock_mono_ms(&clock_system) - begun_ms > 500)
        fail_msg("%.60s: answered too late, by %d", request.ptr, status);
    text_fini(&answer);
    return status;
}

static void test_web_ambiguous_requests_are_refused(void **state)
{
#define CASE(text, status)              \
    {                                   \
        {text, sizeof text - 1}, status \
    }
    static const struct {
        struct slice request;
        int status;
    } cases[] = {
        CASE(GET("/healthz") WEB_HOST CLOSE "\r\n", 200),
        CASE(GET("/healthz?x=%00") WEB_HOST CLOSE "\r\n", 200),
        CASE(GET("/healthz") WEB_HOST CLOSE "X: a \r\n" WEB_HOST "\r\n", 400),
        CASE(GET("/healthz") CLOSE "\r\n", 400),
        CASE(GET("/healthz") WEB_HOST CLOSE "X: a\0b\r\n\r\n", 400),
        CASE(GET("/healthz") WEB_HOST CLOSE "X: a\0\0b\r\nY: c\r\n\r\n", 400),
        CASE(GET("/healthz") CLOSE "Host: localhost\0.evil\r\n\r\n", 400),
        CASE(GET("/healthz") WEB_HOST CLOSE "X: a\r\n b\r\nY: c\r\n\r\n", 400),
        CASE(GET("/healthz") WEB_HOST CLOSE "X: a\nY: c\r\n\r\n", 400),
        CASE(GET("/healthz") "Host : localhost\r\n" CLOSE "\r\n", 400),
        CASE(GET("/healthz\0x") WEB_HOST CLOSE "\r\n", 400),
        CASE(GET("/healthz%00x") WEB_HOST CLOSE "\r\n", 400),
        CASE(POST "Content-Length: 7\r\n\r\nquery=1", 200),
        CASE(POST "Transfer-Encoding: chunked\r\n\r\n" CHUNKED, 200),
        CASE(POST "Content-Length: 7\r\nContent-Length: 7\r\n\r\nquery=1", 400),
        CASE(POST "Content-Length: 7\r\nContent-Length: 3\r\n\r\nquery=1", 400),
        CASE(POST "Content-Length: 7\r\nTransfer-Encoding: chunked\r\n\r\n" CHUNKED, 400),
        CASE(POST "Transfer-Encoding: gzip\r\n\r\n" CHUNKED, 400),
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        int status = status_at_once(*state, cases[i].request);
        if (status != cases[i].status)
            fail_msg("%zu: %s: %d, expected %d", i, cases[i].request.ptr, status, cases[i].status);
    }
}

static void test_web_many_parameters_are_refused_at_once(void **state)
{
    static const char *const paths[] = {"/api/v1/query", QUERY};
    for (size_t i = 0; i < COUNT_OF(paths); i++) {
        struct text request = {0};
        text_printf(&request, "GET %s?a=1", paths[i]);
        for (size_t n = 1; n < MANY; n++)
            text_puts(&request, "&a=1");
        text_puts(&request, " HTTP/1.1\r\n" WEB_HOST CLOSE "\r\n");
        assert_int_equal(status_at_once(*state, text_slice(&request)), 400);
        text_fini(&request);
    }
}

static void test_web_other_sites_get_nothing(void **state)
{
    static const struct {
        const char *path, *header;
        int status;
    } cases[] = {
        {"/api/v1/status", "Sec-Fetch-Site: cross-site\r\n", 403},
        {"/api/v1/status", "Sec-Fetch-Site: same-site\r\n", 403},
        {"/api/v1/status", "Sec-Fetch-Site: same-origin\r\n", 200},
        {"/api/v1/status", "Sec-Fetch-Site: none\r\n", 200},
        {"/api/v1/status", "Origin: http://evil.example\r\n", 403},
        {"/api/v1/status", "Origin: http://127.0.0.1:8081\r\n", 403},
        {"/api/v1/status", "Origin: null\r\n", 403},
        {"/api/v1/status", "Origin: http://127.0.0.1:8080\r\n", 200},
        {"/api/v1/reports", "Sec-Fetch-Site: cross-site\r\n", 403},
        {QUERY "?query=1", "Sec-Fetch-Site: cross-site\r\n", 403},
        {"/metrics", "Sec-Fetch-Site: cross-site\r\n", 403},
        {"/api/v1/status", "Sec-Fetch-Site: cross-site\r\nAuthorization: Bearer x\r\n", 403},
        {"/", "Sec-Fetch-Site: cross-site\r\n", 200},
        {"/healthz", "Sec-Fetch-Site: cross-site\r\n", 200},
    };
    struct text answer = {0}, headers = {0};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        text_clear(&headers);
        text_printf(&headers, WEB_HOST "%s", cases[i].header);
        web_ask(*state, "GET", cases[i].path, headers.ptr, &answer);
        if (web_status_of(&answer) != cases[i].status)
            fail_msg("%s %s: %s", cases[i].path, cases[i].header, answer.ptr);
    }
    text_fini(&answer);
    text_fini(&headers);
}

/* One connection only: who comes second takes the place of the first, which sends nothing. */
static void test_web_connections_that_wait_make_room(void **state)
{
    struct web *f = *state;
    struct web narrow = {.status = f->status};
    struct text nothing = {0};
    web_start(&narrow, f->w->url, "127.0.0.1:0", 1);
    int64_t begun_ms = clock_mono_ms(&clock_system);
    int held = web_dial(&narrow);
    web_say(held, slice_text("GET"));
    usleep(100000);
    web_check(&narrow, "/healthz", 200, "ok");
    web_drain(held, &nothing);
    assert_int_equal(nothing.len, 0);
    assert_true(clock_mono_ms(&clock_system) - begun_ms < 600);
    text_fini(&nothing);
    server_stop(narrow.server);
}

/* A client that sends a byte now and then is not silent, but its request takes too long. */
static void test_web_slow_request_is_dropped(void **state)
{
    struct web *f = *state;
    int64_t begun_ms = clock_mono_ms(&clock_system);
    int fd = web_dial(f);
    char byte;
    web_say(fd, slice_text("GET / HTTP/1.1\r\nHost: "));
    while (clock_mono_ms(&clock_system) - begun_ms < 5000 && recv(fd, &byte, 1, MSG_DONTWAIT) != 0) {
        (void)!send(fd, "l", 1, MSG_NOSIGNAL);
        usleep(50000);
    }
    assert_in_range(clock_mono_ms(&clock_system) - begun_ms, 900, 3000);
    close(fd);
}

/* The one place is taken by a stream: a second client gets states only. */
static void test_web_states_have_places_of_their_own(void **state)
{
    struct web *f = *state;
    struct web narrow = {.status = f->status};
    web_start(&narrow, f->w->url, "127.0.0.1:0", 1);
    int held = web_dial(&narrow);
    web_say(held, slice_text("GET /api/v1/stream?report=site HTTP/1.1\r\n" WEB_HOST "\r\n"));
    usleep(300000);
    web_check(&narrow, "/healthz", 200, "ok");
    web_check(&narrow, "/metrics", 200, "tallyd_");
    web_check(&narrow, "/api/v1/reports", 503, "http.connections_max");
    close(held);
    server_stop(narrow.server);
}

/* ---- the connections, without a server */

static struct client *add(struct clients *c, const char *address, int sockets[2])
{
    struct sockaddr_in from = {.sin_family = AF_INET};
    assert_int_equal(inet_pton(AF_INET, address, &from.sin_addr), 1);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets), 0);
    return clients_add(c, sockets[0], (const struct sockaddr *)&from);
}

static void end(struct client *cl, const int sockets[2])
{
    clients_remove(cl);
    close(sockets[0]);
    close(sockets[1]);
}

static bool is_dropped(const int sockets[2])
{
    char byte;
    return recv(sockets[1], &byte, 1, MSG_DONTWAIT) == 0;
}

static bool takes(struct clients *c, const char *address)
{
    struct sockaddr_in from = {.sin_family = AF_INET};
    assert_int_equal(inet_pton(AF_INET, address, &from.sin_addr), 1);
    return clients_take(c, (const struct sockaddr *)&from);
}

static void test_clients_of_one_address_are_limited(void **state)
{
    struct clients *c = clients_start(&(struct clients_options){
        .connections_max = 10, .per_address_max = 2, .timeout_ms = 60000, .clock = &clock_system});
    struct client *clients[4];
    int sockets[4][2];
    (void)state;
    assert_non_null(c);
    clients[0] = add(c, "192.0.2.1", sockets[0]);
    assert_true(takes(c, "192.0.2.1"));
    clients[1] = add(c, "192.0.2.1", sockets[1]);
    assert_false(takes(c, "192.0.2.1"));
    assert_true(takes(c, "192.0.2.2"));
    clients[2] = add(c, "127.0.0.1", sockets[2]);
    clients[3] = add(c, "127.0.0.1", sockets[3]);
    assert_true(takes(c, "127.0.0.1"));
    end(clients[0], sockets[0]);
    assert_true(takes(c, "192.0.2.1"));
    for (size_t i = 1; i < 4; i++)
        end(clients[i], sockets[i]);
    clients_free(c);
}

/* The one that waits longest goes; those that work or send stay. */
static void test_clients_make_room(void **state)
{
    struct clock clock = clock_fake(0);
    struct clients *c =
        clients_start(&(struct clients_options){.connections_max = 3, .timeout_ms = 60000, .clock = &clock});
    struct client *clients[5];
    int sockets[5][2];
    (void)state;
    assert_non_null(c);
    for (size_t i = 0; i < 3; i++) {
        clients[i] = add(c, "192.0.2.1", sockets[i]);
        clock_pass(&clock, 10);
    }
    clock_pass(&clock, CLIENTS_NEW_MS);
    client_works(clients[0]);
    client_sends(clients[1], 1);
    clients[3] = add(c, "192.0.2.1", sockets[3]);
    assert_true(is_dropped(sockets[2]));
    assert_false(clients_are_busy(c));
    client_works(clients[3]);
    assert_true(clients_are_busy(c));
    clients[4] = add(c, "192.0.2.1", sockets[4]);
    for (size_t i = 0; i < 5; i++) {
        assert_true(is_dropped(sockets[i]) == (i == 2));
        end(clients[i], sockets[i]);
    }
    clients_free(c);
}

/* A connection that is new, or whose bytes were not read, is not the one that is slow. */
static void test_clients_that_have_sent_stay(void **state)
{
    struct clock clock = clock_fake(0);
    struct clients *c =
        clients_start(&(struct clients_options){.connections_max = 2, .timeout_ms = 60000, .clock = &clock});
    struct client *clients[3];
    int sockets[3][2];
    (void)state;
    assert_non_null(c);
    clients[0] = add(c, "192.0.2.1", sockets[0]);
    assert_int_equal(send(sockets[0][1], "G", 1, 0), 1);
    clock_pass(&clock, CLIENTS_NEW_MS);
    clients[1] = add(c, "192.0.2.1", sockets[1]);
    clients[2] = add(c, "192.0.2.1", sockets[2]);
    for (size_t i = 0; i < 3; i++) {
        assert_false(is_dropped(sockets[i]));
        end(clients[i], sockets[i]);
    }
    clients_free(c);
}

/* A response that does not fit drops the reader that is slowest, but none that has just begun. */
static void test_clients_share_one_budget(void **state)
{
    struct clients *c = clients_start(&(struct clients_options){
        .connections_max = 9, .sending_max = 100, .timeout_ms = 60000, .clock = &clock_system});
    struct client *slow, *quick;
    int sockets[2][2];
    (void)state;
    assert_non_null(c);
    slow = add(c, "192.0.2.1", sockets[0]);
    assert_true(clients_reserve(c, 60, NULL));
    client_sends(slow, 60);
    usleep((CLIENTS_GRACE_MS + 100) * 1000);
    quick = add(c, "192.0.2.1", sockets[1]);
    assert_true(clients_reserve(c, 40, NULL));
    client_sends(quick, 40);
    assert_false(is_dropped(sockets[0]));
    struct deadline d;
    deadline_init(&d, &clock_system, 200);
    assert_false(clients_reserve(c, 60, &d)); /* libmicrohttpd has not yet released it */
    assert_true(is_dropped(sockets[0]));
    assert_false(is_dropped(sockets[1]));
    clients_release(c, 60);
    assert_true(clients_reserve(c, 60, NULL));
    clients_release(c, 100);
    end(slow, sockets[0]);
    end(quick, sockets[1]);
    clients_free(c);
}

#define WEB_TEST(f) cmocka_unit_test_setup_teardown(f, web_setup, web_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WEB_TEST(test_web_ambiguous_requests_are_refused),
        WEB_TEST(test_web_many_parameters_are_refused_at_once),
        WEB_TEST(test_web_other_sites_get_nothing),
        WEB_TEST(test_web_connections_that_wait_make_room),
        WEB_TEST(test_web_slow_request_is_dropped),
        WEB_TEST(test_web_states_have_places_of_their_own),
        cmocka_unit_test(test_clients_of_one_address_are_limited),
        cmocka_unit_test(test_clients_make_room),
        cmocka_unit_test(test_clients_that_have_sent_stay),
        cmocka_unit_test(test_clients_share_one_budget),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
