/* decoder.h - the interface of line formats: a line in, an event or a reject out. chain.c and workers call
 * it.
 *
 * Pre     : `line` has no line feed at its end (a carriage return may be there).
 * Returns : true and *ev, whose slices point into `line`; or false and *why. Nothing else happens:
 *           a decoder neither logs nor allocates nor reads outside of `line`.
 * Threads : a decoder carries caches, so each ingest thread makes its own.
 */
#pragma once

#include "base/slice.h"
#include "ingest/event.h"
#include "ingest/reject.h"

struct decoder {
    bool (*decode)(struct decoder *d, struct slice line, struct event *ev, struct reject *why);
};

static inline bool decoder_decode(struct decoder *d, struct slice line, struct event *ev, struct reject *why)
{
    return d->decode(d, line, ev, why);
}
