/* load.c - puts the lines of standard input into a Kafka topic, as fast as it will take them.
 *
 *     build/traffic --lines 10000000 | build/kafka_load ADDRESS TOPIC PARTITIONS [PROPERTY=VALUE …]
 *
 * Lines go to the partitions in turn, so that all of them are equally long and equally far in time. Each is a
 * message without key and without its newline. It prints how many there were when all are in the topic.
 */
#include <librdkafka/rdkafka.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

enum {
    BATCH_MESSAGES = 4000,
    LINE_BYTES_MAX = 64 * 1024,
    IN_BYTES = 4 << 20,
    WAIT_MS = 60000,
    ERROR_BYTES = 512,
};

static const char *const settings[][2] = {
    {"enable.idempotence", "true"},           {"linger.ms", "20"},
    {"batch.num.messages", "10000"},          {"queue.buffering.max.messages", "2000000"},
    {"queue.buffering.max.kbytes", "524288"},
};

struct batch {
    rd_kafka_message_t messages[BATCH_MESSAGES];
    int count;
};

static void __attribute__((noreturn)) fail(const char *what, const char *why)
{
    fprintf(stderr, "kafka_load: %s: %s\n", what, why);
    exit(EX_SOFTWARE);
}

static void set(rd_kafka_conf_t *conf, const char *name, const char *value)
{
    char said[ERROR_BYTES];
    if (rd_kafka_conf_set(conf, name, value, said, sizeof(said)) != RD_KAFKA_CONF_OK)
        fail(name, said);
}

static void on_delivery(rd_kafka_t *rk, const rd_kafka_message_t *message, void *opaque)
{
    (void)rk;
    (void)opaque;
    if (message->err)
        fail("a message", rd_kafka_err2str(message->err));
}

static rd_kafka_t *producer_new(const char *address, char **properties)
{
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    char said[ERROR_BYTES];

    set(conf, "bootstrap.servers", address);
    set(conf, "delivery.report.only.error", "true");
    for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++)
        set(conf, settings[i][0], settings[i][1]);
    for (; *properties; properties++) {
        char *value = strchr(*properties, '=');
        if (!value)
            fail(*properties, "expected PROPERTY=VALUE");
        *value = '\0';
        set(conf, *properties, value + 1);
    }
    rd_kafka_conf_set_dr_msg_cb(conf, on_delivery);
    rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, said, sizeof(said));
    if (!rk)
        fail("rd_kafka_new", said);
    return rk;
}

/* Those of a batch that found the queue full are tried again. The bytes are copied by the library. */
static void send_batch(rd_kafka_t *rk, rd_kafka_topic_t *rkt, struct batch *ba)
{
    while (ba->count > 0) {
        int left = 0;
        rd_kafka_produce_batch(rkt, RD_KAFKA_PARTITION_UA, RD_KAFKA_MSG_F_COPY | RD_KAFKA_MSG_F_PARTITION,
                               ba->messages, ba->count);
        for (int i = 0; i < ba->count; i++) {
            if (ba->messages[i].err == RD_KAFKA_RESP_ERR__QUEUE_FULL)
                ba->messages[left++] = ba->messages[i];
            else if (ba->messages[i].err)
                fail("rd_kafka_produce_batch", rd_kafka_err2str(ba->messages[i].err));
        }
        rd_kafka_poll(rk, left > 0 ? 10 : 0);
        ba->count = left;
    }
}

/* Sends the whole lines of `bytes`; returns how many bytes they are. */
static size_t send_lines(rd_kafka_t *rk, rd_kafka_topic_t *rkt, char *bytes, size_t length, int partitions,
                         uint64_t *lines)
{
    static struct batch ba;
    char *line = bytes, *end;

    while ((end = memchr(line, '\n', length - (size_t)(line - bytes)))) {
        ba.messages[ba.count++] = (rd_kafka_message_t){
            .partition = (int32_t)((*lines)++ % (uint64_t)partitions),
            .payload = line,
            .len = (size_t)(end - line),
        };
        if (ba.count == BATCH_MESSAGES)
            send_batch(rk, rkt, &ba);
        line = end + 1;
    }
    send_batch(rk, rkt, &ba);
    return (size_t)(line - bytes);
}

int main(int argc, char **argv)
{
    static char in[IN_BYTES];
    size_t kept = 0, n;
    uint64_t lines = 0;

    int partitions = argc > 3 ? atoi(argv[3]) : 0;
    if (partitions < 1) {
        fputs("usage: kafka_load ADDRESS TOPIC PARTITIONS [PROPERTY=VALUE ...] <LINES\n", stderr);
        return EX_USAGE;
    }
    rd_kafka_t *rk = producer_new(argv[1], argv + 4);
    rd_kafka_topic_t *rkt = rd_kafka_topic_new(rk, argv[2], NULL);
    while ((n = fread(in + kept, 1, sizeof(in) - kept, stdin)) > 0) {
        size_t used = send_lines(rk, rkt, in, kept + n, partitions, &lines);
        kept = kept + n - used;
        if (kept > LINE_BYTES_MAX)
            fail("a line", "longer than 64 KiB");
        memmove(in, in + used, kept);
    }
    if (kept > 0)
        fail("the last line", "without newline");
    rd_kafka_resp_err_t err = rd_kafka_flush(rk, WAIT_MS);
    if (err)
        fail("rd_kafka_flush", rd_kafka_err2str(err));
    printf("%" PRIu64 "\n", lines);
    return EX_OK;
}
