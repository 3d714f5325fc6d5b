/* clf_any.h - decodes any line of the Common Log Format family. It also declares the decoder's state, which
 * the fast path (clf_fast.h) shares. Callers include clf.h.
 */
#pragma once

#include "ingest/decode/clf_time.h"
#include "ingest/decode/decoder.h"

enum clf_format { CLF_AUTO, CLF_COMMON, CLF_COMBINED, CLF_VHOST_COMBINED, CLF_FORMAT_COUNT };

struct clf {
    struct decoder decoder; /* first: a struct clf is a struct decoder */
    enum clf_format format;
    struct clf_minute minutes[2]; /* the last two new minutes: when a minute turns, lines of both mix */
    uint64_t slow_count;          /* lines that the fast path left to clf_decode_any() */
};

/* Decodes any line of the decoder's format. */
bool clf_decode_any(struct decoder *d, struct slice line, struct event *ev, struct reject *why);
