/* mock.c - a Kafka broker for `make demo`, in this process: librdkafka's mock cluster, and a producer that
 * puts the lines of standard input into a topic of it as they come.
 *
 *     build/traffic --live | build/kafka_mock TOPIC PARTITIONS ADDRESS_FILE
 *
 * Where it listens is written to ADDRESS_FILE once it does. The mock keeps 5 MiB and 100,000 messages of a
 * partition; older ones are gone, so the past that a demo begins with must fit. Ends with its input.
 */
#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

enum { LINE_BYTES_MAX = 64 * 1024, WAIT_MS = 10000, POLL_MS = 100, PARTITIONS_MAX = 1000, ERROR_BYTES = 512 };

static void __attribute__((noreturn)) fail(const char *what, const char *why)
{
    fprintf(stderr, "kafka_mock: %s: %s\n", what, why);
    exit(EX_SOFTWARE);
}

static void set(rd_kafka_conf_t *conf, const char *name, const char *value)
{
    char why[ERROR_BYTES];
    if (rd_kafka_conf_set(conf, name, value, why, sizeof why) != RD_KAFKA_CONF_OK)
        fail(name, why);
}

static void be_silent(const rd_kafka_t *rk, int level, const char *facility, const char *text)
{
    (void)rk, (void)level, (void)facility, (void)text; /* it says what it is on every start */
}

/* A producer whose cluster is in its own process. */
static rd_kafka_t *producer_new(void)
{
    char why[ERROR_BYTES];
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    set(conf, "test.mock.num.brokers", "1");
    set(conf, "linger.ms", "50");
    rd_kafka_conf_set_log_cb(conf, be_silent);
    rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, why, sizeof why);
    if (rk == NULL)
        fail("rd_kafka_new", why);
    return rk;
}

/* A program that waits for the file sees it whole. */
static void write_address(const char *path, const char *address)
{
    char name[4096];
    snprintf(name, sizeof name, "%s.new", path);
    FILE *file = fopen(name, "w");
    if (file == NULL || fprintf(file, "%s\n", address) < 0 || fclose(file) != 0 || rename(name, path) != 0)
        fail(path, "cannot be written");
}

static void produce(rd_kafka_t *rk, rd_kafka_topic_t *topic, int partition, char *line, size_t len)
{
    while (rd_kafka_produce(topic, partition, RD_KAFKA_MSG_F_COPY, line, len, NULL, 0, NULL) != 0) {
        if (rd_kafka_last_error() != RD_KAFKA_RESP_ERR__QUEUE_FULL)
            fail("producing", rd_kafka_err2str(rd_kafka_last_error()));
        rd_kafka_poll(rk, POLL_MS);
    }
    rd_kafka_poll(rk, 0);
}

int main(int argc, char **argv)
{
    static char line[LINE_BYTES_MAX];
    int partitions = argc == 4 ? atoi(argv[2]) : 0;
    if (partitions < 1 || partitions > PARTITIONS_MAX) {
        fprintf(stderr, "usage: kafka_mock TOPIC PARTITIONS ADDRESS_FILE <LINES\n");
        return EX_USAGE;
    }
    rd_kafka_t *rk = producer_new();
    rd_kafka_mock_cluster_t *cluster = rd_kafka_handle_mock_cluster(rk);
    rd_kafka_resp_err_t error = rd_kafka_mock_topic_create(cluster, argv[1], partitions, 1);
    if (error != RD_KAFKA_RESP_ERR_NO_ERROR)
        fail(argv[1], rd_kafka_err2str(error));
    rd_kafka_topic_t *topic = rd_kafka_topic_new(rk, argv[1], NULL);
    write_address(argv[3], rd_kafka_mock_cluster_bootstraps(cluster));
    for (int next = 0; fgets(line, sizeof line, stdin) != NULL; next = (next + 1) % partitions)
        produce(rk, topic, next, line, strcspn(line, "\n"));
    rd_kafka_flush(rk, WAIT_MS);
    rd_kafka_topic_destroy(topic);
    rd_kafka_destroy(rk);
    return EX_OK;
}
