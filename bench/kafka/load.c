/* load.c - puts the lines of standard input into a Kafka topic, as fast as it will take them.
 *
 *     build/traffic --lines 10000000 | build/kafka_load ADDRESS TOPIC PARTITIONS [PROPERTY=VALUE …]
 *
 * Lines go to the partitions in turn, so that all of them are equally long and equally far in time. Each is a
 * message without key and without its newline. It prints how many there were when all are in the topic.
 */
#include "bench/kafka/client.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

enum {
    BATCH_MESSAGES = 4000,
    LINE_BYTES_MAX = 64 * 1024,
    IN_BYTES = 4 << 20,
};

static const struct setting settings[] = {
    {"enable.idempotence", "true"},
    {"log_level", "3"},
    /* not that the broker is still loading */ {"linger.ms", "20"},
    {"batch.num.messages", "10000"},
    {"queue.buffering.max.messages", "2000000"},
    {"queue.buffering.max.kbytes", "524288"},
    {NULL, NULL},
};

struct load {
    rd_kafka_t *rk;
    rd_kafka_topic_t *rkt;
    uint64_t partitions, lines;
    rd_kafka_message_t messages[BATCH_MESSAGES];
    int count;
};

static void send_batch(struct load *lo)
{
    client_send(lo->rk, lo->rkt, lo->messages, lo->count);
    lo->count = 0;
}

/* Sends the whole lines of `bytes`; returns how many bytes they are. */
static size_t send_lines(struct load *lo, char *bytes, size_t length)
{
    char *line = bytes, *end;

    while ((end = memchr(line, '\n', length - (size_t)(line - bytes)))) {
        lo->messages[lo->count++] = (rd_kafka_message_t){
            .partition = (int32_t)(lo->lines++ % lo->partitions),
            .payload = line,
            .len = (size_t)(end - line),
        };
        if (lo->count == BATCH_MESSAGES)
            send_batch(lo);
        line = end + 1;
    }
    send_batch(lo);
    return (size_t)(line - bytes);
}

static void send_all(struct load *lo)
{
    static char in[IN_BYTES];
    size_t kept = 0, n;

    while ((n = fread(in + kept, 1, sizeof(in) - kept, stdin)) > 0) {
        size_t used = send_lines(lo, in, kept + n);
        kept = kept + n - used;
        if (kept > LINE_BYTES_MAX)
            client_fail("a line", "longer than 64 KiB");
        memmove(in, in + used, kept);
    }
    if (kept > 0)
        client_fail("the last line", "without newline");
    client_flush(lo->rk);
}

int main(int argc, char **argv)
{
    static struct load lo;

    if (argc < 4 || (lo.partitions = strtoull(argv[3], NULL, 10)) == 0) {
        fputs("usage: kafka_load ADDRESS TOPIC PARTITIONS [PROPERTY=VALUE ...] <LINES\n", stderr);
        return EX_USAGE;
    }
    lo.rk = client_new(RD_KAFKA_PRODUCER, argv[1], settings, argv + 4);
    lo.rkt = rd_kafka_topic_new(lo.rk, argv[2], NULL);
    send_all(&lo);
    printf("%" PRIu64 "\n", lo.lines);
    return EX_OK;
}
