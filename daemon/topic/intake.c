#include "daemon/topic/intake.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/failpoint.h"
#include "base/log.h"
#include "base/mem.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

/* The reject function of an intake's lane. The dead letter is the whole message, once, if the record is
 * unwrapped; otherwise the line or element. */
static void note_reject(void *context, const struct record *r, struct slice bytes, struct reject why)
{
    struct intake *in = context;
    const struct decode *decode = &in->current->partition->topic->config->decode;
    bool is_wrapped = decode->step_count > 1;
    feed_note_reject(&in->feed, decode, r, bytes, why);
    if (!in->shared->feeds->has_dead_letters || why.reason == REJECT_TOMBSTONE ||
        (is_wrapped && in->has_dead_letter))
        return;
    dead_letters_add(&in->feed.open.dead_letters, r, is_wrapped ? r->value : bytes, why);
    in->has_dead_letter = true;
}

/* Keep the last record of each delivery as a witness, and of further runs while there is room. Thinning a
 * full list at each run would cost more than it proves. */
static void add_witness(struct partition *p, bool is_last)
{
    if (p->tail_len > 0 && (is_last || p->witnesses.count < WITNESSES_MAX))
        witnesses_add(&p->witnesses, p->next - p->tail_len, p->tail_hash);
}

/* The feed calls it before it seals. */
static void finish_ranges(void *context)
{
    struct intake *in = context;
    for (size_t i = 0; i < in->feed.open.range_count; i++) {
        struct partition *p = in->open.list[i].partition;
        add_witness(p, true);
        in->feed.open.ranges[i].witnesses = p->witnesses;
    }
    struct intake_ranges used = in->sealed;
    in->sealed = in->open;
    in->open = used;
}

void intake_init(struct intake *in, struct intake_shared *shared, uint32_t number, struct topic *topics,
                 size_t topic_count, struct heartbeat *heartbeat)
{
    *in = (struct intake){.shared = shared, .number = number, .topics = topics, .topic_count = topic_count};
    feed_init(&in->feed, shared->feeds, number, &shared->abandon, heartbeat, note_reject, finish_ranges, in);
    in->chains = xcalloc(topic_count, sizeof *in->chains);
    for (size_t i = 0; i < topic_count; i++)
        in->chains[i] = chain_new(&topics[i].config->decode, shared->feeds->line_max);
}

void intake_fini(struct intake *in)
{
    for (size_t i = 0; i < in->topic_count; i++)
        chain_free(in->chains[i]);
    free(in->chains);
    feed_fini(&in->feed);
    free(in->open.list);
    free(in->sealed.list);
    free(in->given);
    *in = (struct intake){.feed.lane.heartbeat = in->feed.lane.heartbeat};
}

static struct range *feed_range(struct intake *in, const struct intake_range *r)
{
    return &in->feed.open.ranges[r - in->open.list];
}

static struct intake_range *range_of(struct intake *in, struct partition *p)
{
    struct range range;
    if (p->range < in->feed.open.range_count && in->open.list[p->range].partition == p)
        return &in->open.list[p->range];
    partition_range(p, &range);
    range_set_latest(&range, &p->latest, in->feed.lane.latest_ms);
    p->range = feed_add_range(&in->feed, &range, p->topic->config);
    in->open.list = xgrow(in->open.list, &in->open.capacity, p->range + 1, sizeof *in->open.list);
    struct intake_range *r = &in->open.list[p->range];
    r->partition = p;
    r->edge_count = 0;
    r->empty = 0;
    return r;
}

/* Note the time of a run's last record. Brokers that set the time do so in order, so it is the run's newest.
 */
static void note_broker_time(struct intake_shared *sh, int64_t at_ms)
{
    int64_t newest_ms = atomic_load_explicit(sh->broker_ms, memory_order_relaxed);
    at_ms = at_ms >= 0 ? at_ms : INT64_MAX; /* the record has no time */
    while (at_ms > newest_ms && !atomic_compare_exchange_weak(sh->broker_ms, &newest_ms, at_ms))
        continue;
}

static void advance(struct range *r, struct partition *p, int64_t to, uint64_t tail_hash,
                    int64_t tail_distance)
{
    r->to = p->next = to;
    r->tail_hash = p->tail_hash = tail_hash;
    r->tail_len = p->tail_len = tail_distance <= UINT32_MAX ? (uint32_t)tail_distance : 0;
}

/* Note an edge before `m` is counted, if the connection changed since the partition's last record. */
static void note_edge(struct intake *in, struct intake_range *r, const rd_kafka_message_t *m)
{
    struct partition *p = r->partition;
    const struct range *range = feed_range(in, r);
    int32_t broker = kafka_broker(m);
    if (range->to > range->from && p->tail_len > 0 && (p->broker != broker || p->troubles != in->troubles)) {
        r->edge_count -= r->edge_count == INTAKE_EDGES_MAX;
        r->edges[r->edge_count++] = (struct witness){p->next - p->tail_len, p->tail_hash};
    }
    p->broker = broker;
    p->troubles = in->troubles;
}

