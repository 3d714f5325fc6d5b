/* kafka/internal.h - what consumer, group and producer of kafka.h share. */
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
    int wake_next;      /* whose leader is woken next */
    atomic_int commits; /* under way */
    _Atomic int64_t queued_bytes;
    _Atomic int64_t troubles;
    kafka_stand_fn *on_stand;
    void *context;

    /* of a reader: what is being read, and every topic that ever was */
    struct kafka_reading *readings;
    size_t reading_count, reading_capacity;
    rd_kafka_topic_t **topics;
    size_t topic_count, topic_capacity;

    /* of a member of a group */
    bool is_member;
    bool was_given; /* partitions, if only none */
    atomic_bool is_leaving;
    bool has_rebalance; /* `rebalance` waits for its answer */
    struct kafka_rebalance rebalance;
};

/* Logging, the user's properties, the brokers. */
bool kafka_configure(rd_kafka_conf_t *conf, const struct kafka_options *o, struct err *e) MUST_CHECK;
/* Returns false, *e saying what to do about `error`. */
bool kafka_fail(rd_kafka_resp_err_t error, struct err *e, const char *doing, const char *topic);

/* ---- kafka/read.c */

void kafka_read_fini(struct kafka *k);

/* ---- kafka/told.c */

#define KAFKA_TOLD_BYTES 1024

void kafka_tell_by_log(rd_kafka_conf_t *conf);
/* A consumer's: its statistics, and a count of its troubles. The opaque is its struct kafka. */
void kafka_tell_consumer(rd_kafka_conf_t *conf);
/* A broker has answered. */
void kafka_note_answer(void);
/* A text of the library without what it only guesses at: itself, or in `buf`. */
const char *kafka_reword(const char *text, char buf[KAFKA_TOLD_BYTES]);
/* Of a JSON of its statistics: what was fetched ahead, and how each partition stands. */
void kafka_read_statistics(const char *json, int64_t *queued_bytes, kafka_stand_fn *fn, void *context);

/* ---- kafka/group.c */

void kafka_group_callbacks(rd_kafka_conf_t *conf);
void kafka_group_fini(struct kafka *k);
size_t kafka_poll_member(struct kafka *k, rd_kafka_message_t **messages, size_t max, int timeout_ms);
/* Before 2.3 librdkafka ends the process where a member of a cooperative group goes before it was given
 * anything: such a one is left alone. */
bool kafka_is_destroyable(const struct kafka *k);
/* Say good-bye to the group, unless the membership is to outlive this consumer (kafka_options.instance). */
void kafka_leave(struct kafka *k);
