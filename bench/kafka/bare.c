/* bare.c - the yardstick: a consumer that does nothing but take messages and let them go.
 *
 *     build/kafka_bare [--batch] ADDRESS TOPIC MESSAGES [PROPERTY=VALUE …]
 *
 * It assigns itself all partitions of the topic from their beginning, takes MESSAGES messages one by one
 * (rd_kafka_consumer_poll) or with --batch up to 1,000 at a time (rd_kafka_consume_batch_queue), and prints
 *
 *     MESSAGES BYTES SECONDS
 *
 * of which the seconds count from its start to the last message.
 */
#include "bench/kafka/client.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <time.h>

enum {
    BATCH_MESSAGES = 1000,
    WAIT_MS = 20000, /* without a message this long, there are fewer than asked for */
};

struct tally {
    uint64_t messages, messages_max, bytes;
};

/* The quickest settings that were found; the command line may set others. */
static const struct setting settings[] = {
    {"queued.min.messages", "1000000"}, {"queued.max.messages.kbytes", "1048576"},
    {"fetch.wait.max.ms", "10"},        {"fetch.message.max.bytes", "4194304"},
    {"enable.auto.commit", "false"},    {"auto.offset.reset", "error"},
    {"group.id", "tallyd-bench-bare"},  {NULL, NULL},
};

static double clock_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void assign_all(rd_kafka_t *rk, const char *topic)
{
    const struct rd_kafka_metadata *found;
    rd_kafka_topic_t *rkt = rd_kafka_topic_new(rk, topic, NULL);
    rd_kafka_resp_err_t err = rd_kafka_metadata(rk, 0, rkt, &found, WAIT_MS);

    if (err)
        client_fail(topic, rd_kafka_err2str(err));
    int count = found->topics[0].partition_cnt;
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(count);
    for (int p = 0; p < count; p++)
        rd_kafka_topic_partition_list_add(list, topic, p)->offset = RD_KAFKA_OFFSET_BEGINNING;
    err = rd_kafka_assign(rk, list);
    if (err)
        client_fail("rd_kafka_assign", rd_kafka_err2str(err));
    rd_kafka_topic_partition_list_destroy(list);
    rd_kafka_metadata_destroy(found);
    rd_kafka_topic_destroy(rkt);
}

static void take(struct tally *ta, rd_kafka_message_t *message)
{
    if (message->err)
        client_fail("a message", rd_kafka_message_errstr(message));
    ta->messages++;
    ta->bytes += message->len;
    rd_kafka_message_destroy(message);
}

static void poll_all(struct tally *ta, rd_kafka_t *rk)
{
    while (ta->messages < ta->messages_max) {
        rd_kafka_message_t *message = rd_kafka_consumer_poll(rk, WAIT_MS);
        if (!message)
            client_fail("rd_kafka_consumer_poll", "no message came");
        take(ta, message);
    }
}

static void batch_all(struct tally *ta, rd_kafka_t *rk)
{
    rd_kafka_message_t *messages[BATCH_MESSAGES];
    rd_kafka_queue_t *queue = rd_kafka_queue_get_consumer(rk);

    while (ta->messages < ta->messages_max) {
        /* A short wait: the call returns when the batch is full or the time is over, not when some have come.
         */
        ssize_t n = rd_kafka_consume_batch_queue(queue, 5, messages, BATCH_MESSAGES);
        for (ssize_t i = 0; i < n; i++)
            take(ta, messages[i]);
    }
    rd_kafka_queue_destroy(queue);
}

int main(int argc, char **argv)
{
    bool batch = argc > 1 && strcmp(argv[1], "--batch") == 0;
    double begun_s = clock_s();

    argv += batch;
    argc -= batch;
    if (argc < 4) {
        fputs("usage: kafka_bare [--batch] ADDRESS TOPIC MESSAGES [PROPERTY=VALUE ...]\n", stderr);
        return EX_USAGE;
    }
    struct tally ta = {.messages_max = strtoull(argv[3], NULL, 10)};
    rd_kafka_t *rk = client_new(RD_KAFKA_CONSUMER, argv[1], settings, argv + 4);
    rd_kafka_poll_set_consumer(rk);
    assign_all(rk, argv[2]);
    if (batch)
        batch_all(&ta, rk);
    else
        poll_all(&ta, rk);
    printf("%" PRIu64 " %" PRIu64 " %.6f\n", ta.messages, ta.bytes, clock_s() - begun_s);
    fflush(stdout);
    _Exit(EX_OK); /* what is still queued need not be freed one by one */
}
