/* web.h - the HTTP server over a small store, for tests that speak to it by sockets. */
#pragma once

#include "tests/support/world.h"
#include "web/server.h"

#define WEB_HOST "Host: 127.0.0.1:8080\r\n"

struct web {
    void *world_state;
    struct world *w;
    struct clock clock;
    struct status status;
    struct rejects rejects;
    struct report reports[FIXTURE_COUNT];
    struct books books; /* to note */
    struct server *server;
    int port;
};

void web_start(struct web *f, const char *store_url, const char *listen, unsigned connections_max);
int web_setup(void **state);
int web_teardown(void **state);
int web_dial(const struct web *f);
/* Everything until the server closes; "" where it closed without a word. */
void web_drain(int fd, struct text *out);
void web_say(int fd, struct slice bytes);
/* Send a request as it stands, and take the answer, headers and all. */
void web_exchange(const struct web *f, struct slice request, struct text *out);
void web_ask(const struct web *f, const char *method, const char *target, const char *more, struct text *out);
int web_status_of(const struct text *answer);
const char *web_body_of(const struct text *answer);
void web_check(const struct web *f, const char *target, int code, const char *body);
