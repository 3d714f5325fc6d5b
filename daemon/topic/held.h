/* held.h - partitions whose next record must wait for its schema (ingest/schema/registry.h). Their intake
 * sets the partition's polled records aside, and librdkafka pauses it. The intake's other partitions go on,
 * and it still polls, so that its group does not expel it.
 *
 *   held_add()    the record that must wait, then each record of its partition that was polled with it
 *   held_poll()   once the schema is known: the records again, as a poll returns them
 *
 * Position: stays before the record that waits. Nothing is counted, rejected or skipped meanwhile.
 * Resume  : librdkafka goes on behind the last record that was polled: nothing is read twice.
 * Limits  : the records of one poll are set aside, at most; more are not polled.
 * Owner   : the records that are set aside; held_drop() gives them back.
 * Threads : the intake's.
 */
#pragma once

#include "daemon/topic/topic.h"
#include "ingest/decode/chain.h"
#include "ingest/kafka/kafka.h"

/* Records of one partition that were set aside. */
struct held_partition {
    struct partition *partition;
    rd_kafka_message_t **messages;
    size_t count, capacity;
};

struct held {
    struct held_partition *list;
    size_t count, capacity;
};

/* Takes the message over. */
void held_add(struct held *h, struct kafka *k, struct partition *p, rd_kafka_message_t *m);
/* Gets the messages of one partition that can go on, which are the caller's then. Returns their number; 0:
 * none can. `chains`: those of `topics`. */
size_t held_poll(struct held *h, struct kafka *k, struct chain *const *chains, const struct topic *topics,
                 rd_kafka_message_t **messages);
/* Gives back what is set aside of a partition, which is no longer read here; NULL: of all. */
void held_drop(struct held *h, struct kafka *k, const struct partition *p);
