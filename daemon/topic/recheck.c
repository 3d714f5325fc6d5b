#include "daemon/topic/recheck.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"

#include <inttypes.h>
#include <stdlib.h>

/* A witness of a partition that Kafka is asked for. */
struct question {
    struct partition *partition;
    struct witness witness;
};

static bool is_unproven(const struct partition *p)
{
    return p->unproven.offset >= 0;
}

/* Find the record that the next stored records must follow. False: none was counted yet. */
static bool find_witness(const struct partition *p, struct witness *w)
{
    if (is_unproven(p))
        *w = p->unproven;
    else if (p->stored_witnesses.count > 0)
        *w = *witnesses_newest(&p->stored_witnesses);
    else
        return false;
    return true;
}

/* The next records are stored without an answer: ask for the same witness again later. */
static void leave_unproven(struct partition *p, struct witness w)
{
    if (!is_unproven(p))
        p->unproven = w;
}

/* The witness is gone or differs: decide as topic.h does for a partition that begins. */
static bool look_closely(struct consume *c, const struct question *q, struct err *e)
{
    struct topic *t = q->partition->topic, copy = topic_copy(t);
    struct partition p = {.topic = &copy,
                          .number = q->partition->number,
                          .begins = true,
                          .is_known = true,
                          .next = q->witness.offset + 1,
                          .witnesses = q->partition->stored_witnesses};
    while (p.witnesses.count > 0 && witnesses_newest(&p.witnesses)->offset >= q->witness.offset)
        p.witnesses.count--;
    witnesses_add(&p.witnesses, q->witness.offset, q->witness.hash);
    copy.partitions = &p; /* it has only this partition */
    copy.count = 1;
    return topic_prove(t, &copy, c->reader, e);
}

static void warn(struct consume *c, const struct err *why)
{
    char quoted[LOG_QUOTE_BYTES];
    c->unproven++;
    log_limited(LOG_LEVEL_WARN, "stored_unproven",
                "reason=%s next=\"comparing the witnesses as soon as they can be read\"",
                log_quote(why->text, quoted));
}

/* Act on an answer. False: records behind the witness must not be stored. */
static bool take_result(struct consume *c, const struct question *q, enum comparison_result result,
                        struct err *e)
{
    struct partition *p = q->partition;
    if (result == COMPARISON_OPEN) {
        leave_unproven(p, q->witness);
        return true;
    }
    if (result != COMPARISON_SAME) {
        writer_turn(&c->engine->writer);
        if (!look_closely(c, q, e)) {
            p->topic->is_outdated |= e->retryable; /* the next session compares before it counts */
            return false;
        }
        p->settled_offset = q->witness.offset;
    }
    /* A newer witness that is the same does not prove an older one that was not read. */
    if (is_unproven(p) && p->unproven.offset == q->witness.offset)
        p->unproven.offset = -1;
    return true;
}

static bool ask(struct consume *c, const struct question *questions, size_t count, int timeout_ms,
                struct err *e)
{
    struct comparison *comparisons = xcalloc(count + 1, sizeof *comparisons);
    int64_t now_ms = clock_mono_ms(c->engine->feeds.lanes.clock);
    struct err away;
    bool good = true;
    for (size_t i = 0; i < count; i++)
        comparisons[i] = (struct comparison){.topic = questions[i].partition->topic->name,
                                             .partition = questions[i].partition->number,
                                             .witnesses = &questions[i].witness,
                                             .left = 1};
    if (!compare(c->reader, comparisons, count, timeout_ms, &away))
        warn(c, &away);
    for (size_t i = 0; good && i < count; i++) {
        questions[i].partition->checked_ms = now_ms;
        good = take_result(c, &questions[i], comparisons[i].result, e);
    }
    free(comparisons);
    return good;
}

/* ---- a delivery */

static int by_turn(const void *a, const void *b)
{
    const struct question *x = a, *y = b;
    return (x->partition->checked_ms > y->partition->checked_ms) -
           (x->partition->checked_ms < y->partition->checked_ms);
}

static bool had_trouble(struct consume *c, const struct intake *in)
{
    int64_t troubles = atomic_load(&in->troubles);
    bool had = troubles != c->troubles[in->number];
    c->troubles[in->number] = troubles;
    return had;
}

static int left_ms(const struct consume *c, int64_t until_ms)
{
    int64_t left = until_ms - clock_mono_ms(c->engine->feeds.lanes.clock);
    return left > 0 ? (int)left : 0;
}

static bool has_question(const struct question *questions, size_t count, const struct topic *t)
{
    bool has = false;
    for (size_t i = 0; i < count && !has; i++)
        has = questions[i].partition->topic == t;
    return has;
}

