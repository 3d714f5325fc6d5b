/* kafka.h - one consumer of a Kafka cluster, and one producer: librdkafka without what this daemon does not
 * use.
 *
 * Offsets : the caller says where each partition begins, and never asks Kafka's committed offsets; those are
 *           written for lag tools only.
 * Alone   : kafka_assign(). No group is joined, so no rebalance ever takes a partition away; what must change
 *           (new partitions, an offset that is gone) closes the consumer and opens another.
 * Group   : kafka_subscribe(). The group gives partitions and takes them away, eagerly or cooperatively;
 *           kafka_poll() stops at such a decision, and nothing more comes until the caller, who has to count
 *           what was polled before, has answered. A member that does not poll for max.poll.interval.ms is
 *           thrown out: its partitions are lost.
 * Reader  : kafka_read(), again and again, of a consumer without a group. Each time has a queue of its own,
 *           so that nothing is ever seen that was fetched before it was asked for.
 * Fetch   : queue_bytes bounds what is fetched ahead. librdkafka before 2.2 stops fetching for a fixed second
 *           when its queue is full (librdkafka#2879); kafka_wake(), called every KAFKA_WAKE_MS from another
 *           thread, ends that pause by a request that wakes the broker's thread.
 * Batches : kafka_poll() uses rd_kafka_consume_batch_queue(), at half the cost a message of
 *           rd_kafka_consumer_poll(). Before 2.1 it may lose messages around pause, resume, seek and
 *           rebalance (librdkafka#4208): so members of a group use the other.
 * Threads : kafka_poll(), and what answers a rebalance, by one; all others by any.
 * Errors  : EX_UNAVAILABLE + retryable where the cluster cannot be reached or a topic is not there (yet);
 *           EX_CONFIG for a property; EX_NOPERM where access is denied.
 */
#pragma once

#include "base/err.h"
#include "ingest/kafka/conf.h"
#include "ingest/record.h"

#include <librdkafka/rdkafka.h>
#include <stddef.h>

#define KAFKA_TIMEOUT_MS        3000 /* of a request that somebody waits for */
#define KAFKA_WAKE_MS           25
/* Of a group, unless kafka.properties say otherwise: how partitions are shared out, after how long a member
 * that died is noticed, and new partitions are. cooperative-sticky moves fewer of them, but where a topic has
 * fewer partitions than members, librdkafka before 2.6 may loop for ever over it (librdkafka#4783). */
#define KAFKA_STRATEGY          "roundrobin"
#define KAFKA_SESSION_MS        10000
#define KAFKA_NEW_PARTITIONS_MS 10000
#define KAFKA_INSTANCE_BYTES    256

/* How far a partition can be read, as of some seconds ago: between `stable` and `end` is what open
 * transactions hold back. */
struct kafka_stand {
    struct slice topic;
    int32_t partition;
    int64_t next, stable, end; /* next: to be fetched; -1: nothing is */
};
typedef void kafka_stand_fn(void *context, const struct kafka_stand *stand);

struct kafka_options {
    const char *brokers; /* "host:port,host:port" */
    const char *group;   /* for committed offsets, and to share partitions in; NULL: a reader */
    char instance[KAFKA_INSTANCE_BYTES]; /* a membership that outlives a restart; "": none */
    const struct kafka_property *properties;
    size_t property_count;
    int64_t queue_bytes;
    int64_t fetch_bytes; /* of a partition at once; 0: as the library likes */
    kafka_stand_fn
        *on_stand; /* of each partition every few seconds, within kafka_serve(); NULL: nobody asks */
    void *context;
};

/* A partition, and where to begin or what was found. */
struct kafka_offset {
    const char *topic; /* borrowed */
    int32_t partition;
    int64_t offset;
};

/* For offsets asked of kafka_offsets(), beside times. */
#define KAFKA_LATEST   (-1)
#define KAFKA_EARLIEST (-2)

struct kafka;

struct kafka *kafka_open(const struct kafka_options *options, struct err *e) MUST_CHECK;
/* Everything that was polled must have been given back. */
void kafka_close(struct kafka *k);

/* How many partitions the topic has. */
bool kafka_partitions(struct kafka *k, const char *topic, int32_t *count, struct err *e) MUST_CHECK;
/* The same, and 0 where there is no such topic. */
bool kafka_find_topic(struct kafka *k, const char *topic, int32_t *partitions, struct err *e) MUST_CHECK;
/* May records go from the middle of its partitions? Unknown, too, where that is not for us to know. */
enum kafka_policy { KAFKA_POLICY_UNKNOWN, KAFKA_DELETES, KAFKA_COMPACTS };
enum kafka_policy kafka_policy(struct kafka *k, const char *topic);
/* Of each partition: `offset` is KAFKA_EARLIEST, KAFKA_LATEST or a time in ms, and becomes the first offset
 * there is, the end, or the first record of that time or later (the end where there is none). */
