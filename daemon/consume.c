#include "daemon/consume.h"

#include "base/check.h"
#include "base/failpoint.h"
#include "base/log.h"
#include "base/mem.h"
#include "daemon/budget.h"
#include "daemon/intake.h"
#include "daemon/setup.h"
#include "daemon/writer.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define AGAIN_MS          1000  /* between two attempts to begin a session */
#define NEW_PARTITIONS_MS 10000 /* how often they are looked for */
#define LAST_COMMIT_MS    1000  /* waited for at the end */

struct consume {
    const struct consume_options *options;
    struct kafka_options kafka_options;
    struct intake_shared shared;
    struct topic *topics;
    size_t topic_count;
    struct intake *intakes;
    size_t intake_count;
    size_t served; /* whose delivery was taken last: the others are next */
    struct writer writer;
    struct letter_box *box;
    struct books books; /* since the start, of all topics */
    int64_t messages, letters;
    int64_t budget_bytes; /* of shards and queues */
    enum status_state state;
    pthread_t housekeeper;
    size_t started; /* intakes, … */
    bool has_housekeeper;
    atomic_bool end_housekeeping, has_new_partitions;
};

static bool is_stopping(const struct consume *c)
{
    return atomic_load(c->options->service->stop);
}

static void take_limits(struct consume *c)
{
    c->shared.limits.flush_ms = c->options->config->aggregate.flush_ms;
    c->shared.limits.future_max_ms = c->options->config->limits.future_max_ms;
}

/* Who consumes the partitions of this number. */
static struct intake *intake_of(const struct consume *c, int32_t number)
{
    ASSERT(c->intake_count > 0);
    return &c->intakes[(size_t)number % c->intake_count];
}

static void note_partitions(struct consume *c)
{
    for (size_t i = 0; i < c->topic_count; i++) {
        struct topic *t = &c->topics[i];
        for (int32_t n = 0; n < t->count; n++) {
            struct partition *p = &t->partitions[n];
            struct kafka *k = intake_of(c, n)->kafka;
            if (p->status_index >= 0 && k != NULL)
                status_note_partition(&c->options->service->status, p->status_index, p->stored,
                                      kafka_end(k, t->name, n));
        }
    }
}

/* The writer's, several times a second. */
static void tick(void *context)
{
    struct consume *c = context;
    struct service *sv = c->options->service;
    int64_t bytes = 0, queued_bytes = 0;
    for (size_t i = 0; i < c->intake_count; i++) {
        bytes += c->intakes[i].bytes;
        queued_bytes += c->intakes[i].kafka != NULL ? kafka_queued_bytes(c->intakes[i].kafka) : 0;
    }
    note_partitions(c);
    status_note(&sv->status, &(struct status_figures){
                                 .state = is_stopping(c) ? STATUS_STOPPING : c->state,
                                 .books = &c->books,
                                 .messages = c->messages,
                                 .dead_letters = c->letters,
                                 .shard_bytes = bytes,
                                 .queue_bytes = queued_bytes,
                                 .memory_budget_bytes = c->budget_bytes,
                             });
    if (service_tick(sv))
        take_limits(c);
}

/* ---- applying */

struct letters_to_write {
    struct letter_box *box;
    const struct letters *letters;
};

static bool write_letters(void *context, struct err *e)
{
    struct letters_to_write *w = context;
    return letter_box_write(w->box, w->letters, e);
}

static void commit(struct consume *c, struct intake *in, const struct delivery *d)
{
    struct kafka_offset *offsets = xcalloc(d->range_count, sizeof *offsets);
    (void)c;
    for (size_t i = 0; i < d->range_count; i++) {
        struct partition *p = d->ranges[i].partition;
        p->stored = d->ranges[i].range.to;
        offsets[i] = (struct kafka_offset){p->topic->name, p->number, p->stored};
    }
    failpoint(FAILPOINT_OFFSETS_BEFORE);
    kafka_commit(in->kafka, offsets, d->range_count);
    failpoint(FAILPOINT_OFFSETS_AFTER);
    free(offsets);
}

