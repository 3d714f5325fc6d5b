/* http.h - gets what a server has under an address, by libcurl.
 *
 * Connection: direct. The environment's proxy is ignored, and no redirect is followed.
 * TLS       : the certificate must match the host, and be signed by an authority that the system or `cacert`
 *             trusts.
 * Secrets   : password and token are sent to that server only, and appear in no error.
 * Limits    : connect_ms, timeout_ms in total, bytes_max of the answer's body.
 * Threads   : any; one get blocks its thread.
 * Errors    : EX_UNAVAILABLE: no answer, an untrusted one or too large a one; EX_USAGE: no address;
 *             EX_NOINPUT: `cacert` cannot be read; EX_OSFILE: libcurl is missing. The status of an answer is
 *             its caller's to judge.
 */
#pragma once

#include "base/err.h"
#include "base/text.h"

#include <stdatomic.h>
#include <stdint.h>

/* A server, and how to ask it; borrowed. */
struct http_server {
    const char
        *url; /* http:// or https://, a host, optionally a port and a path; slashes at its end are cut */
    const char *user, *password, *token;      /* NULL: none; a token goes before a user */
    const char *cacert;                       /* PEM file of authorities to trust instead of the system's */
    const char *tls_cert, *tls_key;           /* of this client; NULL: none */
    const char *cacert_option, *large_advice; /* words for errors: "--cacert FILE", "; ask for less" */
    int64_t connect_ms, timeout_ms;
    size_t bytes_max;
    const atomic_bool *stop; /* gives up soon after it is set; NULL: never */
};

struct http_answer {
    int status;   /* 0: there is none, or it broke off */
    bool is_page; /* of text/html or of no type, so no API's */
    struct text body;
};

/* Loads libcurl; http_get() does so, too. */
bool http_load(struct err *e) MUST_CHECK;
/* Gets server.url followed by `path`. True: an answer with any status is in *answer, a zeroed one or an old one
 * whose body is replaced. Its owner frees the body. */
bool http_get(const struct http_server *server, const char *path, struct http_answer *answer,
              struct err *e) MUST_CHECK;
