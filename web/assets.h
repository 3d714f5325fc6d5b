/* assets.h - the page and its scripts, styles and images. They are embedded when the program is built, so no
 * file is read at run time. Called by server.c; cannot fail. */
#pragma once

#include "web/encode.h"

struct asset {
    const char *path; /* in URLs */
    const char *type; /* Content-Type */
    struct slice bytes;
    struct slice packed;         /* in gzip; NULL: the asset is small, or gzip does not make it shorter */
    char etag[ENCODE_TAG_BYTES]; /* a hash of the bytes */
};

/* NULL: no such path. */
const struct asset *assets_find(const char *path);
/* Call from one thread before the first assets_find(). Further calls do nothing. */
void assets_init(void);
