/* reply.h - a request's parameters and its reply, before respond.c makes an HTTP response of it. */
#pragma once

#include "base/deadline.h"
#include "base/quota.h"
#include "base/text.h"

#include <stdbool.h>

struct parameter {
    struct slice name, value; /* decoded, from the URL or a form; any bytes */
};

struct reply {
    struct deadline *deadline; /* until when it is of use; NULL: for ever */
    struct share *memory;      /* of the question; NULL: it is no question */
    unsigned code;             /* HTTP status */
    const char *type;          /* Content-Type */
    const char *coding;        /* Content-Encoding that `body` has already; NULL: none */
    struct text body;          /* owned */
    size_t sent_bytes;         /* bytes that are sent, set by respond.c */
    const struct asset *asset; /* asset to send instead of `body` (assets.h); NULL: none */
    struct stream *stream;     /* stream to send instead of `body` (streams.h), owned; NULL: none */
    const char *allow;         /* value of the header Allow; NULL: no such header */
    bool is_closed; /* the answer covers a period that has ended: it is likely the same next time */
    bool retry;     /* the same request may succeed in a second */
};
