/* encode.h - bodies as clients want them: packed, or not sent again.
 *
 * Gzip   : of bodies from ENCODE_BYTES_MIN, for who says that he takes it.
 * Tags   : a hash of the body. A packed body has the same one as a weak tag, W/"…", since its bytes differ;
 *          comparing is weak, as If-None-Match is (RFC 9110, 13.1.2).
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
    ENCODE_QUICK = 3, /* zlib's levels: for what is made for one client, … */
    ENCODE_SMALL = 9  /* … and for what is sent again and again */
};

/* Adds `body` in gzip to `out`. False: it did not become shorter, and nothing was added. */
bool encode_gzip(struct slice body, enum encode_effort effort, struct text *out);
void encode_tag(struct slice body, char tag[ENCODE_TAG_BYTES]);
/* Is `tag` in this If-None-Match (NULL: none)? */
bool encode_tag_is_known(const char *known, const char *tag);