/* A partition whose first records come has no witness. Unless another one of its topic was asked for this
 * delivery, the store has those of the others. */
static bool ask_others(struct consume *c, const struct intake *in, const struct question *questions,
                       size_t asked, struct err *e)
{
    const struct topic *heard = NULL;
    struct witness none;
    for (size_t i = 0; i < in->feed.sealed.range_count; i++) {
        struct partition *p = in->sealed.list[i].partition;
        if (find_witness(p, &none) || p->topic == heard || has_question(questions, asked, p->topic))
            continue;
        heard = p->topic;
        writer_turn(&c->engine->writer);
        if (!topic_prove_by_others(p->topic, c->engine->options.store, c->reader, e)) {
            p->topic->is_outdated |= e->retryable; /* the next session compares before it counts */
            return false;
        }
    }
    return true;
}

static bool ask_before(struct consume *c, const struct intake *in, int64_t until_ms, struct err *e)
{
    struct question *questions = xcalloc(in->feed.sealed.range_count + 1, sizeof *questions);
    size_t count = 0;
    for (size_t i = 0; i < in->feed.sealed.range_count; i++) {
        questions[count].partition = in->sealed.list[i].partition;
        count += find_witness(in->sealed.list[i].partition, &questions[count].witness);
    }
    size_t asked = count;
    if (count > RECHECK_PARTITIONS_MAX && !had_trouble(c, in)) {
        qsort(questions, count, sizeof *questions, by_turn);
        asked = RECHECK_PARTITIONS_MAX;
    }
    for (size_t i = asked; i < count; i++)
        leave_unproven(questions[i].partition, questions[i].witness);
    bool good = ask(c, questions, asked, left_ms(c, until_ms), e) && ask_others(c, in, questions, asked, e);
    free(questions);
    return good;
}

/* Compare the n-th edge of each partition that has so many. */
static bool ask_edges(struct consume *c, const struct intake *in, size_t n, int64_t until_ms, struct err *e)
{
    struct question *questions = xcalloc(in->feed.sealed.range_count + 1, sizeof *questions);
    size_t count = 0;
    for (size_t i = 0; i < in->feed.sealed.range_count; i++) {
        if (in->sealed.list[i].edge_count > n && !is_unproven(in->sealed.list[i].partition))
            questions[count++] = (struct question){in->sealed.list[i].partition, in->sealed.list[i].edges[n]};
    }
    bool good = count == 0 || ask(c, questions, count, left_ms(c, until_ms), e);
    free(questions);
    return good;
}

bool recheck_delivery(struct consume *c, const struct intake *in, struct err *e)
{
    int timeout_ms =
        atomic_load(c->engine->options.service->stop) ? RECHECK_STOP_TIMEOUT_MS : RECHECK_TIMEOUT_MS;
    int64_t until_ms = clock_mono_ms(c->engine->feeds.lanes.clock) + timeout_ms;
    bool good = ask_before(c, in, until_ms, e);
    for (size_t n = 0; n < INTAKE_EDGES_MAX; n++)
        good = good && ask_edges(c, in, n, until_ms, e);
    return good;
}

void recheck_stored(const struct intake *in)
{
    for (size_t i = 0; i < in->feed.sealed.range_count; i++)
        in->sealed.list[i].partition->stored_witnesses = in->feed.sealed.ranges[i].witnesses;
}

/* ---- idle partitions */

static size_t list_idle(struct consume *c, int64_t now_ms, struct question *questions)
{
    size_t count = 0;
    pthread_mutex_lock(&c->engine->feeds.lanes.lock);
    for (size_t i = 0; i < c->topic_count; i++) {
        for (int32_t n = 0; n < c->topics[i].count && count < RECHECK_PARTITIONS_MAX; n++) {
            struct partition *p = &c->topics[i].partitions[n];
            questions[count].partition = p;
            if (p->kafka != NULL && now_ms - p->checked_ms >= RECHECK_IDLE_MS)
                count += find_witness(p, &questions[count].witness) &&
                         questions[count].witness.offset != p->settled_offset;
        }
    }
    pthread_mutex_unlock(&c->engine->feeds.lanes.lock);
    return count;
}

bool recheck_idle(struct consume *c, struct err *e)
{
    struct question questions[RECHECK_PARTITIONS_MAX + 1];
    int64_t now_ms = clock_mono_ms(c->engine->feeds.lanes.clock);
    if (now_ms - c->rechecked_ms < RECHECK_IDLE_MS / 10)
        return true;
    c->rechecked_ms = now_ms;
    size_t count = list_idle(c, now_ms, questions);
    return count == 0 || ask(c, questions, count, RECHECK_STOP_TIMEOUT_MS, e);
}
