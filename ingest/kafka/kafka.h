/* kafka.h - a consumer of a Kafka cluster, and a producer: the part of librdkafka that this daemon uses.
 * Intakes, the dead-letter queue and the judge call it.
 *
 * Offsets : the caller chooses where each partition begins. Kafka's committed offsets are never read; they
 *           are written for lag tools only.
 * Alone   : kafka_assign() joins no group, so no rebalance ever takes a partition away. For a change (new
 *           partitions, an offset that is gone) the caller closes the consumer and opens another.
 * Group   : kafka_subscribe(). The group assigns partitions and revokes them, eagerly or cooperatively.
 *           kafka_poll() stops at such a decision and returns no more records until the caller has answered;
 *           the caller must first count what it polled. The group expels a member that does not poll for
 *           max.poll.interval.ms: its partitions are lost.
 * Reader  : kafka_read(), repeatedly, on a consumer without a group. Each call has a queue of its own, so it
 *           never returns records that were fetched before the call.
 * Fetch   : queue_bytes bounds the bytes fetched ahead. librdkafka before 2.2 stops fetching for a fixed
 *           second when its queue is full (librdkafka#2879). kafka_wake(), called every KAFKA_WAKE_MS from
 *           another thread, ends that pause by a request that wakes the broker's thread.
 * Batches : kafka_poll() uses rd_kafka_consume_batch_queue(), at half the cost per message of
 *           rd_kafka_consumer_poll(). Before 2.1 it may lose messages around pause, resume, seek and
 *           rebalance (librdkafka#4208), so members of a group and consumers that pause use
 *           rd_kafka_consumer_poll().
 * Threads : one thread calls kafka_poll() and the functions that answer a rebalance; any thread the others.
 * Errors  : EX_UNAVAILABLE, retryable: the cluster cannot be reached, or a topic does not exist (yet);
 *           EX_CONFIG: a property is wrong; EX_NOPERM: access is denied.
 */
#pragma once

#include "base/err.h"
#include "ingest/kafka/conf.h"
#include "ingest/record.h"

#include <librdkafka/rdkafka.h>
#include <stddef.h>

#define KAFKA_TIMEOUT_MS        3000 /* for a request whose answer a caller waits for */
#define KAFKA_WAKE_MS           25
/* A group's defaults, which kafka.properties may change: the assignment strategy, and the times after which
 * the group notices a dead member and new partitions. cooperative-sticky moves fewer partitions, but
 * librdkafka before 2.6 may loop for ever if a topic has fewer partitions than members (librdkafka#4783). */
#define KAFKA_STRATEGY          "roundrobin"
#define KAFKA_SESSION_MS        10000
#define KAFKA_NEW_PARTITIONS_MS 10000
#define KAFKA_INSTANCE_BYTES    256

/* How far a partition can be read, as of some seconds ago. Open transactions hold back the records from
 * `stable` to `end`. */
struct kafka_stand {
    struct slice topic;
    int32_t partition;
    int64_t next, stable, end; /* next: the next offset to fetch; negative: none is being fetched */
};
typedef void kafka_stand_fn(void *context, const struct kafka_stand *stand);

struct kafka_options {
    const char *brokers; /* "host:port,host:port" */
    const char *group;   /* group that shares partitions and has the committed offsets; NULL: a reader */
    char instance[KAFKA_INSTANCE_BYTES]; /* name of a membership that outlives a restart; "": none */
    const struct kafka_property *properties;
    size_t property_count;
    int64_t queue_bytes;
    int64_t fetch_bytes;      /* bytes of a partition in one fetch; 0: the library's default */
    bool pauses;              /* kafka_pause() will be called */
    kafka_stand_fn *on_stand; /* called for each partition every few seconds, by kafka_serve(); NULL: never */
    void *context;
};

/* A partition, and an offset to begin at or an offset that was found. */
struct kafka_offset {
    const char *topic; /* borrowed */
    int32_t partition;
    int64_t offset;
};

/* Values that kafka_offsets() takes besides times. */
#define KAFKA_LATEST   (-1)
#define KAFKA_EARLIEST (-2)

struct kafka;

struct kafka *kafka_open(const struct kafka_options *options, struct err *e) MUST_CHECK;
/* Pre: every polled message was given back. */
void kafka_close(struct kafka *k);

/* Gets the number of the topic's partitions. */
bool kafka_partitions(struct kafka *k, const char *topic, int32_t *count, struct err *e) MUST_CHECK;
/* As kafka_partitions(), but true with 0 if there is no such topic. */
bool kafka_find_topic(struct kafka *k, const char *topic, int32_t *partitions, struct err *e) MUST_CHECK;
/* May records be deleted from the middle of the topic's partitions? Also unknown if this user may not ask. */
enum kafka_policy { KAFKA_POLICY_UNKNOWN, KAFKA_DELETES, KAFKA_COMPACTS };
enum kafka_policy kafka_policy(struct kafka *k, const char *topic);
/* Resolves each `offset` in place. KAFKA_EARLIEST becomes the first offset that exists, KAFKA_LATEST the end.
 * A time in ms becomes the offset of the first record of that time or later, or the end if there is none. */
