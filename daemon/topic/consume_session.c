/* Runs one session after the other, and the writer, which serves the intakes of each. */
#include "base/check.h"
#include "base/failpoint.h"
#include "base/log.h"
#include "base/mem.h"
#include "daemon/topic/consume_internal.h"
#include "daemon/topic/intake.h"
#include "daemon/topic/recheck.h"
#include "store/writer.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define LAST_COMMIT_MS 1000             /* wait for the last commits of offsets */
#define PAUSE_MS       50               /* part of a pause, between two looks at the files */
#define CONTESTED_MS   (10 * MINUTE_MS) /* fenced again within this time: two daemons take turns */

static bool is_stopping(const struct consume *c)
{
    return engine_is_stopping(c->engine);
}

/* Note each partition in the status. Returns how many partitions are consumed here. */
static int64_t note_partitions(struct consume *c)
{
    struct status *status = &c->engine->options.service->status;
    int64_t count = 0;
    pthread_mutex_lock(&c->engine->feeds.lanes.lock);
    for (size_t i = 0; i < c->topic_count; i++) {
        struct topic *t = &c->topics[i];
        for (int32_t n = 0; n < t->count; n++) {
            struct partition *p = &t->partitions[n];
            count += p->kafka != NULL;
            if (p->status_index >= 0 && p->kafka != NULL) {
                status_note_partition(status, p->status_index, p->stored, kafka_end(p->kafka, t->name, n));
                status_note_transaction(status, p->status_index,
                                        consume_stands_s(p, clock_mono_ms(c->engine->feeds.lanes.clock)));
                status_note_empty(status, p->status_index, p->empty);
            } else if (p->status_index >= 0)
                status_drop_partition(status, p->status_index);
        }
    }
    pthread_mutex_unlock(&c->engine->feeds.lanes.lock);
    return count;
}

/* The engine's note function: called several times a second. */
static void note(void *part, struct status_figures *figures)
{
    struct consume *c = part;
    struct registry_figures schemas;
    registry_note(&c->engine->options.config->registry, &schemas);
    status_note_schemas(&c->engine->options.service->status, (int64_t)schemas.waiting, schemas.failures,
                        schemas.why);
    for (size_t i = 0; i < c->intake_count; i++) {
        figures->shard_bytes += c->intakes[i].feed.bytes;
        figures->queue_bytes += c->intakes[i].kafka != NULL ? kafka_queued_bytes(c->intakes[i].kafka) : 0;
    }
    figures->partitions = note_partitions(c);
    figures->rebalances = c->rebalances;
    figures->unproven = c->unproven;
    for (size_t i = 0; i < c->topic_count; i++)
        figures->unproven += c->topics[i].unproven;
    if (c->state != STATUS_STARTING || c->options->files == NULL) /* files are counted before topics */
        figures->state = c->state;
    c->shared.revoke_ms = c->engine->options.config->kafka.revoke_ms;
}

/* ---- applying */

static void commit(struct intake *in)
{
    const struct delivery *d = &in->feed.sealed;
    struct kafka_offset *offsets = xcalloc(d->range_count, sizeof *offsets);
    for (size_t i = 0; i < d->range_count; i++) {
        struct partition *p = in->sealed.list[i].partition;
        p->stored = d->ranges[i].to;
        p->empty += in->sealed.list[i].empty;
        offsets[i] = (struct kafka_offset){p->topic->name, p->number, p->stored};
    }
    failpoint(FAILPOINT_OFFSETS_BEFORE);
    kafka_commit(in->kafka, offsets, d->range_count);
    failpoint(FAILPOINT_OFFSETS_AFTER);
    free(offsets);
}

static bool apply(struct consume *c, struct intake *in, struct err *e)
{
    if (!recheck_delivery(c, in, e) || !engine_apply(c->engine, &in->feed, e))
        return false;
    recheck_stored(in);
    commit(in);
    engine_release(c->engine, &in->feed);
    return true;
}

/* Wait up to half a tick for an intake that needs the writer. *ended: all intakes have ended; *failed: one
 * has failed. */
