/* The consumer, alone or in a group: opens and closes it, polls records, commits offsets. */
#include "base/check.h"
#include "base/log.h"
#include "base/mem.h"
#include "ingest/kafka/internal.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* librdkafka 2.2 or newer: the pause of fetching when its queue is full. Older versions need kafka_wake(). */
#define BACKOFF_PROPERTY "fetch.queue.backoff.ms"
#define BACKOFF_MS       "20"
#define CLOSE_TIMEOUT_MS 2000

/* Did the commit fail because the group is rebalancing? The partition's next owner commits, too. */
static bool is_of_rebalance(rd_kafka_resp_err_t error)
{
    return error == RD_KAFKA_RESP_ERR_REBALANCE_IN_PROGRESS ||
           error == RD_KAFKA_RESP_ERR_ILLEGAL_GENERATION || error == RD_KAFKA_RESP_ERR_UNKNOWN_MEMBER_ID ||
           error == RD_KAFKA_RESP_ERR__ASSIGNMENT_LOST || error == RD_KAFKA_RESP_ERR__WAIT_COORD;
}

static void on_commit(rd_kafka_t *rk, rd_kafka_resp_err_t error, rd_kafka_topic_partition_list_t *offsets,
                      void *context)
{
    struct kafka *k = context;
    char quoted[LOG_QUOTE_BYTES];
    (void)rk, (void)offsets;
    atomic_fetch_sub(&k->commits, 1);
    if (error != RD_KAFKA_RESP_ERR_NO_ERROR && error != RD_KAFKA_RESP_ERR__NO_OFFSET)
        log_limited(is_of_rebalance(error) ? LOG_LEVEL_DEBUG : LOG_LEVEL_WARN, "commit_failed",
                    "error=%s note=\"only lag tools read these offsets\"",
                    log_quote(rd_kafka_err2str(error), quoted));
}

static bool set(rd_kafka_conf_t *conf, const char *name, const char *value, struct err *e)
{
    char why[512];
    if (rd_kafka_conf_set(conf, name, value, why, sizeof why) == RD_KAFKA_CONF_OK)
        return true;
    return err_set(e, EX_CONFIG, "kafka.properties.%s: %s", name, why);
}

static bool set_number(rd_kafka_conf_t *conf, const char *name, int64_t value, struct err *e)
{
    char text[32];
    snprintf(text, sizeof text, "%lld", (long long)value);
    return set(conf, name, text, e);
}

bool kafka_configure(rd_kafka_conf_t *conf, const struct kafka_options *o, struct err *e)
{
    kafka_tell_by_log(conf);
    if (!set(conf, "client.id", "tallyd", e))
        return false;
    for (size_t i = 0; i < o->property_count; i++) {
        if (!set(conf, o->properties[i].name, o->properties[i].value, e))
            return false;
    }
    return set(conf, "bootstrap.servers", o->brokers, e);
}

/* Sets defaults that a user may override before kafka_configure(), and properties that exactness needs after
 * it.
 */
static bool configure_consumer(rd_kafka_conf_t *conf, const struct kafka_options *o, bool *needs_waking,
                               struct err *e)
{
    char why[512];
    *needs_waking =
        rd_kafka_conf_set(conf, BACKOFF_PROPERTY, BACKOFF_MS, why, sizeof why) == RD_KAFKA_CONF_UNKNOWN;
    rd_kafka_conf_set_offset_commit_cb(conf, on_commit);
    kafka_group_callbacks(conf);
    return set(conf, "queued.min.messages", "1000000", e) && set(conf, "fetch.wait.max.ms", "50", e) &&
           set(conf, "partition.assignment.strategy", KAFKA_STRATEGY, e) &&
           set_number(conf, "session.timeout.ms", KAFKA_SESSION_MS, e) &&
           set_number(conf, "topic.metadata.refresh.interval.ms", KAFKA_NEW_PARTITIONS_MS, e) &&
           set(conf, "statistics.interval.ms", "5000", e) && set(conf, "check.crcs", "true", e) &&
           set_number(conf, "queued.max.messages.kbytes", o->queue_bytes / 1024, e) &&
           kafka_configure(conf, o, e) &&
           (o->fetch_bytes == 0 || set_number(conf, "fetch.message.max.bytes", o->fetch_bytes, e)) &&
           (o->group == NULL || set(conf, "group.id", o->group, e)) &&
           set(conf, "enable.auto.commit", "false", e) && set(conf, "enable.auto.offset.store", "false", e) &&
           set(conf, "auto.offset.reset", "error", e) && set(conf, "enable.partition.eof", "true", e) &&
           (o->instance[0] == '\0' || set(conf, "group.instance.id", o->instance, e));
}