/* End the run of one partition's messages: add its events, take its books, and advance its offset. */
static void end_run(struct intake *in)
{
    struct intake_range *r = in->current;
    if (r == NULL)
        return;
    lane_add(&in->feed.lane);
    feed_take_books(&in->feed);
    if (in->current_last != NULL) {
        note_broker_time(in->shared, kafka_timestamp(in->current_last));
        r->empty +=
            in->current_last->offset + 1 - r->partition->next - (in->feed.open.messages - in->current_begun);
        advance(feed_range(in, r), r->partition, in->current_last->offset + 1, compare_hash(in->current_last),
                1);
    }
    add_witness(r->partition, false);
    in->current = NULL;
    in->current_last = NULL;
    in->current_rkt = NULL;
}

void intake_fail(struct intake *in, const struct err *why)
{
    pthread_mutex_lock(&in->shared->feeds->lanes.lock);
    /* the first error, unless a final one follows */
    if (!in->has_failed || (in->error.retryable && !why->retryable))
        in->error = *why;
    in->has_failed = true;
    pthread_mutex_unlock(&in->shared->feeds->lanes.lock);
}

struct topic *intake_topic(struct intake *in, const char *name)
{
    for (size_t i = 0; i < in->topic_count; i++) {
        if (strcmp(in->topics[i].name, name) == 0)
            return &in->topics[i];
    }
    return NULL;
}

static struct partition *find_partition(struct intake *in, const rd_kafka_message_t *m)
{
    struct topic *t = m->rkt != NULL ? intake_topic(in, rd_kafka_topic_name(m->rkt)) : NULL;
    return t != NULL && m->partition >= 0 && m->partition < t->count ? &t->partitions[m->partition] : NULL;
}

/* Advance to the end of the partition, behind its last record. Between them are markers of transactions, or
 * records that were aborted or compacted away. Otherwise retention might later report them as lost records.
 */
static void pass_over(struct intake *in, struct partition *p, int64_t to)
{
    int64_t distance = p->tail_len > 0 ? p->tail_len + (to - p->next) : 0;
    struct intake_range *r = range_of(in, p);
    r->empty += to - p->next;
    advance(feed_range(in, r), p, to, p->tail_hash, distance);
}

static void take_error(struct intake *in, struct partition *p, const rd_kafka_message_t *m)
{
    struct err e = {0};
    char quoted[LOG_QUOTE_BYTES];
    if (m->err == RD_KAFKA_RESP_ERR__PARTITION_EOF) {
        if (p != NULL && m->offset > p->next)
            pass_over(in, p, m->offset);
        return;
    }
    log_limited(LOG_LEVEL_WARN, "consume_error", "topic=%s partition=%d error=%s",
                p != NULL ? p->topic->name : "-", m->partition,
                log_quote(rd_kafka_message_errstr(m), quoted));
    if (m->err == RD_KAFKA_RESP_ERR_INCONSISTENT_GROUP_PROTOCOL) {
        err_set_retryable(&e, EX_UNAVAILABLE,
                          "the group's members have different assignment strategies: give all of them the "
                          "same partition.assignment.strategy (kafka.properties)");
        intake_fail(in, &e);
    }
    if (p != NULL && !kafka_is_readable(m, p->topic->name, &e))
        intake_fail(in, &e);
    if (!kafka_is_lost(m->err))
        return;
    /* The next session finds out the cause, and reports it. */
    err_set_retryable(&e, EX_UNAVAILABLE, "topic %s, partition %d: %s", p != NULL ? p->topic->name : "-",
                      m->partition, rd_kafka_err2str(m->err));
    intake_fail(in, &e);
}

/* Counted records come again: whatever the cause, begin a new session from the store's positions. */
static bool fail_backwards(struct intake *in, const struct partition *p, const rd_kafka_message_t *m)
{
    struct err e = {0};
    err_set_retryable(&e, EX_UNAVAILABLE, "topic %s, partition %d: offset %lld came after %lld",
                      p->topic->name, p->number, (long long)m->offset, (long long)p->next - 1);
    intake_fail(in, &e);
    return false;
}

