/* encode.h - compresses bodies with gzip, and makes the tags by which a client avoids a second download.
 * Called by respond.c and assets.c.
 *
 * Gzip   : for bodies of at least ENCODE_BYTES_MIN, if the client accepts it.
 * Tags   : a hash of the body. A packed body has the same hash as a weak tag, W/"…", since its bytes differ.
 *          Comparison is weak, as If-None-Match wants it (RFC 9110, 13.1.2).
 * Threads: any.
 */
#pragma once

#include "base/text.h"

#include <stdbool.h>

#define ENCODE_BYTES_MIN 1024
#define ENCODE_TAG_BYTES 19 /* two quotes, 16 digits, a NUL */

/* Does a client with this Accept-Encoding (NULL: none) take gzip? */
bool encode_accepts_gzip(const char *accept);
enum encode_effort {
    ENCODE_QUICK = 3, /* zlib's level for a body that one client gets */
    ENCODE_SMALL = 9  /* zlib's level for a body that is sent many times */
};

/* Adds `body` in gzip to `out`. False: it did not become shorter, and nothing was added. */
bool encode_gzip(struct slice body, enum encode_effort effort, struct text *out);
void encode_tag(struct slice body, char tag[ENCODE_TAG_BYTES]);
/* Is `tag` in this If-None-Match (NULL: none)? */
bool encode_tag_is_known(const char *known, const char *tag);
