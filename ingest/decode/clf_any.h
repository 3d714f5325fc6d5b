/* clf_any.h - reads any line of the Common Log Format family, byte by byte where it must; and the state of a
 * decoder, which the other reader (clf_usual.h) has, too. Callers want clf.h.
 */
#pragma once

#include "ingest/decode/clf_time.h"
#include "ingest/decode/decoder.h"

enum clf_format { CLF_AUTO, CLF_COMMON, CLF_COMBINED, CLF_VHOST_COMBINED, CLF_FORMAT_COUNT };

struct clf {
    struct decoder decoder; /* first: a struct clf is a struct decoder */
    enum clf_format format;
    struct clf_minute minutes[2]; /* the last two that were new: where the minute turns, lines of both mix */
    uint64_t unusual_count;       /* lines that clf_usual.h left to clf_decode_any() */
};

/* Reads any line of the decoder's format. */
bool clf_decode_any(struct decoder *d, struct slice line, struct event *ev, struct reject *why);