static bool apply(struct consume *c, struct intake *in, struct err *e)
{
    struct delivery *d = &in->sealed;
    struct letters_to_write letters = {c->box, &d->letters};
    struct range *ranges = xcalloc(d->range_count, sizeof *ranges);
    struct books *books = xcalloc(d->range_count, sizeof *books);
    for (size_t i = 0; i < d->range_count; i++) {
        ranges[i] = d->ranges[i].range;
        books[i] = d->ranges[i].books;
    }
    struct batch batch = {
        .ranges = ranges, .books = books, .range_count = d->range_count, .parts = &d->part, .part_count = 1};
    bool good = writer_apply(&c->writer, &batch, write_letters, &letters, e);
    for (size_t i = 0; good && i < d->range_count; i++)
        books_add(&c->books, &books[i]);
    free(ranges);
    free(books);
    if (!good)
        return false;
    c->messages += d->messages;
    c->letters += (int64_t)(c->box != NULL ? d->letters.count : 0);
    commit(c, in, d);
    pthread_mutex_lock(&c->shared.lock);
    d->is_applied = true;
    pthread_cond_broadcast(&c->shared.applied);
    pthread_mutex_unlock(&c->shared.lock);
    return true;
}

/* An intake with something to apply; NULL: none within a tick. *ended: all have ended; *failed: one failed.
 */
static struct intake *wait_delivery(struct consume *c, bool *ended, bool *failed)
{
    struct intake *found = NULL;
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += WRITER_TICK_MS / 2 * 1000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_mutex_lock(&c->shared.lock);
    for (int attempt = 0; attempt < 2 && found == NULL; attempt++) {
        *ended = true;
        *failed = false;
        for (size_t i = 0; i < c->intake_count; i++) {
            struct intake *in = &c->intakes[(c->served + 1 + i) % c->intake_count];
            *ended = *ended && in->has_ended;
            *failed = *failed || in->has_failed;
            if (found == NULL && in->sealed.part != NULL && !in->sealed.is_applied)
                found = in;
        }
        if (found == NULL && attempt == 0 &&
            (*ended || *failed || pthread_cond_timedwait(&c->shared.sealed, &c->shared.lock, &until) != 0))
            break;
    }
    pthread_mutex_unlock(&c->shared.lock);
    *ended = *ended && found == NULL;
    c->served = found != NULL ? (size_t)(found - c->intakes) : c->served;
    return found;
}