static enum intake_need wait_intake(struct consume *c, struct intake **found, bool *ended, bool *failed)
{
    enum intake_need need = INTAKE_NEEDS_NOTHING;
    const struct timespec until = clock_timespec_in(WRITER_TICK_MS / 2);
    struct lanes *ls = &c->engine->feeds.lanes;
    pthread_mutex_lock(&ls->lock);
    for (int attempt = 0; attempt < 2 && need == INTAKE_NEEDS_NOTHING; attempt++) {
        *ended = true;
        *failed = false;
        for (size_t i = 0; i < c->intake_count; i++) {
            struct intake *in = &c->intakes[(c->served + 1 + i) % c->intake_count];
            *ended = *ended && in->has_ended;
            *failed = *failed || in->has_failed;
            if (need == INTAKE_NEEDS_NOTHING) {
                need = intake_take_need(in, clock_mono_ms(c->engine->feeds.lanes.clock));
                *found = in;
            }
        }
        if (need == INTAKE_NEEDS_NOTHING && attempt == 0 &&
            (*ended || *failed || follow_needs_writer(c->options->files) || engine_has_loan(c->engine) ||
             pthread_cond_timedwait(&ls->sealed, &ls->lock, &until) != 0))
            break;
    }
    pthread_mutex_unlock(&ls->lock);
    *ended = *ended && need == INTAKE_NEEDS_NOTHING;
    if (need != INTAKE_NEEDS_NOTHING)
        c->served = (size_t)(*found - c->intakes);
    return need;
}

static bool serve(struct consume *c, enum intake_need need, struct intake *in, struct err *e)
{
    switch (need) {
    case INTAKE_NEEDS_BEGINNING:
        return consume_begin_given(c, in, e);
    case INTAKE_NEEDS_APPLYING:
        return apply(c, in, e);
    default:
        return true;
    }
}

/* Serve until all intakes have ended and all their deliveries are applied. */
static bool serve_intakes(struct consume *c, struct err *e)
{
    bool ended = false;
    while (!ended) {
        bool failed;
        struct intake *in;
        enum intake_need need = wait_intake(c, &in, &ended, &failed);
        if (!serve(c, need, in, e))
            return false;
        if (!follow_serve(c->options->files, e) || !recheck_idle(c, e) || !engine_turn(c->engine, e))
            return false;
        if (failed || is_stopping(c) || atomic_load(&c->has_new_partitions))
            atomic_store(&c->shared.end, true);
    }
    return true;
}

/* ---- the housekeeper */

static bool finds_new_partitions(struct consume *c)
{
    struct err e;
    for (size_t i = 0; i < c->topic_count; i++) {
        int32_t count;
        if (!kafka_partitions(c->intakes[0].kafka, c->topics[i].name, &count, &e))
            return false;
        if (count > c->topics[i].count) {
            log_info("new_partitions", "topic=%s before=%d now=%d", c->topics[i].name, c->topics[i].count,
                     count);
            return true;
        }
    }
    return false;
}

static void *housekeep(void *context)
{
    struct consume *c = context;
    int64_t looked_ms = clock_mono_ms(c->engine->feeds.lanes.clock);
    while (!atomic_load(&c->end_housekeeping)) {
        for (size_t i = 0; i < c->intake_count; i++) {
            struct intake *in = &c->intakes[i];
            kafka_serve(in->kafka);
            if (atomic_exchange(&in->is_busy, false))
                kafka_wake(in->kafka);
        }
        int64_t now_ms = clock_mono_ms(c->engine->feeds.lanes.clock);
        if (!c->shared.is_group && now_ms - looked_ms >= KAFKA_NEW_PARTITIONS_MS) {
            if (finds_new_partitions(c))
                atomic_store(&c->has_new_partitions, true);
            looked_ms = clock_mono_ms(c->engine->feeds.lanes.clock);
        }
        nanosleep(&(struct timespec){.tv_nsec = KAFKA_WAKE_MS * 1000000L}, NULL);
    }
    return NULL;
}

/* ---- a session */

