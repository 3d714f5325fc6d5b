/* pipeline.h - one source from bytes to the store: readers, ingest threads, stripes, one writer.
 *
 *   reader ──blocks──▶ worker 0: decode → shard ─┐ parts
 *   (lock) ──blocks──▶ worker 1: decode → shard ─┴──▶ writer (the caller's thread): store_apply()
 *
 * Stripe : a stretch [from, to) of the source whose events become one batch. It ends after stripe_bytes
 *          or stripe_ms, or when a shard is full; where there is a flush rule, it may take up to four times
 *          as long while the writer is busy, since it would but wait. Every worker seals its part when it
 *          meets a block of the next stripe; the writer applies stripe k when all workers are past it. So
 *          the batch's range is exact although blocks of one stripe are spread over threads.
 * Memory : a worker holds one open and one sealed part; it waits when the writer has not given the sealed
 *          one back. That is the whole queue: a slow store stops the reading.
 * Errors : bad lines are rejects. What fails in reading ends the run after what was read before is stored.
 *          What fails in storing is retried with backoff (`retry`) or ends the run; nothing is lost, since
 *          the position moves with the counts. But its threads then still hold parts of that source, so
 *          the pipeline has failed: every further run ends at once with the same error.
 */
#pragma once

#include "aggregate/report.h"
#include "aggregate/shard.h"
#include "base/clock.h"
#include "daemon/count/flush.h"
#include "daemon/count/rejects_file.h"
#include "daemon/count/samples.h"
#include "ingest/decode/decode.h"
#include "ingest/file/reader.h"
#include "stats/beat.h"
#include "stats/status.h"
#include "store/store.h"

#include <stdatomic.h>

#define PIPELINE_THREADS_MAX 64

struct pipeline_progress {
    int64_t offset;     /* read so far */
    int64_t raw_offset; /* the same in bytes of the file, which may be compressed */
    int64_t stored;     /* durable so far */
    struct books books;
    struct samples samples;
    uint64_t batches;
    uint64_t cells;
};

/* What may change between two blocks. */
struct pipeline_limits {
    int64_t stripe_ms;
    int64_t future_max_ms;
};

struct pipeline_options {
    size_t threads;
    const struct decode *decode;   /* borrowed */
    const struct raw *raw;         /* of the source, or NULL; borrowed */
    size_t line_max;               /* longer lines are rejected */
    struct pipeline_limits limits; /* at first */
    int64_t stripe_bytes;
    struct shard_limits shard;
    bool follow; /* at the end of the input wait for more, until another file has its place */
    bool tidy;   /* fold in the store between batches; what need not be kept is let go in any case */
    bool retry;  /* an error of the store that may pass is tried again, for ever */
    const struct rejects_file *rejects; /* NULL, or where rejected lines are on disk before their batch */
    const struct clock *clock;
    const atomic_bool *stop; /* set by a signal: finish what was read, then end */
    struct status *status;   /* NULL, or who is told of batches and of the store's failures */
    struct flush *flush;     /* NULL, or the rule that is told of batches; it outlives the pipeline */
    struct beats *beats;     /* NULL, or the heartbeats of writer and workers; it outlives the pipeline */
    /* Called by the writer about every 200 ms, also while it tries the store again, and at the end. */
    void (*tick)(void *context, const struct pipeline_progress *progress);
    void *context;
};

/* Shards outlive one source, so that a series known from one file costs nothing in the next. */
struct pipeline;

struct pipeline *pipeline_new(struct store *store, const struct report *reports, size_t report_count,
                              const struct pipeline_options *options);
void pipeline_free(struct pipeline *p);
/* Decode what comes next otherwise, and keep of its events what `raw` says; between two runs. Borrowed. */
void pipeline_set_decode(struct pipeline *p, const struct decode *d, const struct raw *raw);

/* Count `reader` from where it stands. `range` names the source (source, partition, label); its from, to
 * and tail are set here. *progress is what this run did; pipeline_free() frees its books. */
bool pipeline_run(struct pipeline *p, struct reader *reader, const struct range *range,
                  struct err *e) MUST_CHECK;
/* Keep house in the store, between two runs as it is done within them. */
bool pipeline_tidy(struct pipeline *p, struct err *e) MUST_CHECK;
/* From the next block on. Any thread. */
void pipeline_set_limits(struct pipeline *p, const struct pipeline_limits *limits);
/* What the shards hold. Any thread. */
int64_t pipeline_bytes(const struct pipeline *p);
const struct pipeline_progress *pipeline_progress(const struct pipeline *p);
/* Did a run end because of the store? */
bool pipeline_has_failed(const struct pipeline *p);
