/* assets.h - the page and what it needs, embedded when the program is built: no file is read at run time. */
#pragma once

#include "base/slice.h"

#define ASSETS_ETAG_BYTES 19 /* two quotes, 16 digits, a NUL */

struct asset {
    const char *path; /* in URLs */
    const char *type;
    struct slice bytes;
    char etag[ASSETS_ETAG_BYTES]; /* a hash of the bytes */
};

/* NULL where there is none. */
const struct asset *assets_find(const char *path);
/* Before the first assets_find(), once. */
void assets_init(void);
