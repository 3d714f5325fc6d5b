#include "daemon/topic/member.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"

#include <inttypes.h>
#include <stdlib.h>

#define WAIT_MS 100

/* ---- given */

/* List the assigned partitions. False: some did not exist when the session began. */
static bool list_given(struct intake *in, const struct kafka_rebalance *r, struct err *e)
{
    in->given_count = 0;
    in->given = xgrow(in->given, &in->given_capacity, r->count + 1, sizeof(struct partition *));
    for (size_t i = 0; i < r->count; i++) {
        struct topic *t = intake_topic(in, r->partitions[i].topic);
        if (t == NULL || r->partitions[i].number >= t->count)
            return err_set_retryable(e, EX_UNAVAILABLE, "topic %s has new partitions",
                                     r->partitions[i].topic);
        in->given[in->given_count++] = &t->partitions[r->partitions[i].number];
    }
    return true;
}

/* A request may be withdrawn when the session ends, unless the writer has it in hand. */
static bool is_waiting(const struct intake *in)
{
    bool is_over = atomic_load(&in->shared->end);
    return !atomic_load(&in->shared->abandon) &&
           (in->request == REQUEST_IN_HAND || (in->request == REQUEST_MADE && !is_over));
}

/* Let the writer find out where the partitions begin. False: the session ends first. */
static bool ask_writer(struct intake *in)
{
    const struct clock *clock = in->shared->feeds->lanes.clock;
    struct lanes *ls = in->feed.lane.lanes;
    pthread_mutex_lock(&ls->lock);
    in->request = REQUEST_MADE;
    in->request_ms = 0;
    pthread_cond_signal(&ls->sealed);
    while (is_waiting(in)) {
        heartbeat_rest(in->feed.lane.heartbeat);
        (void)clock_wait(clock, &ls->applied, &ls->lock, clock_mono_ms(clock) + WAIT_MS);
        heartbeat_turn(in->feed.lane.heartbeat);
    }
    bool granted = in->request == REQUEST_GRANTED;
    in->request = REQUEST_NONE;
    pthread_mutex_unlock(&ls->lock);
    return granted;
}

static bool take(struct intake *in, const struct kafka_rebalance *r, struct err *e)
{
    if (!list_given(in, r, e))
        return false;
    if (r->count > 0 && !ask_writer(in))
        return err_set_retryable(e, EX_UNAVAILABLE, "the session ended meanwhile");
    int64_t *offsets = xcalloc(r->count + 1, sizeof *offsets);
    for (size_t i = 0; i < r->count; i++)
        offsets[i] = in->given[i]->next;
    bool good = kafka_answer(in->kafka, offsets, e);
    free(offsets);
    return good;
}

/* ---- taken, or lost */

static bool let_go(struct intake *in, const struct kafka_rebalance *r, struct err *e)
{
    bool is_lost = r->decision == KAFKA_LOST;
    int64_t revoke_ms = atomic_load(&in->shared->revoke_ms);
    bool stored =
        !is_lost && feed_drain(&in->feed, clock_mono_ms(in->shared->feeds->lanes.clock) + revoke_ms);
    for (size_t i = 0; i < r->count; i++) {
        const struct topic *t = intake_topic(in, r->partitions[i].topic);
        if (t != NULL && r->partitions[i].number < t->count)
            held_drop(&in->held, in->kafka, &t->partitions[r->partitions[i].number]);
    }
    log_info(is_lost ? "partitions_lost" : "partitions_taken", "partitions=%zu", r->count);
    pthread_mutex_lock(&in->shared->feeds->lanes.lock);
    for (size_t i = 0; i < r->count; i++) {
        struct topic *t = intake_topic(in, r->partitions[i].topic);
        if (t != NULL && r->partitions[i].number < t->count) {
            t->partitions[r->partitions[i].number].kafka = NULL;
            atomic_store(&t->partitions[r->partitions[i].number].stands_ms, 0);
        }
    }
    pthread_mutex_unlock(&in->shared->feeds->lanes.lock);
    in->drops = is_lost;
    if (!kafka_answer(in->kafka, NULL, e))
        return false;
    if (is_lost)
        return err_set_retryable(
            e, EX_UNAVAILABLE,
            "the group gave the partitions to others, since it got no heartbeat from this daemon");
    return stored ||
           err_set_retryable(
               e, EX_UNAVAILABLE,
               "the group revoked partitions, and what was read from them could not be stored within %" PRId64
               " ms (kafka.revoke_timeout)",
               revoke_ms);
}

bool member_turn(struct intake *in)
{
    struct err e = {0};
    const struct kafka_rebalance *r = kafka_rebalance(in->kafka);
    bool good = r == NULL || (r->decision == KAFKA_GIVEN ? take(in, r, &e) : let_go(in, r, &e));
    if (!good)
        intake_fail(in, &e);
    return good;
}
