#include "daemon/topic/intake.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/failpoint.h"
#include "base/log.h"
#include "base/mem.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

void intake_init(struct intake *in, struct intake_shared *shared, uint32_t number, struct topic *topics,
                 size_t topic_count, struct beat *beat)
{
    *in = (struct intake){
        .shared = shared, .number = number, .topics = topics, .topic_count = topic_count, .beat = beat};
    in->chains = xcalloc(topic_count, sizeof *in->chains);
    for (size_t i = 0; i < topic_count; i++)
        in->chains[i] = chain_new(&topics[i].config->decode, shared->line_max);
    in->shard = shard_new(number, shared->reports, shared->report_count, &shared->shard);
}

static void delivery_fini(struct delivery *d)
{
    for (size_t i = 0; i < d->range_capacity; i++)
        books_fini(&d->ranges[i].books);
    free(d->ranges);
    letters_fini(&d->letters);
}

void intake_fini(struct intake *in)
{
    for (size_t i = 0; i < in->topic_count; i++)
        chain_free(in->chains[i]);
    free(in->chains);
    shard_free(in->shard);
    delivery_fini(&in->open);
    delivery_fini(&in->sealed);
    free(in->given);
    *in = (struct intake){.beat = in->beat};
}

static struct intake_range *range_of(struct intake *in, struct partition *p)
{
    struct delivery *d = &in->open;
    if (p->range < d->range_count && d->ranges[p->range].partition == p)
        return &d->ranges[p->range];
    p->range = d->range_count;
    size_t before = d->range_capacity;
    d->ranges = xgrow(d->ranges, &d->range_capacity, d->range_count + 1, sizeof *d->ranges);
    for (size_t i = before; i < d->range_capacity; i++)
        books_init(&d->ranges[i].books, in->shared->report_count);
    struct intake_range *r = &d->ranges[d->range_count++];
    r->partition = p;
    r->edge_count = 0;
    books_clear(&r->books);
    partition_range(p, &r->range);
    if (p->latest_ms != in->latest_ms)
        p->latest_from = r->range.from;
    r->range.latest_ms = p->latest_ms = in->latest_ms;
    r->range.latest_from = p->latest_from;
    return r;
}

static void add_events(struct intake *in)
{
    shard_add(in->shard, in->events, in->event_count);
    in->event_count = 0;
    in->is_full_of_raw = shard_is_full_of_raw(in->shard);
}

/* Note the time of a run's last record. Brokers that set the time do so in order, so it is the run's newest.
 */
static void note_broker_time(struct intake_shared *sh, int64_t at_ms)
{
    int64_t newest_ms = atomic_load_explicit(&sh->broker_ms, memory_order_relaxed);
    at_ms = at_ms >= 0 ? at_ms : INT64_MAX; /* the record has no time */
    while (at_ms > newest_ms && !atomic_compare_exchange_weak(&sh->broker_ms, &newest_ms, at_ms))
        continue;
}

static void advance(struct intake_range *r, int64_t to, uint64_t tail_hash, int64_t tail_distance)
{
    r->range.to = to;
    r->range.tail_hash = tail_hash;
    r->range.tail_len = tail_distance <= UINT32_MAX ? (uint32_t)tail_distance : 0;
    r->partition->next = r->range.to;
    r->partition->tail_hash = r->range.tail_hash;
    r->partition->tail_len = r->range.tail_len;
}

/* Keep the last record of each delivery as a witness, and of further runs while there is room. Thinning a
 * full list at each run would cost more than it proves. */
static void add_witness(struct intake_range *r, bool is_last)
{
    struct partition *p = r->partition;
    if (p->tail_len > 0 && (is_last || p->witnesses.count < WITNESSES_MAX))
        witnesses_add(&p->witnesses, p->next - p->tail_len, p->tail_hash);
}

