/* client.h - queries a running daemon through its HTTP API, for `tallyd top` and `tallyd query`.
 *
 * URL    : http:// or https://, a host, optionally a port, and the path under which a proxy serves the
 *          daemon. base/http.h says how it is asked.
 * Token  : TALLYD_TOKEN of the environment, for a daemon with http.token.
 * TLS    : the certificate must match the host, and be signed by an authority that the system or `cacert`
 *          trusts.
 * Limits : CLIENT_CONNECT_MS to connect, timeout_ms in total, CLIENT_ANSWER_BYTES_MAX.
 * Errors : EX_UNAVAILABLE: not reachable or not trusted, or the answer exceeds a limit of the daemon or of
 *          this client; EX_USAGE: the query is wrong; EX_NOINPUT: no such path, or `cacert` cannot be read;
 *          EX_NOPERM: refused, as without the token; EX_TEMPFAIL: retry later; EX_IOERR: another error of the
 *          daemon; EX_PROTOCOL: the answer is not tallyd's.
 */
#pragma once

#include "base/err.h"
#include "base/text.h"
#include "web/reply.h"

#define CLIENT_CONNECT_MS       5000
#define CLIENT_TIMEOUT_MS       60000
#define CLIENT_ANSWER_BYTES_MAX ((size_t)64 << 20)

/* The daemon to query; borrowed. */
struct client {
    const char *url;
    const char *cacert; /* a PEM file of certificates to trust instead of the system's; NULL: none */
};

bool client_is_url(const char *text);
/* Adds the answer of `path` ("/api/v1/query") to `out`. Pre: client_is_url(c->url). */
bool client_get(const struct client *c, const char *path, const struct parameter *parameters, size_t count,
                int64_t timeout_ms, struct text *out, struct err *e) MUST_CHECK;
