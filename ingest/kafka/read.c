/* A reader: it reads some records of some partitions now, and others a moment later. It uses librdkafka's
 * simple consumer, which starts and stops partitions within a call; an assignment takes effect some time
 * after the call. */
#include "base/check.h"
#include "base/mem.h"
#include "ingest/kafka/internal.h"

#include <stdlib.h>
#include <string.h>

/* Topics stay open: otherwise librdkafka would ask again where their partitions are. */
static rd_kafka_topic_t *read_topic(struct kafka *k, const char *name)
{
    for (size_t i = 0; i < k->topic_count; i++) {
        if (strcmp(rd_kafka_topic_name(k->topics[i]), name) == 0)
            return k->topics[i];
    }
    rd_kafka_topic_t *rkt = rd_kafka_topic_new(k->rk, name, NULL);
    if (rkt == NULL)
        return NULL;
    k->topics = xgrow(k->topics, &k->topic_capacity, k->topic_count + 1, sizeof(rd_kafka_topic_t *));
    k->topics[k->topic_count++] = rkt;
    return rkt;
}

bool kafka_read(struct kafka *k, const struct kafka_offset *offsets, size_t count, struct err *e)
{
    ASSERT(k->queue == NULL);
    k->queue = rd_kafka_queue_new(k->rk);
    for (size_t i = 0; i < count; i++) {
        rd_kafka_topic_t *rkt = read_topic(k, offsets[i].topic);
        if (rkt == NULL ||
            rd_kafka_consume_start_queue(rkt, offsets[i].partition, offsets[i].offset, k->queue) != 0) {
            rd_kafka_resp_err_t error = rd_kafka_last_error(); /* before kafka_read_end() overwrites it */
            kafka_read_end(k);
            return kafka_fail(error, e, "reading", offsets[i].topic);
        }
        k->readings = xgrow(k->readings, &k->reading_capacity, k->reading_count + 1, sizeof *k->readings);
        k->readings[k->reading_count++] = (struct kafka_reading){rkt, offsets[i].partition};
    }
    return true;
}

void kafka_read_end(struct kafka *k)
{
    for (size_t i = 0; i < k->reading_count; i++)
        (void)rd_kafka_consume_stop(k->readings[i].rkt, k->readings[i].partition);
    k->reading_count = 0;
    rd_kafka_queue_destroy(k->queue);
    k->queue = NULL;
}

void kafka_read_fini(struct kafka *k)
{
    ASSERT(k->reading_count == 0);
    for (size_t i = 0; i < k->topic_count; i++)
        rd_kafka_topic_destroy(k->topics[i]);
    free(k->topics);
    free(k->readings);
}
