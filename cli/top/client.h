/* client.h - asks a running daemon, through its HTTP API.
 *
 * URL    : http:// or https://, a host, perhaps a port and the path under which a proxy shows the daemon.
 *          It is asked directly: no proxy of the environment, no redirects.
 * Token  : that of the environment's TALLYD_TOKEN, for a daemon with http.token.
 * TLS    : the certificate must be good for the host, and signed by whom the system trusts, or by `cacert`.
 * Limits : CLIENT_CONNECT_MS, the timeout for all, CLIENT_ANSWER_BYTES_MAX.
 * Errors : EX_UNAVAILABLE: not reachable or not trusted, or the answer passes a limit (the daemon's, or those
 *          above); EX_USAGE: the question is wrong; EX_NOINPUT: it has no such path, or `cacert` cannot be
 *          read; EX_TEMPFAIL: later perhaps; EX_PROTOCOL: somebody else answers.
 */
#pragma once

#include "base/err.h"
#include "base/text.h"
#include "web/reply.h"

#define CLIENT_CONNECT_MS       5000L
#define CLIENT_TIMEOUT_MS       60000L
#define CLIENT_ANSWER_BYTES_MAX ((size_t)64 << 20)

/* Whom to ask; borrowed. */
struct client {
    const char *url;
    const char *cacert; /* a PEM file of certificates to trust instead of the system's; NULL: none */
};

bool client_is_url(const char *text);
/* Adds the answer of `path`, "/api/v1/query", to `out`. Pre: client_is_url(c->url). */
bool client_get(const struct client *c, const char *path, const struct parameter *parameters, size_t count,
                long timeout_ms, struct text *out, struct err *e) MUST_CHECK;