/* Begin a run with `m`. False: the message must not be counted. */
static bool begin_run(struct intake *in, struct partition *p, rd_kafka_message_t *m)
{
    ASSERT(p != NULL);
    if (UNLIKELY(m->offset < p->next))
        return fail_backwards(in, p, m);
    in->current = range_of(in, p);
    note_edge(in, in->current, m);
    in->current_rkt = m->rkt;
    in->current_begun = in->feed.open.messages;
    feed_count_by(&in->feed, in->chains[p->topic - in->topics], p->range);
    in->current_decoder = chain_decoder(in->chains[p->topic - in->topics]);
    shard_set_source(in->feed.lane.shard, feed_range(in, in->current), &p->topic->config->raw);
    if (!p->was_seen && m->payload != NULL)
        feed_look_at_first(&p->topic->config->decode, slice_of(m->payload, m->len), p->topic->name);
    p->was_seen = true;
    return true;
}

/* False: the message must wait for its schema. */
static bool count_message(struct intake *in, rd_kafka_message_t *m)
{
    struct topic *t = in->current->partition->topic;
    struct record r;
    kafka_record(m, t->name, &r);
    if (!chain_knows_schema(in->chains[t - in->topics], &r))
        return false;
    in->has_dead_letter = false;
    lane_record(&in->feed.lane, in->chains[t - in->topics], &r);
    return true;
}

/* Set the message aside. False, for the caller's return. */
static bool hold(struct intake *in, struct partition *p, rd_kafka_message_t *m)
{
    end_run(in);
    held_add(&in->held, in->kafka, p, m);
    return false;
}

/* Fast path: one good plain line, which nearly all messages are. False: it is something else, and nothing was
 * done. It may be in the future by the clock, but not by its own time. */
static bool count_line(struct intake *in, const rd_kafka_message_t *m)
{
    struct reject why;
    if (in->current_decoder == NULL || m->len > in->shared->feeds->line_max || m->len == 0 ||
        memchr(m->payload, '\n', m->len) != NULL)
        return false;
    return lane_line(&in->feed.lane, in->current_decoder, slice_of(m->payload, m->len), m->offset, &why);
}

/* Take an error, or begin a run with a message of another partition. False: the message must not be counted.
 * */
static bool take_other(struct intake *in, struct partition *p, rd_kafka_message_t *m)
{
    end_run(in); /* an error may concern any partition, also the one of this run */
    if (m->err == RD_KAFKA_RESP_ERR_NO_ERROR)
        return begin_run(in, p, m);
    take_error(in, p, m);
    return false;
}

/* False: the message was set aside, since it or one before it must wait. */
static bool take_message(struct intake *in, rd_kafka_message_t *m)
{
    struct intake_range *r = in->current;
    if (UNLIKELY(m->err != RD_KAFKA_RESP_ERR_NO_ERROR || r == NULL || m->rkt != in->current_rkt ||
                 m->partition != r->partition->number)) {
        struct partition *p = find_partition(in, m);
        if (p != NULL && p->is_held)
            return hold(in, p, m);
        if (!take_other(in, p, m))
            return true;
    }
    if (UNLIKELY(in->current_last != NULL && m->offset <= in->current_last->offset)) {
        fail_backwards(in, in->current->partition, m);
        return true;
    }
    if (!count_line(in, m) && !count_message(in, m))
        return hold(in, in->current->partition, m);
    in->feed.open.messages++;
    in->current_last = m;
    return true;
}

enum intake_need intake_take_need(struct intake *in, int64_t now_ms)
{
    if (in->request == REQUEST_MADE && in->request_ms <= now_ms) {
        in->request = REQUEST_IN_HAND;
        return INTAKE_NEEDS_BEGINNING;
    }
    return lane_needs_applying(&in->feed.lane) ? INTAKE_NEEDS_APPLYING : INTAKE_NEEDS_NOTHING;
}

/* Seal within a poll: there are too many dead letters or raw events to wait for its end. */
static bool seal_early(struct intake *in, int64_t now_ms)
{
    end_run(in);
    if (!feed_seal_if_due(&in->feed, now_ms))
        return false;
    feed_begin(&in->feed, now_ms);
    return true;
}

bool intake_count(struct intake *in, size_t n, int64_t now_ms)
{
    bool good = true;
    if (in->feed.open.range_count == 0)
        feed_begin(&in->feed, now_ms);
    for (size_t i = 0; i < in->topic_count; i++)
        chain_flush(in->chains[i]);
    for (size_t i = 0; i < n && good && !in->has_failed; i++) {
        if (!take_message(in, in->messages[i]))
            in->messages[i] = NULL;
        if (UNLIKELY(feed_is_full(&in->feed)))
            good = seal_early(in, now_ms);
    }
    end_run(in); /* events and tail point into the messages, which are released now */
    for (size_t i = 0; i < n; i++) {
        if (in->messages[i] != NULL)
            rd_kafka_message_destroy(in->messages[i]);
    }
    in->feed.bytes = (int64_t)shard_bytes(in->feed.lane.shard);
    return good;
}
