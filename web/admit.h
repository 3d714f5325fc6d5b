/* admit.h - admits a request, or refuses it by its headers alone. Called by server.c.
 *
 * Syntax : 400 for a request that a proxy and this server could parse differently (request smuggling): two
 *          Content-Lengths, Content-Length with Transfer-Encoding, another coding than chunked, two Hosts or
 *          none, a NUL anywhere, names that are no tokens, lines that end without CR.
 * Host   : 403 if Host names another host: DNS rebinding (host.h).
 * Sites  : 403 for a request that a page of another site makes (CSRF), unless it has the token as a Bearer. A
 *          browser never adds a Bearer token by itself. Assets and health endpoints skip this check.
 * Token  : 401 (guard.h).
 * Method : 405, 413, 415: GET and HEAD without a body; POST of a form to Prometheus' API. A path that
 *          takes another type of body accepts only POST.
 */
#pragma once

#include "web/reply.h"

#include <microhttpd.h>

struct admit {
    const char *listen; /* requests may name its host */
    const char *token;  /* NULL: none is needed */
};

/* A request, as libmicrohttpd has read it. */
struct admit_request {
    struct MHD_Connection *con;
    const char *path, *method, *version;
    const char *uri_end; /* end of the URI as it came, in libmicrohttpd's buffer */
    bool has_nul;        /* in the path, as %00 */
    bool is_prom;        /* whether it is for Prometheus' API, which takes forms */
    const char *takes;   /* Content-Type of the body that this path must have; NULL: none */
    bool is_free;        /* an asset or a health endpoint: other sites may ask for it */
};

/* True: `rp` is the refusal. The caller ends the connection then, since a body may follow. */
bool admit_refuse(const struct admit *admit, const struct admit_request *rq, struct reply *rp);