/* Until all intakes have ended, and everything of theirs is applied. */
static bool write_deliveries(struct consume *c, struct err *e)
{
    bool ended = false;
    while (!ended) {
        bool failed;
        struct intake *in = wait_delivery(c, &ended, &failed);
        if (in != NULL && !apply(c, in, e))
            return false;
        if (!writer_tidy(&c->writer, e))
            return false;
        writer_turn(&c->writer);
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
    int64_t looked_ms = clock_mono_ms(c->shared.clock);
    while (!atomic_load(&c->end_housekeeping)) {
        for (size_t i = 0; i < c->intake_count; i++) {
            struct intake *in = &c->intakes[i];
            kafka_serve(in->kafka);
            if (atomic_exchange(&in->is_busy, false))
                kafka_wake(in->kafka);
        }
        int64_t now_ms = clock_mono_ms(c->shared.clock);
        if (now_ms - looked_ms >= NEW_PARTITIONS_MS) {
            if (finds_new_partitions(c))
                atomic_store(&c->has_new_partitions, true);
            looked_ms = clock_mono_ms(c->shared.clock);
        }
        nanosleep(&(struct timespec){.tv_nsec = KAFKA_WAKE_MS * 1000000L}, NULL);
    }
    return NULL;
}

/* ---- a session */

static bool open_consumers(struct consume *c, struct err *e)
{
    for (size_t i = 0; i < c->intake_count; i++) {
        c->intakes[i].kafka = kafka_open(&c->kafka_options, e);
        if (c->intakes[i].kafka == NULL)
            return false;
    }
    return true;
}

static void close_consumers(struct consume *c)
{
    for (size_t i = 0; i < c->intake_count; i++) {
        kafka_close(c->intakes[i].kafka);
        c->intakes[i].kafka = NULL;
    }
}

/* Where partitions that are new begin, or where accepted losses end, is durable before anything of them is
 * counted: at the next start they are known, and `start` means nothing to them any more. */
static bool store_beginnings(struct consume *c, struct err *e)
{
    struct range *ranges = NULL;
    size_t count = 0, capacity = 0;
    for (size_t i = 0; i < c->topic_count; i++) {
        for (int32_t n = 0; n < c->topics[i].count; n++) {
            struct partition *p = &c->topics[i].partitions[n];
            p->stored = p->next;
            if (p->is_known && p->lost == 0)
                continue;
            ranges = xgrow(ranges, &capacity, count + 1, sizeof *ranges);
            partition_range(p, &ranges[count++]);
            p->lost = 0; /* what follows continues from `next` */
        }
    }
    struct books *books = xcalloc(count + 1, sizeof *books);
    for (size_t i = 0; i < count; i++)
        books_init(&books[i], c->options->config->report_count);
    struct batch batch = {.ranges = ranges, .books = books, .range_count = count};
    bool good = count == 0 || writer_apply(&c->writer, &batch, NULL, NULL, e);
    for (size_t i = 0; i < count; i++)
        books_fini(&books[i]);
    free(books);
    free(ranges);
    return good;
}

static bool assign(struct consume *c, struct err *e)
{
    for (size_t k = 0; k < c->intake_count; k++) {
        struct kafka_offset *offsets = NULL;
        size_t count = 0, capacity = 0;
        for (size_t i = 0; i < c->topic_count; i++) {
            for (int32_t n = 0; n < c->topics[i].count; n++) {
                if (intake_of(c, n) != &c->intakes[k])
                    continue;
                offsets = xgrow(offsets, &capacity, count + 1, sizeof *offsets);
                offsets[count++] =
                    (struct kafka_offset){c->topics[i].name, n, c->topics[i].partitions[n].next};
            }
        }
        bool good = count == 0 || kafka_assign(c->intakes[k].kafka, offsets, count, e);
        free(offsets);
        if (!good)
            return false;
    }
    return true;
}

static void add_to_status(struct consume *c)
{
    for (size_t i = 0; i < c->topic_count; i++) {
        struct topic *t = &c->topics[i];
        for (int32_t n = 0; n < t->count; n++) {
            if (t->partitions[n].status_index < 0)
                t->partitions[n].status_index =
                    status_add_partition(&c->options->service->status, t->name, n);
        }
        log_info("consuming", "topic=%s partitions=%d source=%s", t->name, t->count, t->source);
    }
}

/* Everything up to the first message. The consumers stay open over failures, so that slow connections are
 * made. */
static bool begin_session(struct consume *c, struct err *e)
{
    return (c->intakes[0].kafka != NULL || open_consumers(c, e)) &&
           topics_begin(c->topics, c->topic_count, c->options->store, c->intakes[0].kafka, &c->kafka_options,
                        e) &&
           store_beginnings(c, e) && assign(c, e);
}

/* The same, until it succeeds or the stop comes. */
static bool begin_session_patiently(struct consume *c, struct err *e)
{
    bool said = false;
    while (!begin_session(c, e)) {
        char quoted[LOG_QUOTE_BYTES];
        if (!e->retryable || is_stopping(c))
            return false;
        if (!said)
            log_warn("waiting", "reason=%s next=\"trying again\"", log_quote(e->text, quoted));
        said = true;
        writer_sleep(&c->writer, AGAIN_MS);
        if (is_stopping(c))
            return false;
    }
    return true;
}

static bool start_threads(struct consume *c, struct err *e)
{
    atomic_store(&c->shared.end, false);
    atomic_store(&c->end_housekeeping, false);
    atomic_store(&c->has_new_partitions, false);
    for (size_t i = 0; i < c->intake_count; i++) {
        struct intake *in = &c->intakes[i];
        in->has_ended = in->has_failed = false;
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

/* What ended the intakes. Whether it is a reason to end, the next session finds out as it begins. */
static void log_failures(struct consume *c)
{
    for (size_t i = 0; i < c->intake_count; i++) {
        struct intake *in = &c->intakes[i];
        char quoted[LOG_QUOTE_BYTES];
        if (!in->has_failed)
            continue;
        log_limited(LOG_LEVEL_WARN, "session_ended", "reason=%s next=\"beginning anew from the store\"",
                    log_quote(in->error.text, quoted));
        writer_sleep(&c->writer, AGAIN_MS);
    }
}

static bool run_session(struct consume *c, struct err *e)
{
    if (!begin_session_patiently(c, e)) {
        close_consumers(c);
        return is_stopping(c);
    }
    bool good = start_threads(c, e);
    if (good) {
        add_to_status(c);
        c->state = STATUS_COUNTING;
        good = write_deliveries(c, e);
    }
    if (!good) {
        pthread_mutex_lock(&c->shared.lock);
        atomic_store(&c->shared.abandon, true);
        pthread_cond_broadcast(&c->shared.applied);
        pthread_mutex_unlock(&c->shared.lock);
    }
    join_threads(c);
    close_consumers(c);
    if (good)
        log_failures(c);
    return good;
}

/* ---- the whole */

static void init_shared(struct consume *c)
{
    const struct config *cf = c->options->config;
    struct intake_shared *sh = &c->shared;
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_mutex_init(&sh->lock, NULL);
    pthread_cond_init(&sh->sealed, &attributes);
    pthread_cond_init(&sh->applied, NULL);
    pthread_condattr_destroy(&attributes);
    sh->clock = &clock_system;
    sh->reports = cf->reports;
    sh->report_count = cf->report_count;
    sh->shard = setup_pipeline(cf, 1).shard;
    sh->line_max = (size_t)cf->limits.line_max;
    sh->keeps_letters = cf->rejects.topic != NULL || cf->rejects.file != NULL;
    take_limits(c);
}

static void init(struct consume *c)
{
    const struct config *cf = c->options->config;
    struct service *sv = c->options->service;
    c->kafka_options = setup_kafka(cf);
    init_shared(c);
    c->topics = topics_new(cf, c->options->accepted, c->options->accepted_count, &c->topic_count);
    c->writer = (struct writer){.store = c->options->store,
                                .clock = &clock_system,
                                .give_up = sv->stop,
                                .status = &sv->status,
                                .beat = beats_add(&sv->notify.beats, "writer"),
                                .retry = true,
                                .insist = true, /* the alarm of run.stop_timeout ends it */
                                .tick = tick,
                                .context = c};
    c->intake_count = (size_t)cf->kafka.threads;
    c->intakes = xcalloc(c->intake_count, sizeof *c->intakes);
    for (size_t i = 0; i < c->intake_count; i++) {
        intake_init(&c->intakes[i], &c->shared, (uint32_t)i, c->topics, c->topic_count);
        c->intakes[i].beat = beats_add(&sv->notify.beats, "intake");
    }
    books_init(&c->books, cf->report_count);
    struct budget budget = budget_of(cf);
    c->budget_bytes = budget.shards_bytes + budget.queue_bytes;
    c->state = STATUS_STARTING;
}

static void fini(struct consume *c)
{
    for (size_t i = 0; i < c->intake_count; i++)
        intake_fini(&c->intakes[i]);
    free(c->intakes);
    topics_free(c->topics, c->topic_count);
    letter_box_close(c->box);
    books_fini(&c->books);
    pthread_cond_destroy(&c->shared.sealed);
    pthread_cond_destroy(&c->shared.applied);
    pthread_mutex_destroy(&c->shared.lock);
}

bool consume_run(const struct consume_options *options, struct err *e)
{
    struct consume *c = xcalloc(1, sizeof *c);
    c->options = options;
    init(c);
    bool good = letter_box_open(&c->box, options->config, &c->kafka_options, e);
    while (good && !is_stopping(c))
        good = run_session(c, e);
    tick(c);
    failpoint(FAILPOINT_STOP_DRAINED);
    if (good)
        log_info("stopped", "messages=%" PRId64 " consumed=%" PRId64 " rejected=%" PRId64, c->messages,
                 c->books.entries[BOOK_CONSUMED], books_rejected(&c->books));
    fini(c);
    free(c);
    return good;
}
