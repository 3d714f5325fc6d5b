/* kafka/internal.h - declarations that consumer, group and producer of kafka.h share. */
#pragma once

#include "ingest/kafka/kafka.h"

#include <stdatomic.h>

struct kafka_reading {
    rd_kafka_topic_t *rkt; /* one of the reader's topics */
    int32_t partition;
};

struct kafka {
    rd_kafka_t *rk;
    rd_kafka_queue_t *queue;
    bool needs_waking;
    bool polls_singly;  /* by rd_kafka_consumer_poll(): see kafka.h */
    int wake_next;      /* index of the partition whose leader is woken next */
    atomic_int commits; /* commits of offsets that are not answered yet */
    _Atomic int64_t queued_bytes;
    _Atomic int64_t troubles;
    kafka_stand_fn *on_stand;
    void *context;

    /* a reader's: the partitions being read, and every topic read so far */
    struct kafka_reading *readings;
    size_t reading_count, reading_capacity;
    rd_kafka_topic_t **topics;
    size_t topic_count, topic_capacity;

    /* a group member's */
    bool is_member;
    bool was_given; /* the group has assigned partitions once, perhaps none */
    atomic_bool is_leaving;
    bool has_rebalance; /* `rebalance` waits for its answer */
    struct kafka_rebalance rebalance;
};

/* Sets logging, the user's properties, and the brokers. */
bool kafka_configure(rd_kafka_conf_t *conf, const struct kafka_options *o, struct err *e) MUST_CHECK;
/* Returns false; *e says what to do about `error`. */
bool kafka_fail(rd_kafka_resp_err_t error, struct err *e, const char *doing, const char *topic);

/* ---- kafka/read.c */

void kafka_read_fini(struct kafka *k);

/* ---- kafka/told.c */

#define KAFKA_TOLD_BYTES 1024

void kafka_tell_by_log(rd_kafka_conf_t *conf);
/* Sets a consumer's callbacks for statistics and errors, which count its troubles. Pre: the conf's opaque is
 * its struct kafka. */
void kafka_tell_consumer(rd_kafka_conf_t *conf);
/* Notes that a broker has answered. */
void kafka_note_answer(void);
/* A text of the library without its guess at a wrong security.protocol: `text` itself, or a text in `buf`. */
const char *kafka_reword(const char *text, char buf[KAFKA_TOLD_BYTES]);
/* Reads the library's statistics, a JSON: the bytes fetched ahead, and the stand of each partition, for
 * `fn`. */
void kafka_read_statistics(const char *json, int64_t *queued_bytes, kafka_stand_fn *fn, void *context);

/* ---- kafka/group.c */

void kafka_group_callbacks(rd_kafka_conf_t *conf);
void kafka_group_fini(struct kafka *k);
size_t kafka_poll_singly(struct kafka *k, rd_kafka_message_t **messages, size_t max, int timeout_ms);
/* False: the consumer must not be destroyed, but leaked. librdkafka before 2.3 ends the process if a member
 * of a cooperative group leaves before its first assignment. */
bool kafka_is_destroyable(const struct kafka *k);
/* Leaves the group, unless the membership must outlive this consumer (kafka_options.instance). */
void kafka_leave(struct kafka *k);
