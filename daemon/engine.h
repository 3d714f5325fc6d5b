/* engine.h - the writer's side of counting: what it needs to store the deliveries of all feeds of a daemon,
 * whether they come from topics or from files. `run` makes one; the follower of files (daemon/file) and the
 * sessions of topics (daemon/topic) share it.
 *
 * Batches: also of a thread that is no feed, between those of the feeds (engine_lend()).
 * Status : several times a second, and during retries, each part of the daemon adds its figures.
 * Threads: the writer's, except `feeds` and engine_lend().
 */
#pragma once

#include "daemon/count/feed.h"
#include "daemon/count/flush.h"
#include "daemon/count/writer.h"
#include "daemon/service/service.h"
#include "ingest/kafka/kafka.h"

#define ENGINE_PARTS_MAX 2
#define ENGINE_WAIT_MS   100 /* between two questions whether a thread still waits for its batch */

struct engine_options {
    struct service *service;
    const struct config *config; /* reloadable keys of it change within service_tick() */
    struct store *store;
    size_t threads;     /* ingest threads, one feed each */
    bool insist;        /* retry the store even while it stops: run.stop_timeout ends that */
    bool is_of_brokers; /* expiry goes by the timestamps of records, not only by the newest events */
};

/* Adds the figures of a part of the daemon to those of the status. The last part's state is shown. */
typedef void engine_note_fn(void *part, struct status_figures *figures);

/* A batch that another thread lends to the writer. */
struct engine_loan {
    const struct batch *batch;
    bool is_taken, is_done; /* under lanes.lock */
    struct err error;       /* once it is done; code 0: it is durable */
};

struct engine {
    struct engine_options options;
    struct kafka_options kafka_options;
    struct feeds feeds;
    struct writer writer;
    struct flush flush;
    struct dead_letter_queue *dead_letter_queue; /* NULL: dead letters are not kept */
    _Atomic int64_t *late_ms;                    /* by report; set by the writer, read by the shards */
    struct books books;                          /* of all sources since the start */
    int64_t messages, dead_letters;
    _Atomic int64_t broker_ms; /* newest timestamp of records read; 0: none, INT64_MAX: a record had none */
    bool has_failed;           /* the store has failed for good */
    struct engine_loan *loan;  /* NULL, or one that waits; under lanes.lock */
    int64_t budget_bytes;      /* memory budget of shards and queues */
    struct {
        engine_note_fn *note;
        void *part;
    } parts[ENGINE_PARTS_MAX];
    size_t part_count;
};

/* On failure, too, call engine_fini(). */
bool engine_init(struct engine *en, const struct engine_options *options, struct err *e) MUST_CHECK;
void engine_fini(struct engine *en);
void engine_add_part(struct engine *en, engine_note_fn *note, void *part);
void engine_drop_part(struct engine *en, void *part);
bool engine_is_stopping(const struct engine *en);
/* Write the dead letters of a feed's sealed delivery, and apply it. The feed gets it back by
 * engine_release(). */
bool engine_apply(struct engine *en, struct feed *f, struct err *e) MUST_CHECK;
void engine_release(struct engine *en, struct feed *f);
/* Have the writer apply a batch, and wait until it is durable. For one thread other than the writer's. False:
 * the batch cannot be applied; or `wait`, which is called several times a second, returned false before the
 * writer took it (retryable). Nothing of it was applied then. */
bool engine_lend(struct engine *en, const struct batch *batch, bool (*wait)(void *context), void *context,
                 struct err *e) MUST_CHECK;
/* Does a batch wait for engine_turn()? Pre: lanes.lock is held. */
static inline bool engine_has_loan(const struct engine *en)
{
    return en->loan != NULL;
}
/* The writer's work between two deliveries: a lent batch, housekeeping, expiry, heartbeat, status. */
bool engine_turn(struct engine *en, struct err *e) MUST_CHECK;
/* Note the status now. */
void engine_note(struct engine *en);
