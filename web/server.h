/* server.h - the daemon's HTTP server: it serves the page and the API with libmicrohttpd. Called by
 * daemon/service.
 *
 * Requests: GET and HEAD without a body; POST to Prometheus' API. admit.h says what is refused by
 *           its headers, guard.h what needs the token. No cookies, no files, no CORS.
 * Limits  : clients.h: connections, their time, the memory of answers. SERVER_REQUEST_BYTES for request line
 *           and headers, and again for a body; SERVER_PARAMETERS_MAX parameters; timeout_ms of silence;
 *           query_limits for each question, among them its deadline (base/deadline.h). All questions share
 *           query.memory_max (base/quota.h).
 * TLS     : with a certificate the server speaks TLS only (tls.h); it reads certificate and key once.
 * Streams : /api/v1/stream (streams.h) holds a connection, but no thread. A client that takes nothing for
 *           timeout_ms is dropped.
 * Threads : one thread calls server_start() and server_stop(). SERVER_THREADS threads of libmicrohttpd send
 *           and receive, and answer what takes no time: files, states, metrics. All that reads the store is a
 *           question for the workers (workers.h): a few at once, the others wait. A question ends when its
 *           client leaves, and with server_stop().
 */
#pragma once

#include "base/err.h"
#include "query/query.h"
#include "stats/rejects.h"
#include "stats/status.h"
#include "web/readers.h"

#define SERVER_REQUEST_BYTES  16384
#define SERVER_PARAMETERS_MAX 64
#define SERVER_THREADS        2
#define SERVER_SENDING_FACTOR 2 /* all responses that are sent may take so many times query.response_max */

struct server_options {
    const char *store_url;    /* the store may not exist yet: until it does, questions get a 503 */
    const char *listen;       /* "127.0.0.1:8080", "[::1]:0", "localhost:8080"; port 0 takes a free one */
    unsigned connections_max; /* beyond it, only states and metrics are answered */
    unsigned per_address_max; /* connections of one address, unless it is a loopback's; 0: no limit */
    uint64_t sending_max;     /* bytes of all responses that are being sent */
    unsigned streams_max;     /* connections that may be streams */
    int64_t timeout_ms;       /* rounded up to seconds */
    const char *token;        /* the token that requests must have (guard.h); NULL: none */
    const char *tls_cert, *tls_key; /* paths of PEM files; NULL: plain HTTP */
    struct query_limits limits;
    const struct clock *clock;
    struct status *status;   /* borrowed */
    struct rejects *rejects; /* borrowed */
};

struct server;

/* The most memory of connections, streams, and answers that are being sent. */
int64_t server_sending_bytes_max(const struct server_options *options);
/* The most memory of questions that are being answered, without the store's. */
int64_t server_question_bytes_max(const struct server_options *options);

/* Borrows the texts of the options until the server is stopped. EX_UNAVAILABLE: the address is taken;
 * EX_NOPERM: the address is not permitted; EX_CONFIG: the address, certificate or key is wrong, or only its
 * writer can read the store (`mem:`); EX_OSERR: libmicrohttpd fails. */
struct server *server_start(const struct server_options *options, struct err *e) MUST_CHECK;
/* Cancels the questions under way; their clients get a 503. */
void server_stop(struct server *sv);
/* Sets the limits of questions from now on. Any thread. */
void server_set_limits(struct server *sv, const struct query_limits *limits);
/* The address that it listens on: "127.0.0.1:8080". */
const char *server_address(const struct server *sv);
