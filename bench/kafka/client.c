#include "bench/kafka/client.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

enum { ERROR_BYTES = 512, FLUSH_MS = 60000 };

void client_fail(const char *what, const char *why)
{
    fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what, why);
    exit(EX_SOFTWARE);
}

static void set(rd_kafka_conf_t *conf, const char *name, const char *value)
{
    char said[ERROR_BYTES];
    if (rd_kafka_conf_set(conf, name, value, said, sizeof(said)) != RD_KAFKA_CONF_OK)
        client_fail(name, said);
}

static void on_delivery(rd_kafka_t *rk, const rd_kafka_message_t *message, void *opaque)
{
    (void)rk;
    (void)opaque;
    if (message->err)
        client_fail("a message", rd_kafka_err2str(message->err));
}

rd_kafka_t *client_new(rd_kafka_type_t type, const char *address, const struct setting *settings,
                       char **properties)
{
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    char said[ERROR_BYTES];

    set(conf, "bootstrap.servers", address);
    for (; settings->name; settings++)
        set(conf, settings->name, settings->value);
    for (; *properties; properties++) {
        char *value = strchr(*properties, '=');
        if (!value)
            client_fail(*properties, "expected PROPERTY=VALUE");
        *value = '\0';
        set(conf, *properties, value + 1);
    }
    if (type == RD_KAFKA_PRODUCER) {
        set(conf, "delivery.report.only.error", "true");
        rd_kafka_conf_set_dr_msg_cb(conf, on_delivery);
    }
    rd_kafka_t *rk = rd_kafka_new(type, conf, said, sizeof(said));
    if (!rk)
        client_fail("rd_kafka_new", said);
    return rk;
}

void client_send(rd_kafka_t *rk, rd_kafka_topic_t *rkt, rd_kafka_message_t *messages, int count)
{
    while (count > 0) {
        int left = 0;
        rd_kafka_produce_batch(rkt, RD_KAFKA_PARTITION_UA, RD_KAFKA_MSG_F_COPY | RD_KAFKA_MSG_F_PARTITION,
                               messages, count);
        for (int i = 0; i < count; i++) {
            if (messages[i].err == RD_KAFKA_RESP_ERR__QUEUE_FULL)
                messages[left++] = messages[i];
            else if (messages[i].err)
                client_fail("rd_kafka_produce_batch", rd_kafka_err2str(messages[i].err));
        }
        rd_kafka_poll(rk, left > 0 ? 10 : 0);
        count = left;
    }
}

void client_flush(rd_kafka_t *rk)
{
    rd_kafka_resp_err_t err = rd_kafka_flush(rk, FLUSH_MS);
    if (err)
        client_fail("rd_kafka_flush", rd_kafka_err2str(err));
}
