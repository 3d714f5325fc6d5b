/* intake.h - one ingest thread of Kafka: its consumer, its partitions, its open batch.
 *
 *   kafka_poll() → partition → chain → shard          ─┐ a delivery: part, ranges, books, dead letters
 *        up to INTAKE_MESSAGES at a time               └──▶ writer (consume.h)
 *
 * Batch   : holds a range of each of the thread's partitions. It is sealed after flush_ms or when the shard
 *           is full, and handed over. The next batch fills meanwhile. While the writer still has the previous
 *           batch, the open batch grows until it is full. Only then does the thread wait. kafka.queue_size
 *           bounds what is fetched ahead, so a slow store costs no memory.
 * Books   : per partition. Messages come in runs of one partition; the books are taken at the end of each
 *           run.
 * Group   : if the store is shared, the thread's consumer is a member of a group (member.h).
 * Threads : intake_run() is the thread's body. The writer shares the members under `lock`. The rest of a
 *           delivery belongs to the thread until it is sealed, then to the writer until it is applied.
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
/* a longer pause between two polls: the process or its machine was stopped */
#define INTAKE_GAP_MS     2000
#define INTAKE_FOREVER_MS (INT64_MAX / 1000) /* a time that never comes */

/* One partition's records in a batch. */
struct intake_range {
    struct partition *partition;
    struct range range;
    struct books books;
    /* Last records before changes of the connection: later records may come from another log. If there are
     * more, the newest replaces the last entry. */
    struct witness edges[INTAKE_EDGES_MAX];
    size_t edge_count;
};

struct delivery {
    struct part *part; /* NULL: no delivery */
    struct intake_range *ranges;
    size_t range_count, range_capacity; /* books are initialised up to the capacity */
    struct letters letters;
    int64_t messages;
    bool is_applied;
};

/* Limits that may change while it runs. */
struct intake_limits {
    _Atomic int64_t flush_ms, future_max_ms, revoke_ms;
};

/* State that all intakes share. */
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
    bool is_group;             /* intakes are members of a group; else partitions are assigned once */
    _Atomic int64_t broker_ms; /* newest timestamp of records read; 0: none, INT64_MAX: a record had none */
    atomic_bool end;           /* set: store what was read, then end */
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
    struct intake_range *current; /* NULL: no run is open */
    const rd_kafka_message_t *current_last;
    rd_kafka_topic_t *current_rkt;   /* topic handle by which the next message of the run is recognised */
    struct decoder *current_decoder; /* decoder of plain lines; NULL: they need the chain */
    int64_t begun_ms, latest_ms, future_max_ms;
    int64_t polled_ms;        /* last poll, by clock_boot_ms(); 0: none yet */
    int64_t gaps;             /* pauses longer than INTAKE_GAP_MS between polls */
    _Atomic int64_t troubles; /* `gaps` plus kafka_troubles(), as of the last poll */
    struct event events[SHARD_EVENTS_MAX];
    size_t event_count;
    bool is_full_of_raw; /* the events added last have filled the shard with raw events */
    rd_kafka_message_t *messages[INTAKE_MESSAGES];

    /* Partitions that the group assigned; the writer finds out where they begin. */
    struct partition **given;
    size_t given_count, given_capacity;
    bool drops; /* the group has lost its partitions to others: drop the open batch */

    /* Under shared->lock, like `kafka` of partitions. */
    struct delivery sealed;
    /* IN_HAND: the writer is answering; until it has, the intake must not withdraw the request. */
    enum { REQUEST_NONE, REQUEST_MADE, REQUEST_IN_HAND, REQUEST_GRANTED } request;
    int64_t request_ms; /* monotonic time before which the writer ignores the request */
    bool has_ended;
    atomic_bool has_failed; /* this intake failed: `error` says why */
    struct err error;
    _Atomic int64_t bytes; /* bytes of its shard */
    atomic_bool is_busy;   /* a poll was full: the queue may be full, too (kafka_wake()) */
};

void intake_init(struct intake *in, struct intake_shared *shared, uint32_t number, struct topic *topics,
                 size_t topic_count, struct beat *beat);
/* Keeps the heartbeat. */
void intake_fini(struct intake *in);
/* Take the intake's next need in hand, for the writer, at a monotonic time. Pre: shared->lock is held. */
enum intake_need { INTAKE_NEEDS_NOTHING, INTAKE_NEEDS_BEGINNING, INTAKE_NEEDS_APPLYING };
enum intake_need intake_take_need(struct intake *in, int64_t now_ms) MUST_CHECK;
/* Wait until everything polled is durable. False: it was not by until_ms (monotonic), or never will be. */
bool intake_drain(struct intake *in, int64_t until_ms) MUST_CHECK;
/* End the session, because of `why`; another begins. */
void intake_fail(struct intake *in, const struct err *why);
struct topic *intake_topic(struct intake *in, const char *name);
/* Count the first `n` of its messages, polled at a monotonic time, and release them. False: the writer has
 * failed. */
bool intake_count(struct intake *in, size_t n, int64_t now_ms) MUST_CHECK;
/* Seal the open batch if it is due. False: the writer has failed. */
bool intake_seal_if_due(struct intake *in, int64_t now_ms) MUST_CHECK;
/* Thread body for pthread_create(): counts until shared->end or a failure, then seals the last delivery. */
void *intake_run(void *intake);
