/* intake.h - one ingest thread of Kafka: a feed (feed.h) with its consumer and its partitions.
 *
 *   kafka_poll() → partition → chain → shard          ─┐ a delivery: part, ranges, books, dead letters
 *        up to INTAKE_MESSAGES at a time               └──▶ writer (consume.h)
 *
 * Memory  : kafka.queue_size bounds what is fetched ahead, so a slow store costs no memory.
 * Books   : per partition. Messages come in runs of one partition; the books are taken at the end of each
 *           run.
 * Group   : if the store is shared, the thread's consumer is a member of a group (member.h).
 * Threads : intake_run() is the thread's body. The writer shares the members under lanes.lock. The rest of a
 *           delivery belongs to the thread until it is sealed, then to the writer until it is applied.
 */
#pragma once

#include "daemon/count/feed.h"
#include "daemon/topic/held.h"
#include "daemon/topic/topic.h"

#define INTAKE_MESSAGES  1024
#define INTAKE_POLL_MS   50
#define INTAKE_EDGES_MAX 4
/* a longer pause between two polls: the process or its machine was stopped */
#define INTAKE_GAP_MS    2000

/* One partition in a batch. */
struct intake_range {
    struct partition *partition;
    /* Last records before changes of the connection: later records may come from another log. If there are
     * more, the newest replaces the last entry. */
    struct witness edges[INTAKE_EDGES_MAX];
    size_t edge_count;
    int64_t empty; /* offsets that had no record */
};

/* The partitions of a delivery's ranges, in their order. */
struct intake_ranges {
    struct intake_range *list;
    size_t capacity;
};

/* State that all intakes share. */
struct intake_shared {
    struct feeds *feeds;
    _Atomic int64_t revoke_ms;  /* limit that may change while it runs */
    bool is_group;              /* intakes are members of a group; else partitions are assigned once */
    _Atomic int64_t *broker_ms; /* newest timestamp of records read (engine.h) */
    atomic_bool end;            /* set: store what was read, then end */
    atomic_bool abandon;        /* the writer has failed: nothing more of this session will be applied */
};

struct intake {
    struct feed feed;
    struct intake_shared *shared;
    uint32_t number;
    struct kafka *kafka;
    struct topic *topics;
    size_t topic_count;
    struct chain **chains; /* by topic */
    pthread_t thread;

    struct intake_ranges open, sealed; /* those of the feed's deliveries */
    struct intake_range *current;      /* NULL: no run is open */
    const rd_kafka_message_t *current_last;
    int64_t current_begun;           /* the delivery's `messages` when the run began */
    rd_kafka_topic_t *current_rkt;   /* topic handle by which the next message of the run is recognised */
    struct decoder *current_decoder; /* decoder of plain lines; NULL: they need the chain */
    bool has_dead_letter;            /* the record being counted has a dead letter */
    int64_t polled_ms;               /* last poll, by clock_boot_ms(); 0: none yet */
    int64_t gaps;                    /* pauses longer than INTAKE_GAP_MS between polls */
    _Atomic int64_t troubles;        /* `gaps` plus kafka_troubles(), as of the last poll */
    rd_kafka_message_t *messages[INTAKE_MESSAGES];

    struct held held; /* partitions that wait for schemas */

    /* Partitions that the group assigned; the writer finds out where they begin. */
    struct partition **given;
    size_t given_count, given_capacity;
    bool drops; /* the group has lost its partitions to others: drop the open batch */

    /* Under lanes.lock, like `kafka` of partitions.
     * IN_HAND: the writer is answering; until it has, the intake must not withdraw the request. */
    enum { REQUEST_NONE, REQUEST_MADE, REQUEST_IN_HAND, REQUEST_GRANTED } request;
    int64_t request_ms; /* monotonic time before which the writer ignores the request */
    bool has_ended;
    atomic_bool has_failed; /* this intake failed: `error` says why */
    struct err error;
    atomic_bool is_busy; /* a poll was full: the queue may be full, too (kafka_wake()) */
};

void intake_init(struct intake *in, struct intake_shared *shared, uint32_t number, struct topic *topics,
                 size_t topic_count, struct heartbeat *heartbeat);
/* Keeps the heartbeat. */
void intake_fini(struct intake *in);
/* Take the intake's next need in hand, for the writer, at a monotonic time. Pre: lanes.lock is held. */
enum intake_need { INTAKE_NEEDS_NOTHING, INTAKE_NEEDS_BEGINNING, INTAKE_NEEDS_APPLYING };
enum intake_need intake_take_need(struct intake *in, int64_t now_ms) MUST_CHECK;
/* End the session, because of `why`; another begins. */
void intake_fail(struct intake *in, const struct err *why);
struct topic *intake_topic(struct intake *in, const char *name);
/* Count the first `n` of its messages, polled at a monotonic time, and release them. False: the writer has
 * failed. */
bool intake_count(struct intake *in, size_t n, int64_t now_ms) MUST_CHECK;
/* Thread body for pthread_create(): counts until shared->end or a failure, then seals the last delivery. */
void *intake_run(void *intake);