static void init_intakes(struct consume *c)
{
    atomic_store(&c->shared.end, false);
    atomic_store(&c->shared.abandon, false);
    for (size_t i = 0; i < c->intake_count; i++) {
        intake_init(&c->intakes[i], &c->shared, (uint32_t)i, c->topics, c->topic_count,
                    c->intakes[i].feed.lane.heartbeat);
        c->troubles[i] = 0; /* its consumer is new */
    }
}

static void fini_intakes(struct consume *c)
{
    for (size_t i = 0; i < c->intake_count; i++)
        intake_fini(&c->intakes[i]);
}

/* Wait for AGAIN_MS, and serve the files meanwhile. */
static bool pause_briefly(struct consume *c, struct err *e)
{
    int64_t until_ms = clock_mono_ms(c->engine->feeds.lanes.clock) + AGAIN_MS;
    while (!is_stopping(c) && clock_mono_ms(c->engine->feeds.lanes.clock) < until_ms) {
        if (!follow_serve(c->options->files, e) || !engine_turn(c->engine, e))
            return false;
        writer_sleep(&c->engine->writer, PAUSE_MS);
    }
    return true;
}

/* Retry consume_begin() until it succeeds or the stop comes. */
static bool begin_session_patiently(struct consume *c, struct err *e)
{
    bool said = false;
    while (!consume_begin(c, e)) {
        char quoted[LOG_QUOTE_BYTES];
        if (!e->retryable || is_stopping(c))
            return false;
        if (!said)
            log_warn("waiting", "reason=%s next=\"trying again\"", log_quote(e->text, quoted));
        said = true;
        if (!pause_briefly(c, e) || is_stopping(c))
            return false;
    }
    return true;
}

static bool start_threads(struct consume *c, struct err *e)
{
    for (size_t i = 0; i < c->topic_count; i++)
        c->topics[i].is_fixed = true;
    atomic_store(&c->end_housekeeping, false);
    atomic_store(&c->has_new_partitions, false);
    for (size_t i = 0; i < c->intake_count; i++) {
        struct intake *in = &c->intakes[i];
        if (pthread_create(&in->thread, NULL, intake_run, in) != 0)
            return err_set(e, EX_OSERR, "cannot start a thread; allow this user more processes or memory");
        pthread_setname_np(in->thread, "tallyd-intake");
        c->started++;
    }
    if (pthread_create(&c->housekeeper, NULL, housekeep, c) != 0)
        return err_set(e, EX_OSERR, "cannot start a thread; allow this user more processes or memory");
    pthread_setname_np(c->housekeeper, "tallyd-keeper");
    c->has_housekeeper = true;
    return true;
}

static void join_threads(struct consume *c)
{
    atomic_store(&c->end_housekeeping, true);
    for (size_t i = 0; i < c->started; i++)
        pthread_join(c->intakes[i].thread, NULL);
    if (c->has_housekeeper)
        pthread_join(c->housekeeper, NULL);
    c->started = 0;
    c->has_housekeeper = false;
    for (size_t i = 0; i < c->intake_count; i++)
        kafka_finish_commits(c->intakes[i].kafka, LAST_COMMIT_MS);
}

static void log_session_end(struct consume *c, const struct err *why)
{
    char quoted[LOG_QUOTE_BYTES];
    log_limited(LOG_LEVEL_WARN, "session_ended", "reason=%s next=\"%s\"", log_quote(why->text, quoted),
                is_stopping(c) ? "stopping" : "starting a new session from the store's positions");
    c->is_disturbed = true;
}

/* A session may end because another daemon has taken a membership, before any intake has noticed: note it
 * now. */
static void note_unfit(struct consume *c)
{
    struct err e;
    for (size_t i = 0; i < c->intake_count; i++) {
        struct intake *in = &c->intakes[i];
        if (in->kafka != NULL && !kafka_is_fit(in->kafka, &e))
            intake_fail(in, &e);
    }
}

/* Another daemon has joined the group under this one's name: may this one join again? Not if the store says
 * that the other came later; then *e names it. Otherwise the other may have been paused before it joined, and
 * ends when it asks the store. If it does not end, it counts into another store: the second time is final. */
