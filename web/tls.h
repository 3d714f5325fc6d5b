/* tls.h - loads the server's certificate and key as PEM. Called by server.c.
 *
 * Limits : files of at most TLS_FILE_BYTES_MAX.
 * Errors : EX_CONFIG: only one of them is named, one cannot be read, or one is not PEM. When the server
 *          starts, GnuTLS checks that they belong together.
 */
#pragma once

#include "base/err.h"
#include "base/text.h"

/* TLS 1.2 and 1.3, with authenticated encryption and forward secrecy only (GnuTLS' priority string). */
#define TLS_PRIORITIES                                                                                    \
    "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2:-CIPHER-ALL:+AES-256-GCM:+CHACHA20-POLY1305:+AES-128-GCM" \
    ":-MAC-ALL:+AEAD:-RSA"

#define TLS_FILE_BYTES_MAX ((size_t)256 << 10)

struct tls {
    struct text cert, key; /* empty: plain HTTP */
};

/* `cert`, `key`: paths, or both NULL. */
bool tls_load(struct tls *t, const char *cert, const char *key, struct err *e) MUST_CHECK;
void tls_fini(struct tls *t);
