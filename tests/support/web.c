#include "tests/support/web.h"

#include "base/mem.h"

#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

void web_start(struct web *f, const char *store_url, const char *listen, unsigned connections_max)
{
    struct err e = {0};
    struct server_options options = {
        .store_url = store_url,
        .listen = listen,
        .connections_max = connections_max,
        .streams_max = 4,
        .sending_max = 1 << 20,
        .timeout_ms = 1000,
        .limits = {.rows_max = 1000, .points_max = 100, .series_max = 10, .memory_max = 1 << 20},
        .clock = &clock_system,
        .status = &f->status,
        .rejects = &f->rejects};
    f->server = server_start(&options, &e);
    if (f->server == NULL)
        fail_msg("%s", e.text);
    f->port = atoi(strrchr(server_address(f->server), ':') + 1);
}

int web_setup(void **state)
{
    struct web *f = xcalloc(1, sizeof *f);
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
    rejects_init(&f->rejects, &f->clock, 65536);
    status_init(&f->status, &(struct status_options){.clock = &f->clock,
                                                     .store = "sqlite:test.db",
                                                     .source = "standard \"input\"",
                                                     .reports = f->reports,
                                                     .report_count = FIXTURE_COUNT});
    books_init(&f->books, FIXTURE_COUNT);
    web_start(f, f->w->url, "127.0.0.1:0", 16);
    *state = f;
    return 0;
}

int web_teardown(void **state)
{
    struct web *f = *state;
    server_stop(f->server);
    rejects_fini(&f->rejects);
    status_fini(&f->status);
    fixture_free(f->reports);
    books_fini(&f->books);
    world_teardown(&f->world_state);
    free(f);
    return 0;
}

int web_dial(const struct web *f)
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
void web_drain(int fd, struct text *out)
{
    char buf[4096];
    ssize_t n;
    text_puts(out, "");
    while ((n = recv(fd, buf, sizeof buf, 0)) > 0)
        text_add(out, buf, (size_t)n);
    close(fd);
}

void web_say(int fd, struct slice bytes)
{
    while (bytes.len > 0) {
        ssize_t n = send(fd, bytes.ptr, bytes.len, MSG_NOSIGNAL);
        if (n <= 0)
            return; /* the server had enough */
        bytes = slice_of(bytes.ptr + n, bytes.len - (size_t)n);
    }
}

/* Send a request as it stands, and take the answer, headers and all. */
void web_exchange(const struct web *f, struct slice request, struct text *out)
{
    int fd = web_dial(f);
    text_clear(out);
    web_say(fd, request);
    web_drain(fd, out);
}

void web_ask(const struct web *f, const char *method, const char *target, const char *more, struct text *out)
{
    struct text request = {0};
    text_printf(&request, "%s %s HTTP/1.1\r\nConnection: close\r\n%s\r\n", method, target, more);
    web_exchange(f, text_slice(&request), out);
    text_fini(&request);
}

int web_status_of(const struct text *answer)
{
    int code = 0;
    if (answer->len == 0 || sscanf(answer->ptr, "HTTP/1.1 %d", &code) != 1)
        return 0;
    return code;
}

const char *web_body_of(const struct text *answer)
{
    const char *end = strstr(answer->ptr, "\r\n\r\n");
    assert_non_null(end);
    return end + 4;
}

void web_check(const struct web *f, const char *target, int code, const char *body)
{
    struct text answer = {0};
    web_ask(f, "GET", target, WEB_HOST, &answer);
    if (web_status_of(&answer) != code || strstr(web_body_of(&answer), body) == NULL)
        fail_msg("%s: expected %d and %s, got %s", target, code, body, answer.ptr);
    text_fini(&answer);
}