static bool may_rejoin(struct consume *c, struct err *e)
{
    struct err named;
    int64_t now_ms = clock_mono_ms(c->engine->feeds.lanes.clock);
    bool is_contested = c->fenced_ms > 0 && now_ms - c->fenced_ms < CONTESTED_MS;
    c->fenced_ms = now_ms;
    if (!store_meet(c->engine->options.store, &named) && named.code == EX_CONFIG) {
        *e = named;
        return false;
    }
    return !is_contested;
}

/* Log what ended the intakes. False: the error is final. After a retryable error the next session finds out
 * whether it persists. */
static bool heed_failures(struct consume *c, struct err *e)
{
    bool is_fenced = false;
    for (size_t i = 0; i < c->intake_count; i++) {
        const struct intake *in = &c->intakes[i];
        if (!in->has_failed)
            continue;
        if (!in->error.retryable) {
            *e = in->error;
            if (e->code != EX_CONFIG || (!is_fenced && !may_rejoin(c, e)))
                return false;
            is_fenced = true; /* one session's fences are one */
        }
        log_session_end(c, &in->error);
    }
    return true;
}

static void log_topics(const struct consume *c)
{
    for (size_t i = 0; i < c->topic_count; i++) {
        const struct topic *t = &c->topics[i];
        log_info("consuming", "topic=%s partitions=%d source=%s%s%s", t->name, t->count, t->source,
                 c->shared.is_group ? " group=" : "",
                 c->shared.is_group ? c->engine->kafka_options.group : "");
    }
}

static bool count_session(struct consume *c, struct err *e)
{
    bool good = start_threads(c, e);
    if (good) {
        log_topics(c);
        c->state = STATUS_COUNTING;
        good = serve_intakes(c, e);
    }
    if (!good)
        lanes_abandon(&c->engine->feeds.lanes, &c->shared.abandon);
    join_threads(c);
    return good;
}

/* Did another daemon take over, so that a batch was dropped or a claim failed? */
static bool is_taken_over(const struct consume *c, const struct err *e)
{
    return c->shared.is_group && e->code == EX_TEMPFAIL && !e->retryable;
}

/* Run one session. Intakes live only that long: records that they have not stored are read again. */
static bool run_session(struct consume *c, struct err *e)
{
    init_intakes(c);
    c->is_disturbed = false;
    bool begun = begin_session_patiently(c, e);
    bool good = begun && writer_expire(&c->engine->writer, e) && count_session(c, e);
    note_unfit(c);
    consume_close(c);
    if (!good && !follow_has_failed(c->options->files) && (is_taken_over(c, e) || consume_has_outdated(c))) {
        log_session_end(c, e);
        good = true;
    }
    good = good && heed_failures(c, e);
    fini_intakes(c);
    return good || (!begun && is_stopping(c) && !follow_has_failed(c->options->files));
}

/* ---- the daemon */

static void init(struct consume *c)
{
    const struct config *cf = c->engine->options.config;
    c->shared.feeds = &c->engine->feeds;
    c->shared.broker_ms = &c->engine->broker_ms;
    c->shared.revoke_ms = cf->kafka.revoke_ms;
    c->shared.is_group = c->engine->options.store->is_shared;
    c->topics = topics_new(cf, c->options->accepted, c->options->accepted_count, &c->topic_count);
    c->intake_count = (size_t)cf->kafka.threads;
    c->intakes = xcalloc(c->intake_count, sizeof *c->intakes);
    c->troubles = xcalloc(c->intake_count, sizeof *c->troubles);
    for (size_t i = 0; i < c->intake_count; i++)
        c->intakes[i].feed.lane.heartbeat =
            heartbeats_add(&c->engine->options.service->notify.heartbeats, "intake");
    c->state = STATUS_STARTING;
}

bool consume_run(const struct consume_options *options, struct err *e)
{
    struct consume *c = xcalloc(1, sizeof *c);
    bool good = true;
    c->options = options;
    c->engine = options->engine;
    init(c);
    engine_add_part(c->engine, note, c);
    while (good && !is_stopping(c))
        good = run_session(c, e) && (!c->is_disturbed || pause_briefly(c, e));
    engine_note(c->engine);
    engine_drop_part(c->engine, c);
    free(c->intakes);
    free(c->troubles);
    topics_free(c->topics, c->topic_count);
    free(c);
    return good;
}