bool kafka_offsets(struct kafka *k, struct kafka_offset *offsets, size_t count, struct err *e) MUST_CHECK;
/* Fetches these partitions, each from its offset. Call it once. */
bool kafka_assign(struct kafka *k, const struct kafka_offset *offsets, size_t count,
                  struct err *e) MUST_CHECK;

/* For a reader: fetches these partitions, each from its offset, until kafka_read_end(). kafka_poll() then
 * returns only records that were fetched after this call. Pre: kafka_read_end() since the last call. */
bool kafka_read(struct kafka *k, const struct kafka_offset *offsets, size_t count, struct err *e) MUST_CHECK;
void kafka_read_end(struct kafka *k);

/* Joins the group, for these topics. Call it once. */
bool kafka_subscribe(struct kafka *k, const char *const *topics, size_t count, struct err *e) MUST_CHECK;

enum kafka_decision {
    KAFKA_GIVEN, /* partitions assigned: read them from the store's positions */
    KAFKA_TAKEN, /* partitions revoked: others wait for the answer; store what was polled first */
    KAFKA_LOST   /* partitions that other members have already */
};

struct kafka_partition {
    char *topic;
    int32_t number;
};

struct kafka_rebalance {
    enum kafka_decision decision;
    struct kafka_partition *partitions;
    size_t count;
};

/* The group's decision that is not answered yet; NULL: none. */
const struct kafka_rebalance *kafka_rebalance(const struct kafka *k);
/* Answers the decision. KAFKA_GIVEN: fetches each partition from its offset, in the order of the decision.
 * KAFKA_TAKEN, KAFKA_LOST: gives the partitions up; `offsets` is NULL. */
bool kafka_answer(struct kafka *k, const int64_t *offsets, struct err *e) MUST_CHECK;
/* False: a fatal error of librdkafka ended this member. EX_CONFIG: another member took its kafka.instance. */
bool kafka_is_fit(struct kafka *k, struct err *e) MUST_CHECK;

/* Gets up to `max` messages that come within timeout_ms. A message with err != 0 is an error of a partition,
 * or RD_KAFKA_RESP_ERR__PARTITION_EOF: the next record has its offset or a higher one. Give back each message
 * by rd_kafka_message_destroy(). */
size_t kafka_poll(struct kafka *k, rd_kafka_message_t **messages, size_t max, int timeout_ms);
/* Stops fetching a partition, or goes on behind the last message of it that kafka_poll() returned: no later
 * one is returned meanwhile. Pre: kafka_options.pauses, and the partition is assigned. */
void kafka_pause(struct kafka *k, const char *topic, int32_t partition, bool is_paused);
/* The message as a record; valid until it is given back. */
void kafka_record(rd_kafka_message_t *m, const char *topic, struct record *r);
/* The record's timestamp_ms. */
int64_t kafka_timestamp(const rd_kafka_message_t *m);
/* The broker that it was fetched from; -1: not known. */
int32_t kafka_broker(const rd_kafka_message_t *m);
/* The number of connection errors since kafka_open(). If it has changed, a broker's log may have changed,
 * too. */
int64_t kafka_troubles(const struct kafka *k);
/* Does this error mean that the consumer cannot go on with the partition as it is? */
bool kafka_is_lost(rd_kafka_resp_err_t error);
/* False: the message is an error that says that the records from its offset on came, but cannot be read.
 * librdkafka passes over them, so later messages must not be counted. */
bool kafka_is_readable(const rd_kafka_message_t *m, const char *topic, struct err *e) MUST_CHECK;

/* Serves events of the connection (errors, commits, statistics); call it several times a second. */
void kafka_serve(struct kafka *k);
/* Wakes the broker threads, if this version of the library needs it. Takes up to a request's time. */
void kafka_wake(struct kafka *k);
/* The end of a partition as the last fetch saw it (the high watermark); -1: not known yet. */
int64_t kafka_end(struct kafka *k, const char *topic, int32_t partition);
/* The bytes fetched ahead, as of some seconds ago. */
int64_t kafka_queued_bytes(const struct kafka *k);
/* Commits the offsets to the group, without waiting; a failure is logged. */
void kafka_commit(struct kafka *k, const struct kafka_offset *offsets, size_t count);
/* Waits up to timeout_ms until all commits are answered. */
void kafka_finish_commits(struct kafka *k, int timeout_ms);

/* A header of a message for kafka_produce(). */
struct kafka_header {
    const char *name;
    struct slice value;
};

struct kafka_producer;

struct kafka_producer *kafka_producer_open(const struct kafka_options *options, const char *topic,
                                           struct err *e) MUST_CHECK;
void kafka_producer_close(struct kafka_producer *p);
/* Queues a copy. ptr NULL: no key, or no value. */
bool kafka_produce(struct kafka_producer *p, struct slice key, struct slice value,
                   const struct kafka_header *headers, size_t header_count, struct err *e) MUST_CHECK;
/* Waits until all in-sync replicas have acknowledged every message queued since the last flush. False: no
 * message is in flight any more, but the topic may have some of them. */
bool kafka_flush(struct kafka_producer *p, struct err *e) MUST_CHECK;
/* Was the last failure a message larger than the topic accepts? */
bool kafka_was_too_large(const struct kafka_producer *p);
