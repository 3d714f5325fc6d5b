/* The loop of an ingest thread: it counts what it polls, seals when it is time to, and carries out the
 * group's decisions. */
#include "daemon/topic/intake.h"
#include "daemon/topic/member.h"

static bool is_fit(struct intake *in)
{
    struct err e = {0};
    bool is_fit = kafka_is_fit(in->kafka, &e);
    if (!is_fit)
        intake_fail(in, &e);
    return is_fit;
}

/* Troubles are those of the consumer, and pauses between polls. */
static void note_troubles(struct intake *in)
{
    int64_t now_ms = clock_boot_ms(in->shared->feeds->lanes.clock);
    in->gaps += in->polled_ms > 0 && now_ms - in->polled_ms > INTAKE_GAP_MS;
    in->polled_ms = now_ms;
    in->troubles = in->gaps + kafka_troubles(in->kafka);
}

/* One turn: poll, count, and seal if it is time to. False: end the thread. */
static bool turn(struct intake *in)
{
    heartbeat_turn(in->feed.lane.heartbeat);
    size_t n = held_poll(&in->held, in->kafka, in->chains, in->topics, in->messages);
    if (n == 0)
        n = kafka_poll(in->kafka, in->messages, INTAKE_MESSAGES, INTAKE_POLL_MS);
    int64_t now_ms = clock_mono_ms(in->shared->feeds->lanes.clock);
    note_troubles(in);
    bool good = intake_count(in, n, now_ms);
    if (n == INTAKE_MESSAGES)
        in->is_busy = true;
    return good && is_fit(in) && feed_seal_if_due(&in->feed, now_ms) &&
           (!in->shared->is_group || member_turn(in)) && !in->has_failed;
}

void *intake_run(void *intake)
{
    struct intake *in = intake;
    struct intake_shared *sh = in->shared;
    bool good = true;
    while (good && !atomic_load(&sh->end) && !atomic_load(&sh->abandon))
        good = turn(in);
    if (!in->drops)
        (void)!feed_drain(&in->feed, LANE_FOREVER_MS);
    held_drop(&in->held, in->kafka, NULL);
    heartbeat_rest(in->feed.lane.heartbeat);
    pthread_mutex_lock(&sh->feeds->lanes.lock);
    in->has_ended = true;
    pthread_cond_signal(&sh->feeds->lanes.sealed);
    pthread_mutex_unlock(&sh->feeds->lanes.lock);
    return NULL;
}
