/* guard.h - decides whether a request may proceed: by http.token, and by the site that it comes from. Called
 * by server.c.
 *
 *   Authorization: Bearer TOKEN           from programs: curl, Prometheus, Grafana
 *   Authorization: Basic base64(X:TOKEN)  from browsers, X being any user name: they ask for it on a 401, and
 *                                         then send it with all requests, streams too
 *
 * Open    : /healthz and /readyz need no token, since they reveal no counts.
 * Sites   : requests that a page of another site makes a browser send are refused, since a browser adds a
 *           Basic password by itself. Sec-Fetch-Site tells them, or an Origin that differs from the Host.
 * Compare : in constant time.
 */
#pragma once

#include <stdbool.h>

/* Both are sent with a 401. */
#define GUARD_BEARER "Bearer realm=\"tallyd\""
#define GUARD_BASIC  "Basic realm=\"tallyd\", charset=\"UTF-8\""

bool guard_is_open(const char *path);
/* Each header may be NULL. */
bool guard_is_foreign(const char *sec_fetch_site, const char *origin, const char *host);
/* Is there a token, and does the header have it as a Bearer? */
bool guard_has_bearer(const char *authorization, const char *token);
/* `authorization`: the header, or NULL. */
bool guard_allows(const char *authorization, const char *token);