bool kafka_offsets(struct kafka *k, struct kafka_offset *offsets, size_t count, struct err *e) MUST_CHECK;
/* Fetch these partitions, each from its offset. Once. */
bool kafka_assign(struct kafka *k, const struct kafka_offset *offsets, size_t count,
                  struct err *e) MUST_CHECK;

/* A reader's: fetch these partitions, each from its offset, until kafka_read_end(). What kafka_poll() says of
 * them was fetched after this call. Pre: kafka_read_end() since the last call. */
bool kafka_read(struct kafka *k, const struct kafka_offset *offsets, size_t count, struct err *e) MUST_CHECK;
void kafka_read_end(struct kafka *k);

/* Join the group, for these topics. Once. */
bool kafka_subscribe(struct kafka *k, const char *const *topics, size_t count, struct err *e) MUST_CHECK;

enum kafka_decision {
    KAFKA_GIVEN, /* to be read from where the store stands */
    KAFKA_TAKEN, /* others wait until they are let go: what was polled is to be stored before */
    KAFKA_LOST   /* others have them already */
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

/* What the group has decided, as long as it is not answered; NULL: nothing. */
const struct kafka_rebalance *kafka_rebalance(const struct kafka *k);
/* Given: fetch each from its offset, in the order of the decision. Else, and offsets NULL: let go. */
bool kafka_answer(struct kafka *k, const int64_t *offsets, struct err *e) MUST_CHECK;
/* False once librdkafka has given this member up; EX_CONFIG where another took its place for good. */
bool kafka_is_fit(struct kafka *k, struct err *e) MUST_CHECK;

/* Up to `max` messages, or what came within timeout_ms. Some may be errors (err != 0: of a partition, or
 * RD_KAFKA_RESP_ERR__PARTITION_EOF with the offset that the next record will have at least). Each is given
 * back by rd_kafka_message_destroy(). */
size_t kafka_poll(struct kafka *k, rd_kafka_message_t **messages, size_t max, int timeout_ms);
/* The message as a record; valid until it is given back. */
void kafka_record(rd_kafka_message_t *m, const char *topic, struct record *r);
/* The record's timestamp_ms. */
int64_t kafka_timestamp(const rd_kafka_message_t *m);
/* Where it was fetched from; -1: not known. */
int32_t kafka_broker(const rd_kafka_message_t *m);
/* How often something went wrong with a connection since it was opened: what a broker has may be another than
 * before. */
int64_t kafka_troubles(const struct kafka *k);
/* Does this error mean that the consumer cannot go on with the partition as it is? */
bool kafka_is_lost(rd_kafka_resp_err_t error);

/* Events of the connection (errors, commits done) are logged from here; several times a second. */
void kafka_serve(struct kafka *k);
/* Wake the broker threads, where this version of the library needs it. Takes up to a request's time. */
void kafka_wake(struct kafka *k);
/* The end of a partition as the last fetch saw it (the high watermark); -1: not known yet. */
int64_t kafka_end(struct kafka *k, const char *topic, int32_t partition);
/* What was fetched ahead, as of some seconds ago. */
int64_t kafka_queued_bytes(const struct kafka *k);
/* Write the offsets into the group, not waiting for it; a failure is logged. */
void kafka_commit(struct kafka *k, const struct kafka_offset *offsets, size_t count);
/* Wait up to timeout_ms until what was committed has been answered. */
void kafka_finish_commits(struct kafka *k, int timeout_ms);

/* A message for kafka_produce(). */
struct kafka_header {
    const char *name;
    struct slice value;
};

struct kafka_producer;

struct kafka_producer *kafka_producer_open(const struct kafka_options *options, const char *topic,
                                           struct err *e) MUST_CHECK;
void kafka_producer_close(struct kafka_producer *p);
/* Queue a copy. ptr NULL: no key, no value. */
bool kafka_produce(struct kafka_producer *p, struct slice key, struct slice value,
                   const struct kafka_header *headers, size_t header_count, struct err *e) MUST_CHECK;
/* Wait until every message queued since the last flush is acknowledged by all in-sync replicas. False: none
 * of them is under way any more, but some may be there. */
bool kafka_flush(struct kafka_producer *p, struct err *e) MUST_CHECK;
/* Did the last failure mean that a message is larger than the topic takes? */
bool kafka_was_too_large(const struct kafka_producer *p);
