#include "daemon/engine.h"

#include "base/check.h"
#include "base/mem.h"
#include "daemon/budget.h"
#include "daemon/setup.h"

#include <stdlib.h>

static void take_limits(struct engine *en)
{
    const struct config *c = en->options.config;
    flush_limit(&en->flush, c->aggregate.flush_ms, c->aggregate.flush_max_ms);
    en->feeds.future_max_ms = c->limits.future_max_ms;
}

void engine_note(struct engine *en)
{
    struct service *sv = en->options.service;
    struct status_figures figures = {
        .state = STATUS_STARTING,
        .books = &en->books,
        .messages = en->messages,
        .dead_letters = en->dead_letters,
        .memory_budget_bytes = en->budget_bytes,
        .flush_interval_ms = en->flush.interval_ms,
    };
    for (size_t i = 0; i < en->part_count; i++)
        en->parts[i].note(en->parts[i].part, &figures);
    if (engine_is_stopping(en))
        figures.state = STATUS_STOPPING;
    status_note(&sv->status, &figures);
    if (service_tick(sv))
        take_limits(en);
    en->feeds.flush_ms = en->flush.interval_ms;
}

static void tick(void *context)
{
    engine_note(context);
}

bool engine_init(struct engine *en, const struct engine_options *options, struct err *e)
{
    const struct config *c = options->config;
    struct service *sv = options->service;
    *en = (struct engine){.options = *options, .kafka_options = setup_kafka(c)};
    en->late_ms = xcalloc(c->report_count, sizeof *en->late_ms);
    books_init(&en->books, c->report_count);
    lanes_init(&en->feeds.lanes, sv->options.clock);
    en->feeds.reports = c->reports;
    en->feeds.report_count = c->report_count;
    en->feeds.shard = setup_pipeline(c, 1).shard;
    en->feeds.shard.late_ms = en->late_ms;
    en->feeds.rejects = &sv->rejects;
    en->feeds.derive = &c->derive;
    en->feeds.line_max = (size_t)c->limits.line_max;
    en->feeds.has_dead_letters = c->rejects.topic != NULL || c->rejects.file != NULL;
    flush_init(&en->flush, c->aggregate.flush_ms, c->aggregate.flush_max_ms, (int64_t)options->threads);
    en->feeds.flush_ms = en->flush.interval_ms;
    take_limits(en);
    en->writer =
        (struct writer){.store = options->store,
                        .clock = en->feeds.lanes.clock,
                        .give_up = sv->stop,
                        .status = &sv->status,
                        .flush = &en->flush,
                        .heartbeat = heartbeats_add(&sv->notify.heartbeats, "writer"),
                        .retry = true,
                        .insist = options->insist,
                        .tick = tick,
                        .context = en,
                        .late_ms = en->late_ms,
                        .broker_ms = options->is_of_brokers ? &en->broker_ms : NULL,
                        .trust_at_ms = clock_mono_ms(en->feeds.lanes.clock) + WRITER_EXPIRE_TRUST_MS};
    struct budget budget = budget_of(c);
    en->budget_bytes = setup_has_topics(c) ? budget.shards_bytes + budget.queue_bytes : 0;
    return dead_letter_queue_open(&en->dead_letter_queue, c, &en->kafka_options, e);
}

void engine_fini(struct engine *en)
{
    free(en->late_ms);
    writer_fini(&en->writer);
    dead_letter_queue_close(en->dead_letter_queue);
    books_fini(&en->books);
    lanes_fini(&en->feeds.lanes);
}

void engine_add_part(struct engine *en, engine_note_fn *note, void *part)
{
    ASSERT(en->part_count < ENGINE_PARTS_MAX);
    en->parts[en->part_count].note = note;
    en->parts[en->part_count++].part = part;
}

void engine_drop_part(struct engine *en, void *part)
{
    ASSERT(en->part_count > 0 && en->parts[en->part_count - 1].part == part);
    en->part_count--;
}

bool engine_is_stopping(const struct engine *en)
{
    return atomic_load(en->options.service->stop);
}

struct dead_letters_to_write {
    struct dead_letter_queue *queue;
    const struct dead_letters *dead_letters;
};

