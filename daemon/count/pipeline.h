/* pipeline.h - counts a file or a stream to its end by several threads, from its bytes to the store: reader,
 * ingest threads, stripes, one writer. `import` calls it.
 *
 *   reader ──blocks──▶ worker 0: decode → shard ─┐ parts
 *   (lock) ──blocks──▶ worker 1: decode → shard ─┴──▶ writer (the caller's thread): store_apply()
 *
 * Stripe : a range [from, to) of the source whose events become one batch. It ends after stripe_bytes, or
 *          when a shard is full, or after stripe_ms if no stripe before it is still being written. Every
 *          worker seals its part when it meets a block of the next stripe. The writer applies stripe k when
 *          all workers are past it. So the batch's range is exact although threads share the blocks of a
 *          stripe.
 * Memory : a worker holds one open and one sealed part. It waits until the writer has given the sealed part
 *          back. There is no other queue: a slow store stops the reading.
 * Errors : bad lines are rejects. A read error ends the run after everything read before it is stored. A
 *          store error is retried with backoff (`retry`) or ends the run. No count is lost, since the
 *          position moves with the counts. After a store error the workers still hold parts of that source:
 *          every further run fails at once with the same error.
 */
#pragma once

#include "aggregate/report.h"
#include "aggregate/shard.h"
#include "base/clock.h"
#include "daemon/count/rejects_file.h"
#include "daemon/count/samples.h"
#include "ingest/decode/constants.h"
#include "ingest/decode/decode.h"
#include "ingest/file/reader.h"
#include "store/backfill.h"
#include "store/store.h"

#include <stdatomic.h>

#define PIPELINE_THREADS_MAX 64

struct pipeline_progress {
    int64_t offset;     /* source offset read so far */
    int64_t raw_offset; /* bytes read of the file, before decompression */
    int64_t stored;     /* source offset up to which counts are durable */
    struct books books;
    struct samples samples;
    uint64_t batches;
    uint64_t cells;
};

struct pipeline_options {
    size_t threads;
    const struct decode *decode; /* borrowed */
    const struct raw *raw;       /* raw events of the source; NULL: none; borrowed */
    size_t line_max;             /* longer lines are rejected */
    int64_t stripe_ms, stripe_bytes;
    int64_t future_max_ms;
    struct shard_limits shard;
    /* Count ranges before the store's positions, for its report `report` (store/backfill.h). Events after a
     * range's latest_ms were in the future. */
    bool backfills;
    size_t report;
    struct backfill_times only; /* count only the events of these times */
    /* NULL, or applies the batches with `context`, each until it is durable: the store of pipeline_new() is
     * NULL then, shard.late_ms is the caller's, and shards have the numbers from first_shard on. */
    bool (*apply)(void *context, const struct batch *batch, struct err *e);
    uint32_t first_shard;
    bool housekeep; /* run the store's housekeeping between batches; expiry runs in any case */
    bool retry;     /* retry retryable store errors for ever */
    /* NULL, or the file that rejected lines are written to before their batch */
    struct rejects_file *rejects;
    const struct clock *clock;
    const atomic_bool *stop; /* set by a signal: store what was read, then end */
    /* Called by the writer about every 200 ms, also during retries, and at the end. */
    void (*tick)(void *context, const struct pipeline_progress *progress);
    void *context;
};

/* Shards outlive one source: a series known from one file costs nothing in the next. */
struct pipeline;

struct pipeline *pipeline_new(struct store *store, const struct report *reports, size_t report_count,
                              const struct pipeline_options *options);
void pipeline_free(struct pipeline *p);
/* Change decoding, constant fields (NULL: none) and raw events between two runs. Borrowed by the next run. */
void pipeline_set_decode(struct pipeline *p, const struct decode *d, const struct constants *constants,
                         const struct raw *raw);

/* Leave events out that the filter does not want. Borrowed by the next runs. */
void pipeline_set_filter(struct pipeline *p, const struct backfill_filter *filter);

/* Count `reader` from its current offset. `range` names the source (source, partition, label); its from, to
 * and tail are set here. pipeline_progress() then says what this run did; pipeline_free() frees it. */
bool pipeline_run(struct pipeline *p, struct reader *reader, const struct range *range,
                  struct err *e) MUST_CHECK;
const struct pipeline_progress *pipeline_progress(const struct pipeline *p);
/* Did a run end because of a store error? */
bool pipeline_has_failed(const struct pipeline *p);