struct kafka *kafka_open(const struct kafka_options *options, struct err *e)
{
    char why[512];
    struct kafka *k = xcalloc(1, sizeof *k);
    k->polls_singly = options->pauses;
    k->on_stand = options->on_stand;
    k->context = options->context;
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    rd_kafka_conf_set_opaque(conf, k);
    if (!configure_consumer(conf, options, &k->needs_waking, e)) {
        rd_kafka_conf_destroy(conf);
        free(k);
        return NULL;
    }
    kafka_tell_consumer(conf);
    k->rk = rd_kafka_new(RD_KAFKA_CONSUMER, conf, why, sizeof why);
    if (k->rk == NULL) {
        rd_kafka_conf_destroy(conf);
        free(k);
        err_set(e, EX_CONFIG, "cannot make a Kafka consumer: %s", why);
        return NULL;
    }
    if (options->group != NULL)
        k->queue = rd_kafka_queue_get_consumer(k->rk);
    return k;
}

/* Runs in a thread of its own, since it may hang. */
static void *destroy(void *context)
{
    struct kafka *k = context;
    if (k->is_member)
        kafka_leave(k);
    if (!kafka_is_destroyable(k))
        return NULL;
    /* A consumer without a group has nothing to leave: consumer_close() would only wait. A member has
     * left. */
    rd_kafka_destroy_flags(k->rk, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
    kafka_group_fini(k);
    free(k);
    return NULL;
}

void kafka_close(struct kafka *k)
{
    pthread_t thread;
    if (k == NULL)
        return;
    kafka_read_fini(k);
    if (!k->is_member)
        rd_kafka_assign(k->rk, NULL);
    if (k->queue != NULL)
        rd_kafka_queue_destroy(k->queue);
    /* librdkafka 2.0 sometimes waits for ever for a broker that was restarted. Its thread may wait alone: the
     * consumer is not needed any more, and a drain must end. */
    if (pthread_create(&thread, NULL, destroy, k) != 0) {
        destroy(k);
        return;
    }
    const struct timespec until = clock_timespec_in(CLOSE_TIMEOUT_MS);
    if (pthread_clockjoin_np(thread, NULL, CLOCK_MONOTONIC, &until) == 0)
        return;
    log_warn("close_hangs",
             "reason=\"librdkafka still waits for a broker\" next=\"continuing without closing it\"");
    pthread_detach(thread);
}

bool kafka_fail(rd_kafka_resp_err_t error, struct err *e, const char *doing, const char *topic)
{
    switch (error) {
    case RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED:
    case RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED:
    case RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED:
    case RD_KAFKA_RESP_ERR_SASL_AUTHENTICATION_FAILED:
        return err_set_retryable(e, EX_NOPERM, "%s topic %s: %s; give this user the right to read it", doing,
                                 topic, rd_kafka_err2str(error));
    case RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART:
    case RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC:
    case RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION:
        return err_set_retryable(e, EX_UNAVAILABLE, "there is no topic %s: create it, or correct its name",
                                 topic);
    default:
        return err_set_retryable(e, EX_UNAVAILABLE,
                                 "%s topic %s: %s; check that a broker of kafka.brokers is reachable", doing,
                                 topic, rd_kafka_err2str(error));
    }
}

static rd_kafka_topic_partition_list_t *list_of(const struct kafka_offset *offsets, size_t count)
{
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new((int)count);
    for (size_t i = 0; i < count; i++)
        rd_kafka_topic_partition_list_add(list, offsets[i].topic, offsets[i].partition)->offset =
            offsets[i].offset;
    return list;
}

/* Asks for offsets or times of each partition. A list may hold each partition once, so ends need another
 * call. */
static bool ask_offsets(struct kafka *k, struct kafka_offset *offsets, size_t count, struct err *e)
{
    rd_kafka_topic_partition_list_t *list = list_of(offsets, count);
    rd_kafka_resp_err_t error = rd_kafka_offsets_for_times(k->rk, list, KAFKA_TIMEOUT_MS);
    const char *topic = offsets[0].topic;
    for (size_t i = 0; i < count && error == RD_KAFKA_RESP_ERR_NO_ERROR; i++) {
        error = list->elems[i].err;
        topic = offsets[i].topic;
        offsets[i].offset = list->elems[i].offset;
    }
    rd_kafka_topic_partition_list_destroy(list);
    return error == RD_KAFKA_RESP_ERR_NO_ERROR || kafka_fail(error, e, "asking for the offsets of", topic);
}

/* Asks for the end of each partition. */
static bool ask_ends(struct kafka *k, const struct kafka_offset *offsets, struct kafka_offset *ends,
                     size_t count, struct err *e)
{
    for (size_t i = 0; i < count; i++)
        ends[i] = (struct kafka_offset){offsets[i].topic, offsets[i].partition, KAFKA_LATEST};
    return ask_offsets(k, ends, count, e);
}

/* A partition without a record of that time or later gets its end. The ends are asked for first: a record
 * that arrives between the two requests is then behind the end, or the second answer has it. */
bool kafka_offsets(struct kafka *k, struct kafka_offset *offsets, size_t count, struct err *e)
{
    struct kafka_offset *ends = xcalloc(count + 1, sizeof *ends);
    bool has_time = false;
    for (size_t i = 0; i < count; i++)
        has_time = has_time || offsets[i].offset >= 0;
    bool good = (!has_time || ask_ends(k, offsets, ends, count, e)) &&
                (count == 0 || ask_offsets(k, offsets, count, e));
    for (size_t i = 0; good && has_time && i < count; i++) {
        if (offsets[i].offset < 0)
            offsets[i].offset = ends[i].offset;
    }
    free(ends);
    return good;
}

bool kafka_assign(struct kafka *k, const struct kafka_offset *offsets, size_t count, struct err *e)
{
    ASSERT(count > 0);
    rd_kafka_topic_partition_list_t *list = list_of(offsets, count);
    rd_kafka_resp_err_t error = rd_kafka_assign(k->rk, list);
    rd_kafka_topic_partition_list_destroy(list);
    return error == RD_KAFKA_RESP_ERR_NO_ERROR || kafka_fail(error, e, "assigning", offsets[0].topic);
}

size_t kafka_poll(struct kafka *k, rd_kafka_message_t **messages, size_t max, int timeout_ms)
{
    if (k->polls_singly)
        return kafka_poll_singly(k, messages, max, timeout_ms);
    ssize_t n = rd_kafka_consume_batch_queue(k->queue, timeout_ms, messages, max);
    return n > 0 ? (size_t)n : 0;
}

void kafka_pause(struct kafka *k, const char *topic, int32_t partition, bool is_paused)
{
    const struct kafka_offset of = {topic, partition, 0};
    rd_kafka_topic_partition_list_t *list = list_of(&of, 1);
    ASSERT(k->polls_singly);
    rd_kafka_resp_err_t error =
        is_paused ? rd_kafka_pause_partitions(k->rk, list) : rd_kafka_resume_partitions(k->rk, list);
    if (error == RD_KAFKA_RESP_ERR_NO_ERROR)
        error = list->elems[0].err;
    if (error != RD_KAFKA_RESP_ERR_NO_ERROR)
        log_limited(LOG_LEVEL_WARN, "pause_failed", "topic=%s partition=%d error=\"%s\"", topic, partition,
                    rd_kafka_err2str(error));
    rd_kafka_topic_partition_list_destroy(list);
}

static bool find_header(const struct record *r, const char *name, struct slice *value)
{
    rd_kafka_headers_t *headers;
    const void *bytes;
    size_t len;
    if (rd_kafka_message_headers(r->message, &headers) != RD_KAFKA_RESP_ERR_NO_ERROR ||
        rd_kafka_header_get_last(headers, name, &bytes, &len) != RD_KAFKA_RESP_ERR_NO_ERROR || bytes == NULL)
        return false;
    *value = slice_of(bytes, len);
    return true;
}

int64_t kafka_timestamp(const rd_kafka_message_t *m)
{
    rd_kafka_timestamp_type_t type;
    int64_t at_ms = rd_kafka_message_timestamp(m, &type);
    return type == RD_KAFKA_TIMESTAMP_NOT_AVAILABLE ? -1 : at_ms;
}

void kafka_record(rd_kafka_message_t *m, const char *topic, struct record *r)
{
    *r = (struct record){.value = slice_of(m->payload, m->len),
                         .key = slice_of(m->key, m->key_len),
                         .topic = slice_text(topic),
                         .partition = m->partition,
                         .offset = m->offset,
                         .timestamp_ms = kafka_timestamp(m),
                         .header = find_header,
                         .message = m};
}

int32_t kafka_broker(const rd_kafka_message_t *m)
{
    return rd_kafka_message_broker_id(m);
}

int64_t kafka_troubles(const struct kafka *k)
{
    return atomic_load(&k->troubles);
}

bool kafka_is_lost(rd_kafka_resp_err_t error)
{
    switch (error) {
    case RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET:
    case RD_KAFKA_RESP_ERR_OFFSET_OUT_OF_RANGE:
    case RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART:
    case RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC:
    case RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION:
    case RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED:
        return true;
    default:
        return false;
    }
}

bool kafka_is_readable(const rd_kafka_message_t *m, const char *topic, struct err *e)
{
    if (m->err != RD_KAFKA_RESP_ERR__BAD_MSG && m->err != RD_KAFKA_RESP_ERR__BAD_COMPRESSION &&
        m->err != RD_KAFKA_RESP_ERR__NOT_IMPLEMENTED)
        return true;
    return err_set_retryable(e, EX_UNAVAILABLE,
                             "topic %s, partition %d: the records from offset %lld on cannot be read (%s): "
                             "mend the broker's log, or delete these records and use --accept",
                             topic, m->partition, (long long)m->offset, rd_kafka_message_errstr(m));
}

void kafka_serve(struct kafka *k)
{
    rd_kafka_poll(k->rk, 0);
}

void kafka_wake(struct kafka *k)
{
    int64_t low, high;
    rd_kafka_topic_partition_list_t *list = NULL;
    if (!k->needs_waking || rd_kafka_assignment(k->rk, &list) != RD_KAFKA_RESP_ERR_NO_ERROR)
        return;
    if (list->cnt > 0) {
        /* A partition in turn, to reach every leader in time; the answer does not matter. */
        rd_kafka_topic_partition_t *p = &list->elems[k->wake_next++ % list->cnt];
        (void)!rd_kafka_query_watermark_offsets(k->rk, p->topic, p->partition, &low, &high,
                                                KAFKA_WAKE_MS * 10);
    }
    rd_kafka_topic_partition_list_destroy(list);
}

int64_t kafka_end(struct kafka *k, const char *topic, int32_t partition)
{
    int64_t low, high;
    if (rd_kafka_get_watermark_offsets(k->rk, topic, partition, &low, &high) != RD_KAFKA_RESP_ERR_NO_ERROR)
        return -1;
    return high;
}

int64_t kafka_queued_bytes(const struct kafka *k)
{
    return k->queued_bytes;
}

void kafka_commit(struct kafka *k, const struct kafka_offset *offsets, size_t count)
{
    rd_kafka_topic_partition_list_t *list = list_of(offsets, count);
    if (rd_kafka_commit(k->rk, list, true) == RD_KAFKA_RESP_ERR_NO_ERROR)
        atomic_fetch_add(&k->commits, 1);
    rd_kafka_topic_partition_list_destroy(list);
}

void kafka_finish_commits(struct kafka *k, int timeout_ms)
{
    for (; atomic_load(&k->commits) > 0 && timeout_ms > 0; timeout_ms -= 10)
        rd_kafka_poll(k->rk, 10);
}