static bool write_dead_letters(void *context, struct err *e)
{
    struct dead_letters_to_write *w = context;
    return dead_letter_queue_write(w->queue, w->dead_letters, e);
}

/* Note the books of a range for its source, and what was rejected at its end. */
static void note_rejects(struct engine *en, const struct delivery *d, size_t i)
{
    const struct range_rejects *rr = &d->rejects[i];
    if (rr->source == NULL)
        return;
    const struct rejects_range noted = {
        .source = (size_t)(rr->source - en->options.config->sources),
        .label = rr->source->type == SOURCE_KAFKA ? rr->source->topic : d->ranges[i].label,
        .decode = &rr->source->decode,
        .books = &d->books[i],
        .records = rr->records,
        .sample = rr->len > 0 ? slice_of(d->samples.ptr + rr->at, rr->len) : slice_of(NULL, 0),
    };
    rejects_note_range(en->feeds.rejects, &noted);
}

bool engine_apply(struct engine *en, struct feed *f, struct err *e)
{
    struct part *part;
    struct delivery *d = &f->sealed;
    struct dead_letters_to_write dead_letters = {en->dead_letter_queue, &d->dead_letters};
    struct batch batch = feed_batch(f, &part);
    if (!writer_apply(&en->writer, &batch, write_dead_letters, &dead_letters, e)) {
        en->has_failed = true;
        return false;
    }
    for (size_t i = 0; i < d->range_count; i++) {
        books_add(&en->books, &d->books[i]);
        note_rejects(en, d, i);
    }
    en->messages += d->messages;
    en->dead_letters += (int64_t)(en->dead_letter_queue != NULL ? d->dead_letters.count : 0);
    return true;
}

void engine_release(struct engine *en, struct feed *f)
{
    pthread_mutex_lock(&en->feeds.lanes.lock);
    lane_note_applied(&f->lane);
    pthread_mutex_unlock(&en->feeds.lanes.lock);
}

bool engine_lend(struct engine *en, const struct batch *batch, bool (*wait)(void *context), void *context,
                 struct err *e)
{
    struct lanes *ls = &en->feeds.lanes;
    struct engine_loan loan = {.batch = batch};
    bool may_wait = true;
    pthread_mutex_lock(&ls->lock);
    ASSERT(en->loan == NULL);
    en->loan = &loan;
    pthread_cond_signal(&ls->sealed);
    int64_t until_ms = clock_mono_ms(ls->clock) + ENGINE_WAIT_MS;
    while (!loan.is_done && (may_wait || loan.is_taken)) {
        if (clock_wait(ls->clock, &ls->applied, &ls->lock, until_ms))
            continue;
        pthread_mutex_unlock(&ls->lock);
        may_wait = wait(context);
        until_ms = clock_mono_ms(ls->clock) + ENGINE_WAIT_MS;
        pthread_mutex_lock(&ls->lock);
    }
    if (!loan.is_taken)
        en->loan = NULL;
    pthread_mutex_unlock(&ls->lock);
    if (!loan.is_done)
        return err_set_retryable(e, EX_TEMPFAIL, "interrupted");
    *e = loan.error;
    return loan.error.code == 0;
}

static void apply_loan(struct engine *en)
{
    struct lanes *ls = &en->feeds.lanes;
    pthread_mutex_lock(&ls->lock);
    struct engine_loan *loan = en->loan;
    if (loan != NULL)
        loan->is_taken = true;
    en->loan = NULL;
    pthread_mutex_unlock(&ls->lock);
    if (loan == NULL)
        return;
    if (writer_apply(&en->writer, loan->batch, NULL, NULL, &loan->error))
        loan->error.code = 0;
    pthread_mutex_lock(&ls->lock);
    loan->is_done = true;
    pthread_cond_broadcast(&ls->applied);
    pthread_mutex_unlock(&ls->lock);
}

bool engine_turn(struct engine *en, struct err *e)
{
    apply_loan(en);
    if (!writer_housekeep(&en->writer, e) || !writer_expire(&en->writer, e)) {
        en->has_failed = true;
        return false;
    }
    writer_turn(&en->writer);
    return true;
}
