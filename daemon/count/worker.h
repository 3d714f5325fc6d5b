/* worker.h - one ingest thread of a pipeline: a lane (lane.h) whose records are the lines of blocks.
 *
 * Threads : everything here is the worker's own, except `sealed`. Changes of `sealed` need the lanes' lock.
 *           From hand-over until its part is applied, `sealed` belongs to the writer.
 */
#pragma once

#include "base/text.h"
#include "daemon/count/lane.h"
#include "daemon/count/samples.h"
#include "ingest/file/reader.h"

/* The lines of a part that were rejected. */
struct outbox {
    uint64_t stripe; /* number of the stripe that the part belongs to */
    struct text rejects;
    struct samples samples;
};

struct worker_options {
    const struct decode *decode; /* initial decoding; borrowed */
    size_t line_max;
    struct shard_limits shard;
    const atomic_bool *abandon; /* as in struct lane */
    bool keeps_rejects;         /* collect rejected lines as text, for a rejects file */
};

struct worker {
    struct lane lane;
    struct worker_options options;
    struct chain *chain;
    struct block block;
    struct outbox open, sealed;
};

void worker_init(struct worker *w, uint32_t number, struct lanes *lanes, const struct report *reports,
                 size_t report_count, const struct worker_options *options);
void worker_fini(struct worker *w);
/* Change the decoding from here on, and the constant fields of its events; both are borrowed. Pre: no events
 * are pending (as between two calls of worker_count()). */
void worker_set_decode(struct worker *w, const struct decode *d, const struct constants *constants);
/* Count the lines of w->block; events later than latest_ms are rejected. */
void worker_count(struct worker *w, int64_t latest_ms);
/* Hand `part`, which the shard sealed, and its rejects to the writer. Pre: as lane_hand_over(). */
void worker_hand_over(struct worker *w, struct part *part);
