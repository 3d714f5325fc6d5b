/* server.h - the daemon's HTTP server: the page and the API, over libmicrohttpd.
 *
 * Methods : GET and HEAD; a request body is refused, but for a form posted to Prometheus' API. Host is
 *           checked (host.h). No cookies, no files, no CORS.
 * Limits  : connections_max at once (further ones wait to be accepted), a request's line and headers within
 *           SERVER_REQUEST_BYTES, a form likewise, SERVER_PARAMETERS_MAX of both, timeout_ms of silence,
 *           SERVER_THREADS requests worked on at once, and query_limits for what a question may cost.
 * Access  : the token, if there is one, on all but /healthz and /readyz. With a certificate TLS only, as
 *           GnuTLS has it; certificate and key are read once.
 * Streams : /api/v1/stream (streams.h) keeps its connection, and no thread. A client that takes nothing for
 *           timeout_ms is dropped.
 * Threads : server_start() and server_stop() by one; requests are answered on threads of its own. A slow
 *           query holds up only the connections of its thread; new ones go to the others.
 */
#pragma once

#include "base/err.h"
#include "query/query.h"
#include "stats/status.h"
#include "web/readers.h"

#define SERVER_REQUEST_BYTES  16384
#define SERVER_PARAMETERS_MAX 64
#define SERVER_THREADS        (READERS_MAX - 1) /* and that of streams */

struct server_options {
    const char *store_url; /* may not exist yet: until it does, questions are answered with 503 */
    const char *listen;    /* "127.0.0.1:8080", "[::1]:0", "localhost:8080"; port 0 takes a free one */
    unsigned connections_max;
    unsigned streams_max;           /* of the connections */
    int64_t timeout_ms;             /* rounded up to seconds */
    const char *token;              /* that requests must have (guard.h); NULL: none */
    const char *tls_cert, *tls_key; /* paths of PEM files; NULL: plain HTTP */
    struct query_limits limits;
    struct status *status; /* borrowed */
};

struct server;

/* The texts of the options are borrowed until the server is stopped. EX_UNAVAILABLE: the address is taken;
 * EX_CONFIG: it is none, certificate or key is no good, or the store cannot be read beside its writer
 * (`mem:`). */
struct server *server_start(const struct server_options *options, struct err *e) MUST_CHECK;
/* Finishes the requests under way. */
void server_stop(struct server *sv);
/* What a question may cost from now on. */
void server_set_limits(struct server *sv, const struct query_limits *limits);
/* Where it listens: "127.0.0.1:8080". */
const char *server_address(const struct server *sv);
