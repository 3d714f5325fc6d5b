/* worker.h - one ingest thread: takes blocks of lines, decodes them, adds them to its shard.
 *
 * Threads : everything here is the worker's own, but `sealed`: the pipeline's lock is held to change it, and
 *           from hand-over until it is applied it is the writer's.
 */
#pragma once

#include "aggregate/shard.h"
#include "base/text.h"
#include "daemon/count/samples.h"
#include "ingest/decode/chain.h"
#include "ingest/file/reader.h"
#include "stats/beat.h"

/* What a worker has for the writer: the part of one stripe. */
struct outbox {
    struct part *part; /* NULL: nothing */
    uint64_t stripe;
    bool applied; /* the writer is done with it */
    struct text rejects;
    struct samples samples;
};

struct worker_options {
    const struct decode *decode; /* at first; borrowed */
    size_t line_max;
    struct shard_limits shard;
    bool keeps_rejects; /* as text, for a rejects file */
};

struct worker {
    struct worker_options options;
    struct chain *chain;
    struct decoder *decoder; /* the chain's, where records are plain lines; else NULL */
    struct shard *shard;
    struct block block;
    struct event events[SHARD_EVENTS_MAX]; /* decoded, not yet added */
    size_t event_count;
    struct outbox open, sealed; /* `open` collects rejects, its part is in the shard */
    uint64_t stripe;            /* of what the open part holds */
    struct beat *beat;          /* NULL: nobody watches */
    _Atomic int64_t bytes;      /* of the shard, for others */
};

void worker_init(struct worker *w, uint32_t number, const struct report *reports, size_t report_count,
                 const struct worker_options *options);
void worker_fini(struct worker *w);
/* Decode otherwise from here on. Pre: no events are pending (as between two calls of worker_count()). */
void worker_set_decode(struct worker *w, const struct decode *d);
/* Count the lines of w->block; events later than latest_ms are rejected. */
void worker_count(struct worker *w, int64_t latest_ms);
/* Move `part`, sealed by the shard, and what belongs to it to w->sealed. Pre: the pipeline's lock is held,
 * and what was sealed before was taken back. */
void worker_hand_over(struct worker *w, struct part *part);
