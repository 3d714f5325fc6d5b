/* intake.h - one ingest thread of Kafka: its consumer, its partitions, its open batch.
 *
 *   kafka_poll() → partition → chain → shard          ─┐ a delivery: part, ranges, books, letters
 *        up to INTAKE_MESSAGES at a time               └──▶ writer (consume.h)
 *
 * Batch   : a part of every partition the thread has. It is sealed after flush_ms or when the shard is full,
 *           and handed over; the next fills meanwhile. Where the writer still has the one before, the open
 *           batch just grows until it is full; only then does the thread wait, and what is fetched ahead is
 *           bounded by kafka.queue_size: a slow store costs no memory.
 * Books   : per partition. Messages come in runs of one partition, so they are taken at each change.
 * Group   : where the store is shared, the thread's consumer is a member of a group (member.h).
 * Threads : intake_run() is the thread's body. What is under `lock` is shared with the writer; the rest of
 *           a delivery belongs to the thread until it is sealed, then to the writer until it is applied.
 */
#pragma once

#include "aggregate/shard.h"
#include "daemon/count/letters.h"
#include "daemon/topic/topic.h"
#include "ingest/decode/chain.h"
#include "stats/beat.h"

#include <pthread.h>
#include <stdatomic.h>

#define INTAKE_MESSAGES   1024
#define INTAKE_POLL_MS    50
#define INTAKE_EDGES_MAX  4
#define INTAKE_GAP_MS     2000               /* between two polls: it was stopped, or its machine was */
#define INTAKE_FOREVER_MS (INT64_MAX / 1000) /* a time that never comes */

/* What of one partition is in a batch. */
struct intake_range {
    struct partition *partition;
    struct range range;
    struct books books;
    /* The last records before something happened to a connection: what came then may be of another log. Where
     * there are more, the last one counts. */
    struct witness edges[INTAKE_EDGES_MAX];
    size_t edge_count;
};

struct delivery {
    struct part *part; /* NULL: nothing */
    struct intake_range *ranges;
    size_t range_count, range_capacity; /* books of all up to the capacity are initialised */
    struct letters letters;
    int64_t messages;
    bool is_applied;
};

/* What may change while it runs. */
struct intake_limits {
    _Atomic int64_t flush_ms, future_max_ms, revoke_ms;
};

/* What all intakes have in common. */
struct intake_shared {
    pthread_mutex_t lock;
    pthread_cond_t sealed, applied;
    struct intake_limits limits;
    const struct clock *clock;
    const struct report *reports;
    size_t report_count;
    struct shard_limits shard;
    size_t line_max;
    bool keeps_letters;
    bool is_group; /* its members are given partitions and lose them; else they are assigned once */
    _Atomic int64_t broker_ms; /* the newest timestamp of records read; 0: none, INT64_MAX: some had none */
    atomic_bool end;           /* finish what was read, then end */
    atomic_bool abandon;       /* the writer has failed: nothing more will be applied */
};

struct intake {
    struct intake_shared *shared;
    uint32_t number;
    struct kafka *kafka;
    struct topic *topics;
    size_t topic_count;
    struct chain **chains; /* by topic */
    struct shard *shard;
    struct beat *beat;
    pthread_t thread;

    /* The open batch. */
    struct delivery open;
    struct intake_range *current; /* NULL: none yet */
    const rd_kafka_message_t *current_last;
    rd_kafka_topic_t *current_rkt;   /* by which the next message of the run is recognised */
    struct decoder *current_decoder; /* of plain lines; NULL: they need the chain */
    int64_t begun_ms, latest_ms, future_max_ms;
    int64_t polled_ms;        /* by the clock that goes on while the machine sleeps; 0: not yet */
    int64_t gaps;             /* longer than INTAKE_GAP_MS */
    _Atomic int64_t troubles; /* the same, and kafka_troubles(), as of the last poll */
    struct event events[SHARD_EVENTS_MAX];
    size_t event_count;
    bool is_full_of_raw; /* by the events that were added last */
    rd_kafka_message_t *messages[INTAKE_MESSAGES];

    /* What the group gave, for the writer to find out where it begins. */
    struct partition **given;
    size_t given_count, given_capacity;
    bool drops; /* what is open is others' by now */

    /* Under shared->lock, as are partitions' `kafka`. */
    struct delivery sealed;
    /* IN_HAND: the writer answers it, and until then nobody takes it back. */
    enum { REQUEST_NONE, REQUEST_MADE, REQUEST_IN_HAND, REQUEST_GRANTED } request;
    int64_t request_ms; /* not to be looked at before */
    bool has_ended;
    atomic_bool has_failed; /* of itself: `error` says why */
    struct err error;
    _Atomic int64_t bytes; /* of its shard */
    atomic_bool is_busy;   /* there was more than one poll takes: the queue may be full (kafka_wake()) */
};

void intake_init(struct intake *in, struct intake_shared *shared, uint32_t number, struct topic *topics,
                 size_t topic_count, struct beat *beat);
/* Its beat stays. */
void intake_fini(struct intake *in);
/* The writer takes the next need of the intake in hand, at a monotonic time. Pre: shared->lock. */
enum intake_need { INTAKE_NEEDS_NOTHING, INTAKE_NEEDS_BEGINNING, INTAKE_NEEDS_APPLYING };
enum intake_need intake_take_need(struct intake *in, int64_t now_ms) MUST_CHECK;
/* All that was polled becomes durable; false: not until then (monotonic), or never. */
bool intake_drain(struct intake *in, int64_t until_ms) MUST_CHECK;
/* The session is to end, and another to begin: `why` says so. */
void intake_fail(struct intake *in, const struct err *why);
struct topic *intake_topic(struct intake *in, const char *name);
/* Count the first `n` of its messages, which were polled at a monotonic time, and give them back. False: the
 * writer has failed. */
bool intake_count(struct intake *in, size_t n, int64_t now_ms) MUST_CHECK;
/* Seal what is due. False: the writer has failed. */
bool intake_seal_if_due(struct intake *in, int64_t now_ms) MUST_CHECK;
/* pthread_create()'s: counts until shared->end, or until it fails; its last delivery is sealed then. */
void *intake_run(void *intake);
