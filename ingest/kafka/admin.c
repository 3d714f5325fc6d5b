/* Properties of a topic: its partitions and its cleanup policy. */
#include "ingest/kafka/internal.h"

#include "base/check.h"

#include <string.h>
#include <time.h>

/* A broker that has just started does not know all topics at once. */
#define FIND_TRIES    10
#define FIND_AGAIN_MS 200

static rd_kafka_resp_err_t count_partitions(struct kafka *k, const char *topic, int32_t *count)
{
    const struct rd_kafka_metadata *metadata = NULL;
    rd_kafka_topic_t *rkt = rd_kafka_topic_new(k->rk, topic, NULL);
    if (rkt == NULL)
        return rd_kafka_last_error();
    rd_kafka_resp_err_t error = rd_kafka_metadata(k->rk, 0, rkt, &metadata, KAFKA_TIMEOUT_MS);
    rd_kafka_topic_destroy(rkt);
    if (error != RD_KAFKA_RESP_ERR_NO_ERROR)
        return error;
    kafka_note_answer();
    ASSERT(metadata->topic_cnt == 1);
    error = metadata->topics[0].err;
    *count = metadata->topics[0].partition_cnt;
    rd_kafka_metadata_destroy(metadata);
    return error;
}

bool kafka_partitions(struct kafka *k, const char *topic, int32_t *count, struct err *e)
{
    rd_kafka_resp_err_t error = count_partitions(k, topic, count);
    if (error == RD_KAFKA_RESP_ERR_NO_ERROR && *count == 0)
        error = RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART;
    return error == RD_KAFKA_RESP_ERR_NO_ERROR || kafka_fail(error, e, "asking for", topic);
}

bool kafka_find_topic(struct kafka *k, const char *topic, int32_t *partitions, struct err *e)
{
    rd_kafka_resp_err_t error = RD_KAFKA_RESP_ERR_NO_ERROR;
    *partitions = 0;
    for (int tries = 0; *partitions == 0 && tries < FIND_TRIES; tries++) {
        if (tries > 0)
            nanosleep(&(struct timespec){.tv_nsec = FIND_AGAIN_MS * 1000000L}, NULL);
        error = count_partitions(k, topic, partitions);
        if (error != RD_KAFKA_RESP_ERR_NO_ERROR)
            *partitions = 0;
        bool is_missing =
            error == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART || error == RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC;
        if (error != RD_KAFKA_RESP_ERR_NO_ERROR && !is_missing)
            return kafka_fail(error, e, "asking for", topic);
    }
    return true;
}

static enum kafka_policy policy_of(const rd_kafka_ConfigResource_t *resource)
{
    size_t count;
    const rd_kafka_ConfigEntry_t **entries = rd_kafka_ConfigResource_configs(resource, &count);
    for (size_t i = 0; i < count; i++) {
        const char *value = rd_kafka_ConfigEntry_value(entries[i]);
        if (strcmp(rd_kafka_ConfigEntry_name(entries[i]), "cleanup.policy") == 0 && value != NULL)
            return strstr(value, "compact") != NULL ? KAFKA_COMPACTS : KAFKA_DELETES;
    }
    return KAFKA_POLICY_UNKNOWN;
}

static enum kafka_policy read_policy(rd_kafka_queue_t *queue)
{
    enum kafka_policy policy = KAFKA_POLICY_UNKNOWN;
    rd_kafka_event_t *event = rd_kafka_queue_poll(queue, KAFKA_TIMEOUT_MS);
    if (event == NULL)
        return policy;
    const rd_kafka_DescribeConfigs_result_t *result = rd_kafka_event_DescribeConfigs_result(event);
    size_t count = 0;
    const rd_kafka_ConfigResource_t **resources =
        result != NULL && rd_kafka_event_error(event) == RD_KAFKA_RESP_ERR_NO_ERROR
            ? rd_kafka_DescribeConfigs_result_resources(result, &count)
            : NULL;
    if (count == 1 && rd_kafka_ConfigResource_error(resources[0]) == RD_KAFKA_RESP_ERR_NO_ERROR)
        policy = policy_of(resources[0]);
    rd_kafka_event_destroy(event);
    return policy;
}

enum kafka_policy kafka_policy(struct kafka *k, const char *topic)
{
    char error[256];
    rd_kafka_queue_t *queue = rd_kafka_queue_new(k->rk);
    rd_kafka_AdminOptions_t *options = rd_kafka_AdminOptions_new(k->rk, RD_KAFKA_ADMIN_OP_DESCRIBECONFIGS);
    rd_kafka_ConfigResource_t *resource = rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_TOPIC, topic);
    (void)rd_kafka_AdminOptions_set_request_timeout(options, KAFKA_TIMEOUT_MS, error, sizeof error);
    rd_kafka_DescribeConfigs(k->rk, &resource, 1, options, queue);
    enum kafka_policy policy = read_policy(queue);
    rd_kafka_ConfigResource_destroy(resource);
    rd_kafka_AdminOptions_destroy(options);
    rd_kafka_queue_destroy(queue);
    return policy;
}
