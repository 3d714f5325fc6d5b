/* assets.h - the page and what it needs, embedded when the program is built: no file is read at run time. */
#pragma once

#include "web/encode.h"

struct asset {
    const char *path; /* in URLs */
    const char *type;
    struct slice bytes;
    struct slice packed;         /* in gzip; NULL where that is not shorter, or hardly */
    char etag[ENCODE_TAG_BYTES]; /* a hash of the bytes */
};

/* NULL where there is none. */
const struct asset *assets_find(const char *path);
/* Before the first assets_find(), by one thread; nothing is done again. */
void assets_init(void);
