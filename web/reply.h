/* reply.h - what a request is answered with, before HTTP comes into it. */
#pragma once

#include "base/text.h"

#include <stdbool.h>

struct parameter {
    struct slice name, value; /* of the URL, decoded; any bytes */
};

struct reply {
    unsigned code;
    const char *type;          /* Content-Type */
    struct text body;          /* owned */
    const struct asset *asset; /* instead of a body (assets.h) */
    struct stream *stream;     /* instead of a body: one that goes on (streams.h), owned */
    const char *allow;         /* the methods that there are here; NULL: not told */
    bool is_closed;            /* about a period that has ended: likely the same next time */
    bool retry;                /* the same request may succeed in a second */
};