/* Note an edge before `m` is counted, if the connection changed since the partition's last record. */
static void note_edge(const struct intake *in, struct intake_range *r, const rd_kafka_message_t *m)
{
    struct partition *p = r->partition;
    int32_t broker = kafka_broker(m);
    if (r->range.to > r->range.from && p->tail_len > 0 &&
        (p->broker != broker || p->troubles != in->troubles)) {
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
    add_events(in);
    shard_take_books(in->shard, &r->books);
    if (in->current_last != NULL) {
        note_broker_time(in->shared, kafka_timestamp(in->current_last));
        advance(r, in->current_last->offset + 1, compare_hash(in->current_last), 1);
    }
    add_witness(r, false);
    in->current = NULL;
    in->current_last = NULL;
    in->current_rkt = NULL;
}

void intake_fail(struct intake *in, const struct err *why)
{
    pthread_mutex_lock(&in->shared->lock);
    /* the first error, unless a final one follows */
    if (!in->has_failed || (in->error.retryable && !why->retryable))
        in->error = *why;
    in->has_failed = true;
    pthread_mutex_unlock(&in->shared->lock);
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
    advance(range_of(in, p), to, p->tail_hash, distance);
}

static void take_error(struct intake *in, const rd_kafka_message_t *m)
{
    struct err e = {0};
    char quoted[LOG_QUOTE_BYTES];
    struct partition *p;
    end_run(in); /* the error may concern any partition, also the one of this run */
    p = find_partition(in, m);
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
static bool begin_run(struct intake *in, rd_kafka_message_t *m)
{
    end_run(in);
    struct partition *p = find_partition(in, m);
    ASSERT(p != NULL);
    if (UNLIKELY(m->offset < p->next))
        return fail_backwards(in, p, m);
    in->current = range_of(in, p);
    note_edge(in, in->current, m);
    in->current_rkt = m->rkt;
    in->current_decoder = chain_decoder(in->chains[p->topic - in->topics]);
    shard_set_raw(in->shard, &p->topic->config->raw, &in->current->range);
    return true;
}

/* Count a reject. Its dead letter is the whole message, once, if the record is unwrapped; otherwise the line
 * or element. */
static void reject(struct intake *in, const struct topic *t, const struct record *r, struct slice bytes,
                   struct reject why, bool *has_letter)
{
    bool is_wrapped = t->config->decode.step_count > 1;
    shard_reject(in->shard, why.reason);
    if (!in->shared->keeps_letters || why.reason == REJECT_TOMBSTONE || (is_wrapped && *has_letter))
        return;
    letters_add(&in->open.letters, r, is_wrapped ? r->value : bytes, why);
    *has_letter = true;
}

static void count_message(struct intake *in, rd_kafka_message_t *m)
{
    struct topic *t = in->current->partition->topic;
    struct chain *chain = in->chains[t - in->topics];
    struct record r;
    struct slice bytes;
    enum chain_result what;
    kafka_record(m, t->name, &r);
    chain_start(chain, &r);
    uint32_t element = 0;
    bool has_letter = false;
    for (;; element++) {
        struct event *ev = &in->events[in->event_count];
        struct reject why;
        what = chain_next(chain, ev, &why, &bytes);
        if (what == CHAIN_END)
            break;
        if (what == CHAIN_EVENT &&
            UNLIKELY(ev->at_ms > record_latest(&r, in->latest_ms, in->future_max_ms))) {
            what = CHAIN_REJECT;
            why = (struct reject){REJECT_FUTURE, 1};
        }
        if (UNLIKELY(what == CHAIN_REJECT)) {
            reject(in, t, &r, bytes, why, &has_letter);
            continue;
        }
        ev->order = record_order(r.offset, element);
        if (++in->event_count == SHARD_EVENTS_MAX)
            add_events(in);
    }
    /* The chain's memory can be reused once no event needs it and the chain has nothing more to say of the
     * record. */
    if (element > 1)
        add_events(in);
    if (in->event_count == 0)
        chain_flush(chain);
}

/* Fast path: one good plain line, which nearly all messages are. False: it is something else, and nothing was
 * done. */
static bool count_line(struct intake *in, const rd_kafka_message_t *m)
{
    struct decoder *decoder = in->current_decoder;
    struct event *ev = &in->events[in->event_count];
    struct reject why;
    if (decoder == NULL || m->len > in->shared->line_max || m->len == 0 ||
        memchr(m->payload, '\n', m->len) != NULL)
        return false;
    if (!decoder_decode(decoder, slice_of(m->payload, m->len), ev, &why) || ev->at_ms > in->latest_ms)
        return false; /* it may be in the future */
    ev->order = record_order(m->offset, 0);
    if (++in->event_count == SHARD_EVENTS_MAX)
        add_events(in);
    return true;
}

static void take_message(struct intake *in, rd_kafka_message_t *m)
{
    if (UNLIKELY(m->err != RD_KAFKA_RESP_ERR_NO_ERROR)) {
        take_error(in, m);
        return;
    }
    struct intake_range *r = in->current;
    if (UNLIKELY(r == NULL || m->rkt != in->current_rkt || m->partition != r->partition->number) &&
        !begin_run(in, m))
        return;
    if (UNLIKELY(in->current_last != NULL && m->offset <= in->current_last->offset)) {
        fail_backwards(in, in->current->partition, m);
        return;
    }
    in->open.messages++;
    in->current_last = m;
    if (!count_line(in, m))
        count_message(in, m);
}

/* Wait until the writer has applied the sealed delivery. False: it has failed, or has not by until_ms. */
static bool take_back(struct intake *in, int64_t until_ms)
{
    struct intake_shared *sh = in->shared;
    bool has_time = true;
    pthread_mutex_lock(&sh->lock);
    while (in->sealed.part != NULL && !in->sealed.is_applied && !atomic_load(&sh->abandon) && has_time) {
        beat_rest(in->beat);
        has_time = clock_wait(sh->clock, &sh->applied, &sh->lock, until_ms);
        beat_turn(in->beat);
    }
    struct part *part = in->sealed.is_applied ? in->sealed.part : NULL;
    bool good = in->sealed.part == NULL || part != NULL;
    if (part != NULL)
        in->sealed.part = NULL;
    pthread_mutex_unlock(&sh->lock);
    if (part != NULL)
        shard_give_back(in->shard, part);
    return good;
}

enum intake_need intake_take_need(struct intake *in, int64_t now_ms)
{
    if (in->request == REQUEST_MADE && in->request_ms <= now_ms) {
        in->request = REQUEST_IN_HAND;
        return INTAKE_NEEDS_BEGINNING;
    }
    return in->sealed.part != NULL && !in->sealed.is_applied ? INTAKE_NEEDS_APPLYING : INTAKE_NEEDS_NOTHING;
}

/* Hand the open batch over. Pre: the previous sealed part was taken back, and no run is open. */
static void seal(struct intake *in)
{
    struct intake_shared *sh = in->shared;
    struct part *part = shard_seal(in->shard);
    for (size_t i = 0; i < in->open.range_count; i++) {
        struct intake_range *r = &in->open.ranges[i];
        add_witness(r, true);
        r->range.witnesses = r->partition->witnesses;
    }
    pthread_mutex_lock(&sh->lock);
    struct delivery used = in->sealed;
    in->sealed = in->open;
    in->sealed.part = part;
    in->sealed.is_applied = false;
    in->open = used;
    pthread_cond_signal(&sh->sealed);
    pthread_mutex_unlock(&sh->lock);
    in->open.range_count = 0;
    in->open.messages = 0;
    in->is_full_of_raw = false;
    letters_clear(&in->open.letters);
    failpoint(FAILPOINT_SEAL);
}

bool intake_drain(struct intake *in, int64_t until_ms)
{
    if (in->open.range_count > 0) {
        if (!take_back(in, until_ms))
            return false;
        seal(in);
    }
    return take_back(in, until_ms);
}

static bool is_free(struct intake *in)
{
    pthread_mutex_lock(&in->shared->lock);
    bool is_free = in->sealed.part == NULL || in->sealed.is_applied;
    pthread_mutex_unlock(&in->shared->lock);
    return is_free;
}

bool intake_seal_if_due(struct intake *in, int64_t now_ms)
{
    struct delivery *d = &in->open;
    if (d->range_count == 0)
        return true;
    bool is_full = shard_is_full(in->shard) || d->letters.bytes.len >= LETTERS_BYTES_MAX;
    bool is_over = now_ms - in->begun_ms >= atomic_load(&in->shared->limits.flush_ms);
    if (!is_full && !(is_over && is_free(in)))
        return true;
    if (!take_back(in, INTAKE_FOREVER_MS))
        return false;
    seal(in);
    return !shard_must_wait(in->shard) || take_back(in, INTAKE_FOREVER_MS);
}

static void begin_batch(struct intake *in, int64_t now_ms)
{
    in->begun_ms = now_ms;
    in->future_max_ms = atomic_load(&in->shared->limits.future_max_ms);
    in->latest_ms = record_clock_latest(clock_wall_ms(in->shared->clock), in->future_max_ms);
}

/* Seal within a poll: there are too many dead letters or raw events to wait for its end. */
static bool seal_early(struct intake *in, int64_t now_ms)
{
    end_run(in);
    if (!intake_seal_if_due(in, now_ms))
        return false;
    begin_batch(in, now_ms);
    return true;
}

bool intake_count(struct intake *in, size_t n, int64_t now_ms)
{
    bool good = true;
    if (in->open.range_count == 0)
        begin_batch(in, now_ms);
    for (size_t i = 0; i < n && good && !in->has_failed; i++) {
        take_message(in, in->messages[i]);
        if (UNLIKELY(in->is_full_of_raw || in->open.letters.bytes.len >= LETTERS_BYTES_MAX))
            good = seal_early(in, now_ms);
    }
    end_run(in); /* events and tail point into the messages, which are released now */
    for (size_t i = 0; i < in->topic_count; i++)
        chain_flush(in->chains[i]);
    for (size_t i = 0; i < n; i++)
        rd_kafka_message_destroy(in->messages[i]);
    in->bytes = (int64_t)shard_bytes(in->shard);
    return good;
}
