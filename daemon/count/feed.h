/* feed.h - an ingest thread whose batches hold ranges of several sources: a lane, its open delivery, and the
 * one that the writer has. The intakes of Kafka (daemon/topic) and the follower of files (daemon/file) are
 * feeds.
 *
 * Batch  : is sealed after flush_ms, or when the shard or the dead letters are full, and handed over. The
 *          next one fills meanwhile. While the writer still has the previous one, the open batch grows until
 *          it is full, or grow_max times as old as flush_ms. Only then does the thread wait.
 * Books  : one for each range. The feed takes them from the shard whenever the range changes
 *          (shard_take_books()).
 * Threads: as lane.h. `sealed` belongs to the writer as the sealed part does.
 */
#pragma once

#include "aggregate/batch.h"
#include "daemon/count/dead_letters.h"
#include "daemon/count/lane.h"
#include "stats/rejects.h"

#define FEED_SAMPLES_BYTES ((size_t)1 << 20)

/* A range's source, and its records since the last one that was parsed, as far as runs and blocks show. */
struct range_rejects {
    const struct config_source *source; /* NULL: none of the configuration */
    int64_t records;                    /* without tombstones */
    size_t at, len;                     /* place of one of them in `samples`; len 0: there is none */
};

/* Ranges, their books, and the dead letters of a part. */
struct delivery {
    struct range *ranges;
    struct books *books;           /* one per range; initialised up to the capacity */
    struct range_rejects *rejects; /* one per range */
    size_t rejects_capacity;
    struct text samples; /* rejected records of ranges, at most FEED_SAMPLES_BYTES */
    size_t range_count, range_capacity;
    struct dead_letters dead_letters;
    int64_t messages;
};

/* State that the feeds of one writer share. */
struct feeds {
    struct lanes lanes;
    const struct report *reports;
    size_t report_count;
    struct shard_limits shard;
    struct rejects *rejects;
    const struct derive *derive;
    size_t line_max;
    bool has_dead_letters;
    _Atomic int64_t flush_ms, future_max_ms; /* limits that may change while it runs */
};

struct feed {
    struct lane lane;
    struct feeds *shared;
    struct delivery open, sealed;
    /* The set of lists and databases that was open when the batch began; held. All chains of the batch make
     * fields by these, so that each range has the builds of one set. */
    struct derive_data *data;
    /* Lines have no time of their own by which those of an old batch could be judged, and a crash loses what
     * was read from a pipe. 0: a batch may grow for any time. */
    int64_t grow_max;
    size_t range;                  /* range of the open batch that is counted into */
    int64_t begun_ms;              /* monotonic time of the open batch's first records */
    void (*before_seal)(void *of); /* NULL, or called before the open batch is sealed, with lane.context */
    _Atomic int64_t bytes;         /* bytes of the shard, for other threads */
    uint64_t noted_rejects;        /* reasons that the open batch has given a sample of; a bit for each */
};

/* `abandon` as in struct lane; `reject` and `before_seal` are called with `context`. */
void feed_init(struct feed *f, struct feeds *shared, uint32_t number, const atomic_bool *abandon,
               struct heartbeat *heartbeat, lane_reject_fn *reject, void (*before_seal)(void *),
               void *context);
void feed_fini(struct feed *f);
/* Begin a batch at a monotonic time. Pre: the open one is empty. */
void feed_begin(struct feed *f, int64_t now_ms);
/* Add a range of `source`, or of none (NULL), to the open batch, with empty books. Returns its index. */
size_t feed_add_range(struct feed *f, const struct range *r, const struct config_source *source);
/* Have the chain count into this range of the open batch: by the batch's lists and databases, whose builds
 * the range gets. Pre: no event of the chain is waiting to be counted. */
void feed_count_by(struct feed *f, struct chain *chain, size_t range);
/* Take the books of what was counted since feed_count_by() or the last call. */
void feed_take_books(struct feed *f);
/* Note a sample of a reject (rejects_note()), unless the open batch has given one of its reason; and keep
 * one of its range, unless that has one. */
void feed_note_reject(struct feed *f, const struct decode *decode, const struct record *r, struct slice bytes,
                      struct reject why);
/* Warn if `decode` reads the first line of `bytes`, but most likely with its fields moved. A feed looks so at
 * the first line of each file and partition that it begins to read. `label`: where the line is from. */
void feed_look_at_first(const struct decode *decode, struct slice bytes, const char *label);
/* Seal the open batch if it is due. False: the writer has failed. */
bool feed_seal_if_due(struct feed *f, int64_t now_ms) MUST_CHECK;
/* Seal the open batch, and wait until it is durable. False: it was not by until_ms (monotonic), or never will
 * be. */
bool feed_drain(struct feed *f, int64_t until_ms) MUST_CHECK;
/* Must the batch be sealed before more is added? */
bool feed_is_full(const struct feed *f);
/* The sealed delivery as a batch, for the writer. *part must live as long as the batch. */
struct batch feed_batch(struct feed *f, struct part **part);
