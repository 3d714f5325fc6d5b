/* tls.h - the certificate and the key that a server shows, as PEM.
 *
 * Limits : files of at most TLS_FILE_BYTES_MAX.
 * Errors : EX_CONFIG: only one of them is named, one cannot be read, or it is no PEM. Whether they belong
 *          together GnuTLS says, when the server starts.
 */
#pragma once

#include "base/err.h"
#include "base/text.h"

#define TLS_FILE_BYTES_MAX ((size_t)256 << 10)

struct tls {
    struct text cert, key; /* empty: plain HTTP */
};

/* Paths, or both NULL. */
bool tls_load(struct tls *t, const char *cert, const char *key, struct err *e) MUST_CHECK;
void tls_fini(struct tls *t);
