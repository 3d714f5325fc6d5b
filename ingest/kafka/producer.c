#include "base/mem.h"
#include "ingest/kafka/internal.h"

#include <stdatomic.h>
#include <stdlib.h>

#define FLUSH_TIMEOUT_MS  10000
#define PURGE_TIMEOUT_MS  100
#define POLL_MS           100
#define MESSAGE_BYTES_MAX "1000000000" /* leaves the limit to the broker */

struct kafka_producer {
    rd_kafka_t *rk;
    char *topic;
    int failed; /* messages that failed since the last flush */
    rd_kafka_resp_err_t failure;
    bool was_too_large; /* the last failure was a message that is too large */
};

static void on_delivery(rd_kafka_t *rk, const rd_kafka_message_t *m, void *context)
{
    struct kafka_producer *p = context;
    (void)rk;
    if (m->err == RD_KAFKA_RESP_ERR_NO_ERROR)
        return;
    p->failed++;
    p->failure = m->err;
}

struct kafka_producer *kafka_producer_open(const struct kafka_options *options, const char *topic,
                                           struct err *e)
{
    char why[512];
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    struct kafka_producer *p = xcalloc(1, sizeof *p);
    rd_kafka_conf_set_opaque(conf, p);
    rd_kafka_conf_set_dr_msg_cb(conf, on_delivery);
    bool good = (rd_kafka_conf_set(conf, "message.max.bytes", MESSAGE_BYTES_MAX, why, sizeof why) ==
                     RD_KAFKA_CONF_OK ||
                 err_set(e, EX_CONFIG, "cannot make a Kafka producer: %s", why)) &&
                kafka_configure(conf, options, e);
    /* All in-sync replicas acknowledge, librdkafka's default. The producer is not idempotent: an idempotent
     * one can fail for good, with OUT_OF_ORDER_SEQUENCE_NUMBER after its broker was killed, and dead letters
     * may repeat anyhow. */
    if (good && (p->rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, why, sizeof why)) == NULL)
        good = err_set(e, EX_CONFIG, "cannot make a Kafka producer: %s", why);
    if (!good) {
        rd_kafka_conf_destroy(conf);
        free(p);
        return NULL;
    }
    p->topic = xstrdup(topic);
    return p;
}

void kafka_producer_close(struct kafka_producer *p)
{
    if (p == NULL)
        return;
    rd_kafka_purge(p->rk, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
    rd_kafka_flush(p->rk, 0);
    rd_kafka_destroy(p->rk);
    free(p->topic);
    free(p);
}

/* Drops the rest of a failed attempt: the caller retries, and it would be sent twice. */
static void forget(struct kafka_producer *p)
{
    rd_kafka_purge(p->rk, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
    rd_kafka_flush(p->rk, PURGE_TIMEOUT_MS);
    p->failed = 0;
}

static bool fail(struct kafka_producer *p, rd_kafka_resp_err_t error, struct err *e)
{
    forget(p);
    p->was_too_large =
        error == RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE || error == RD_KAFKA_RESP_ERR_RECORD_LIST_TOO_LARGE;
    return err_set_retryable(e, EX_UNAVAILABLE, "cannot write rejected records to topic %s: %s", p->topic,
                             rd_kafka_err2str(error));
}

bool kafka_produce(struct kafka_producer *p, struct slice key, struct slice value,
                   const struct kafka_header *headers, size_t header_count, struct err *e)
{
    rd_kafka_resp_err_t error;
    rd_kafka_headers_t *list = rd_kafka_headers_new(header_count);
    for (size_t i = 0; i < header_count; i++)
        rd_kafka_header_add(list, headers[i].name, -1, headers[i].value.ptr, (ssize_t)headers[i].value.len);
    int waited_ms = 0;
    while ((error = rd_kafka_producev(
                p->rk, RD_KAFKA_V_TOPIC(p->topic), RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY),
                RD_KAFKA_V_KEY(key.ptr, key.len), RD_KAFKA_V_VALUE((void *)(uintptr_t)value.ptr, value.len),
                RD_KAFKA_V_HEADERS(list), RD_KAFKA_V_END)) == RD_KAFKA_RESP_ERR__QUEUE_FULL &&
           p->failed == 0 && waited_ms < FLUSH_TIMEOUT_MS) {
        rd_kafka_poll(p->rk, POLL_MS);
        waited_ms += POLL_MS;
    }
    if (error == RD_KAFKA_RESP_ERR_NO_ERROR)
        return true; /* the message owns the headers now */
    rd_kafka_headers_destroy(list);
    return fail(p, error, e);
}

bool kafka_flush(struct kafka_producer *p, struct err *e)
{
    rd_kafka_resp_err_t error = rd_kafka_flush(p->rk, FLUSH_TIMEOUT_MS);
    if (p->failed > 0)
        return fail(p, p->failure, e);
    return error == RD_KAFKA_RESP_ERR_NO_ERROR || fail(p, error, e);
}

bool kafka_was_too_large(const struct kafka_producer *p)
{
    return p->was_too_large;
}
