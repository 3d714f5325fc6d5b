/* A member of a consumer group: librdkafka's callback only notes the group's decision. kafka_answer() carries
 * it out, after the caller has counted what it polled before. */
#include "base/check.h"
#include "base/mem.h"
#include "ingest/kafka/internal.h"

#include <stdlib.h>
#include <string.h>

#define FATAL_BYTES  256
#define STATE_MENDED 0x02030000 /* librdkafka#4312 */

static bool is_cooperative(rd_kafka_t *rk)
{
    const char *protocol = rd_kafka_rebalance_protocol(rk);
    return protocol != NULL && strcmp(protocol, "COOPERATIVE") == 0;
}

/* The eager protocol revokes all partitions, then assigns all anew; the cooperative one moves only some. */
static rd_kafka_resp_err_t carry_out(rd_kafka_t *rk, enum kafka_decision decision,
                                     const rd_kafka_topic_partition_list_t *list)
{
    rd_kafka_error_t *error;
    if (!is_cooperative(rk))
        return rd_kafka_assign(rk, decision == KAFKA_GIVEN ? list : NULL);
    error = decision == KAFKA_GIVEN ? rd_kafka_incremental_assign(rk, list)
                                    : rd_kafka_incremental_unassign(rk, list);
    rd_kafka_resp_err_t code = error != NULL ? rd_kafka_error_code(error) : RD_KAFKA_RESP_ERR_NO_ERROR;
    if (error != NULL)
        rd_kafka_error_destroy(error);
    return code;
}

static void forget_rebalance(struct kafka *k)
{
    for (size_t i = 0; i < k->rebalance.count; i++)
        free(k->rebalance.partitions[i].topic);
    free(k->rebalance.partitions);
    k->rebalance = (struct kafka_rebalance){0};
    k->has_rebalance = false;
}

/* Runs within rd_kafka_consumer_poll(), so the caller of kafka_poll() sees the decision. */
static void on_rebalance(rd_kafka_t *rk, rd_kafka_resp_err_t what, rd_kafka_topic_partition_list_t *list,
                         void *context)
{
    struct kafka *k = context;
    k->was_given = true;
    enum kafka_decision decision = what == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS ? KAFKA_GIVEN
                                   : rd_kafka_assignment_lost(rk)               ? KAFKA_LOST
                                                                                : KAFKA_TAKEN;
    if (atomic_load(&k->is_leaving)) { /* no record of them is in flight any more */
        (void)carry_out(rk, KAFKA_TAKEN, list);
        return;
    }
    forget_rebalance(k); /* an unanswered decision is outdated */
    struct kafka_rebalance *r = &k->rebalance;
    r->decision = decision;
    r->count = (size_t)list->cnt;
    r->partitions = xcalloc(r->count + 1, sizeof *r->partitions);
    for (size_t i = 0; i < r->count; i++)
        r->partitions[i] = (struct kafka_partition){xstrdup(list->elems[i].topic), list->elems[i].partition};
    k->has_rebalance = true;
}

void kafka_group_callbacks(rd_kafka_conf_t *conf)
{
    rd_kafka_conf_set_rebalance_cb(conf, on_rebalance);
}

void kafka_group_fini(struct kafka *k)
{
    forget_rebalance(k);
}

bool kafka_subscribe(struct kafka *k, const char *const *topics, size_t count, struct err *e)
{
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new((int)count);
    for (size_t i = 0; i < count; i++)
        rd_kafka_topic_partition_list_add(list, topics[i], RD_KAFKA_PARTITION_UA);
    rd_kafka_resp_err_t error = rd_kafka_subscribe(k->rk, list);
    rd_kafka_topic_partition_list_destroy(list);
    if (error != RD_KAFKA_RESP_ERR_NO_ERROR)
        return kafka_fail(error, e, "subscribing to", topics[0]);
    k->is_member = k->polls_singly = true;
    return true;
}

const struct kafka_rebalance *kafka_rebalance(const struct kafka *k)
{
    return k->has_rebalance ? &k->rebalance : NULL;
}

bool kafka_answer(struct kafka *k, const int64_t *offsets, struct err *e)
{
    ASSERT(k->has_rebalance);
    const struct kafka_rebalance *r = &k->rebalance;
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new((int)r->count);
    for (size_t i = 0; i < r->count; i++) {
        rd_kafka_topic_partition_t *p =
            rd_kafka_topic_partition_list_add(list, r->partitions[i].topic, r->partitions[i].number);
        if (r->decision == KAFKA_GIVEN)
            p->offset = offsets[i];
    }
    rd_kafka_resp_err_t error = carry_out(k->rk, r->decision, list);
    rd_kafka_topic_partition_list_destroy(list);
    forget_rebalance(k);
    return error == RD_KAFKA_RESP_ERR_NO_ERROR ||
           err_set_retryable(e, EX_UNAVAILABLE, "cannot apply the group's assignment: %s",
                             rd_kafka_err2str(error));
}

/* rd_kafka_consume_batch_queue() may lose messages: see kafka.h. */
size_t kafka_poll_singly(struct kafka *k, rd_kafka_message_t **messages, size_t max, int timeout_ms)
{
    size_t n = 0;
    while (n < max && !k->has_rebalance) {
        rd_kafka_message_t *m = rd_kafka_consumer_poll(k->rk, n == 0 ? timeout_ms : 0);
        if (m == NULL)
            break;
        messages[n++] = m;
    }
    return n;
}

bool kafka_is_fit(struct kafka *k, struct err *e)
{
    char why[FATAL_BYTES];
    rd_kafka_resp_err_t error = rd_kafka_fatal_error(k->rk, why, sizeof why);
    if (error == RD_KAFKA_RESP_ERR_NO_ERROR)
        return true;
    if (error == RD_KAFKA_RESP_ERR_FENCED_INSTANCE_ID)
        return err_set(
            e, EX_CONFIG,
            "another tallyd has joined the group under the same kafka.instance: give each its own");
    return err_set_retryable(e, EX_UNAVAILABLE, "librdkafka: %s", why);
}

bool kafka_is_destroyable(const struct kafka *k)
{
    return !k->is_member || k->was_given || rd_kafka_version() >= STATE_MENDED;
}

void kafka_leave(struct kafka *k)
{
    atomic_store(&k->is_leaving, true);
    if (k->has_rebalance) { /* consumer_close() would wait for the answer */
        struct err ignored;
        k->rebalance.decision = KAFKA_TAKEN;
        (void)!kafka_answer(k, NULL, &ignored);
    }
    rd_kafka_consumer_close(k->rk);
}
