/* worker.h - one ingest thread of a pipeline: it takes blocks of lines, decodes them, and adds the events to
 * its shard.
 *
 * Threads : everything here is the worker's own, except `sealed`. Changes of `sealed` need the pipeline's
 *           lock. From hand-over until it is applied, `sealed` belongs to the writer.
 */
#pragma once

#include "aggregate/shard.h"
#include "base/text.h"
#include "daemon/count/samples.h"
#include "ingest/decode/chain.h"
#include "ingest/file/reader.h"
#include "stats/beat.h"

/* A worker's part of one stripe, for the writer. */
struct outbox {
    struct part *part; /* NULL: no part */
    uint64_t stripe;
    bool applied; /* the writer is done with it */
    struct text rejects;
    struct samples samples;
};

struct worker_options {
    const struct decode *decode; /* initial decoding; borrowed */
    size_t line_max;
    struct shard_limits shard;
    bool keeps_rejects; /* collect rejected lines as text, for a rejects file */
};

struct worker {
    struct worker_options options;
    struct chain *chain;
    struct decoder *decoder; /* decoder of the chain if records are plain lines; else NULL */
    struct shard *shard;
    struct block block;
    struct event events[SHARD_EVENTS_MAX]; /* decoded, not yet added */
    size_t event_count;
    struct outbox open, sealed; /* `open` collects rejects; its part is in the shard */
    uint64_t stripe;            /* number of the stripe that the open part belongs to */
    struct beat *beat;          /* NULL: no heartbeat */
    _Atomic int64_t bytes;      /* bytes of the shard, for other threads */
};

void worker_init(struct worker *w, uint32_t number, const struct report *reports, size_t report_count,
                 const struct worker_options *options);
void worker_fini(struct worker *w);
/* Change the decoding from here on. Pre: no events are pending (as between two calls of worker_count()). */
void worker_set_decode(struct worker *w, const struct decode *d);
/* Count the lines of w->block; events later than latest_ms are rejected. */
void worker_count(struct worker *w, int64_t latest_ms);
/* Move `part`, which the shard sealed, and its rejects to w->sealed. Pre: the pipeline's lock is held, and
 * the previous sealed part was taken back. */
void worker_hand_over(struct worker *w, struct part *part);
