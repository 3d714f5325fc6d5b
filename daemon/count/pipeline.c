#include "daemon/count/pipeline.h"

#include "base/check.h"
#include "base/log.h"
#include "base/mem.h"
#include "daemon/count/worker.h"
#include "daemon/count/writer.h"
#include "ingest/file/identity.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* Most stripes under way: each worker may hold a sealed part, an open part, and a block of a third stripe.
 * One more is opened by the next block. */
#define STRIPES (3 * PIPELINE_THREADS_MAX + 1)
#define WAIT_MS 50

struct stripe {
    int64_t from, to;
    int64_t begun_ms;  /* monotonic time of its first block; 0: none yet */
    int64_t latest_ms; /* wall time; later events are in the future */
    uint64_t tail_hash;
    uint32_t tail_len;
};

struct pipeline {
    struct pipeline_options options;
    struct worker *workers;
    struct pipeline_progress progress; /* the writer's */
    struct books books;                /* books of the stripe that the writer applies */
    struct writer writer;
    _Atomic int64_t *late_ms; /* by report; set by the writer, read by the shards */

    pthread_mutex_t reading; /* guards the reader and the making of stripes; taken before lanes.lock */
    struct reader *reader;
    bool seal_wanted, ended;
    struct err read_error;
    bool read_failed;
    struct latest latest;                    /* the writer's */
    int64_t backfill_latest_ms;              /* of the range, if it is counted before its position */
    _Atomic int64_t read_offset, raw_offset; /* read by the writer for its progress */

    struct lanes lanes; /* its lock guards the members below */
    struct stripe stripes[STRIPES];
    uint64_t stripe;     /* number of the open stripe */
    uint64_t next_apply; /* first stripe that is not applied */
    uint64_t *past;      /* by worker: first stripe that it may still add to */
    atomic_bool abandon; /* the store failed for good: end, although input is left */
    struct err store_error;
};

struct thread {
    struct pipeline *p;
    size_t number;
    pthread_t id;
};

static void tick(void *context)
{
    struct pipeline *p = context;
    if (p->options.tick != NULL)
        p->options.tick(p->options.context, &p->progress);
}

struct pipeline *pipeline_new(struct store *store, const struct report *reports, size_t report_count,
                              const struct pipeline_options *options)
{
    ASSERT(options->threads >= 1 && options->threads <= PIPELINE_THREADS_MAX);
    struct pipeline *p = xcalloc(1, sizeof *p);
    p->options = *options;
    p->late_ms = xcalloc(report_count, sizeof *p->late_ms);
    if (options->apply == NULL)
        p->options.shard.late_ms = p->late_ms;
    p->workers = xcalloc(options->threads, sizeof *p->workers);
    p->past = xcalloc(options->threads, sizeof *p->past);
    const struct worker_options own = {.decode = options->decode,
                                       .line_max = options->line_max,
                                       .shard = p->options.shard,
                                       .abandon = &p->abandon,
                                       .keeps_rejects = options->rejects != NULL};
    for (size_t i = 0; i < options->threads; i++)
        worker_init(&p->workers[i], options->first_shard + (uint32_t)i, &p->lanes, reports, report_count,
                    &own);
    p->writer = (struct writer){.store = store,
                                .clock = options->clock,
                                .give_up = options->stop,
                                .retry = options->retry,
                                .tick = tick,
                                .context = p,
                                .late_ms = p->late_ms};
    pthread_mutex_init(&p->reading, NULL);
    lanes_init(&p->lanes, options->clock);
    books_init(&p->progress.books, report_count);
    books_init(&p->books, report_count);
    return p;
}

void pipeline_free(struct pipeline *p)
{
    if (p == NULL)
        return;
    for (size_t i = 0; i < p->options.threads; i++)
        worker_fini(&p->workers[i]);
    books_fini(&p->progress.books);
    books_fini(&p->books);
    lanes_fini(&p->lanes);
    pthread_mutex_destroy(&p->reading);
    free(p->workers);
    free(p->past);
    free(p->late_ms);
    writer_fini(&p->writer);
    free(p);
}

void pipeline_set_decode(struct pipeline *p, const struct decode *d, const struct constants *constants,
                         const struct raw *raw)
{
    p->options.raw = raw;
    for (size_t i = 0; i < p->options.threads; i++)
        worker_set_decode(&p->workers[i], d, constants);
}

void pipeline_set_filter(struct pipeline *p, const struct backfill_filter *filter)
{
    for (size_t i = 0; i < p->options.threads; i++)
        p->workers[i].lane.filter = filter;
}

const struct pipeline_progress *pipeline_progress(const struct pipeline *p)
{
    return &p->progress;
}

bool pipeline_has_failed(const struct pipeline *p)
{
    return atomic_load(&p->abandon);
}

static struct stripe *stripe_at(struct pipeline *p, uint64_t number)
{
    return &p->stripes[number % STRIPES];
}

static int64_t latest(const struct pipeline *p)
{
    if (p->options.backfills)
        return p->backfill_latest_ms;
    return record_clock_latest(clock_wall_ms(p->options.clock), p->options.future_max_ms);
}

/* End the open stripe at the reader's offset, and open the next. */
static void close_stripe(struct pipeline *p)
{
    pthread_mutex_lock(&p->lanes.lock);
    ASSERT(p->stripe + 1 - p->next_apply < STRIPES);
    struct stripe *s = stripe_at(p, p->stripe);
    s->to = reader_offset(p->reader);
    s->tail_hash = identity_tail(reader_tail(p->reader), &s->tail_len);
    if (s->begun_ms == 0)
        s->latest_ms = latest(p); /* the stripe has only the line feed of a line counted before */
    p->stripe++;
    *stripe_at(p, p->stripe) = (struct stripe){.from = s->to};
    pthread_mutex_unlock(&p->lanes.lock);
    p->seal_wanted = false;
}

/* Is the writer still busy with a stripe before the open one? Then the open one is filled further: a series
 * that comes twice in a batch is written once. A backfill's batches stay short, since others wait. */
static bool writer_is_behind(struct pipeline *p)
{
    pthread_mutex_lock(&p->lanes.lock);
    const bool is_behind = p->options.apply == NULL && p->next_apply < p->stripe;
    pthread_mutex_unlock(&p->lanes.lock);
    return is_behind;
}

static bool stripe_is_over(struct pipeline *p, const struct stripe *s, int64_t mono_ms)
{
    if (s->begun_ms == 0)
        return false;
    return p->seal_wanted || reader_offset(p->reader) - s->from >= p->options.stripe_bytes ||
           (mono_ms - s->begun_ms >= p->options.stripe_ms && !writer_is_behind(p));
}

/* Take the next block for worker `w`. Events later than *latest_ms are in the future, by the wall clock of
 * the block's stripe. Returns READER_BLOCK and its stripe, READER_WAIT, or READER_END. */
static enum reader_result take_block(struct pipeline *p, struct worker *w, uint64_t *stripe,
                                     int64_t *latest_ms)
{
    enum reader_result result = READER_END;
    pthread_mutex_lock(&p->reading);
    int64_t mono_ms = clock_mono_ms(p->options.clock);
    if (stripe_is_over(p, stripe_at(p, p->stripe), mono_ms))
        close_stripe(p);
    if (!p->ended && (atomic_load(p->options.stop) || atomic_load(&p->abandon)))
        p->ended = true;
    if (!p->ended) {
        result = reader_next(p->reader, &w->block, WAIT_MS, &p->read_error);
        p->read_failed = result == READER_FAILED;
        p->ended = result == READER_END || result == READER_FAILED;
    }
    struct stripe *s = stripe_at(p, p->stripe);
    if (result == READER_BLOCK && s->begun_ms == 0) {
        s->begun_ms = mono_ms;
        s->latest_ms = latest(p);
    }
    if (p->ended && reader_offset(p->reader) > s->from)
        close_stripe(p);
    *stripe = p->stripe;
    *latest_ms = s->latest_ms;
    p->read_offset = reader_offset(p->reader);
    p->raw_offset = reader_raw_offset(p->reader);
    if (p->ended && result != READER_BLOCK)
        result = READER_END;
    pthread_mutex_unlock(&p->reading);
    return result;
}

/* Hand over the worker's part: it has nothing more for stripes before `stripe`. */
static bool move_to(struct pipeline *p, size_t number, uint64_t stripe)
{
    struct worker *w = &p->workers[number];
    struct lane *l = &w->lane;
    if (w->open.stripe == stripe)
        return true;
    struct part *part = NULL;
    if (!shard_is_empty(l->shard)) {
        if (!lane_take_back(l, LANE_FOREVER_MS))
            return false;
        part = shard_seal(l->shard);
    }
    pthread_mutex_lock(&p->lanes.lock);
    if (part != NULL)
        worker_hand_over(w, part);
    p->past[number] = stripe;
    pthread_cond_signal(&p->lanes.sealed);
    pthread_mutex_unlock(&p->lanes.lock);
    w->open.stripe = stripe;
    return !shard_must_wait(l->shard) || lane_take_back(l, LANE_FOREVER_MS);
}

static void *worker_thread(void *context)
{
    struct thread *t = context;
    struct pipeline *p = t->p;
    struct worker *w = &p->workers[t->number];
    while (true) {
        uint64_t stripe;
        int64_t latest_ms;
        enum reader_result result = take_block(p, w, &stripe, &latest_ms);
        if (!move_to(p, t->number, stripe) || result == READER_END)
            break;
        if (result == READER_WAIT)
            continue;
        worker_count(w, latest_ms);
        if (shard_is_full(w->lane.shard)) {
            pthread_mutex_lock(&p->reading);
            p->seal_wanted = true;
            pthread_mutex_unlock(&p->reading);
        }
    }
    pthread_mutex_lock(&p->lanes.lock);
    p->past[t->number] = UINT64_MAX;
    pthread_cond_signal(&p->lanes.sealed);
    pthread_mutex_unlock(&p->lanes.lock);
    return NULL;
}

/* Are all workers past the stripe? Pre: p->lanes.lock is held. */
static bool is_sealed(const struct pipeline *p, uint64_t stripe)
{
    for (size_t i = 0; i < p->options.threads; i++) {
        if (p->past[i] <= stripe)
            return false;
    }
    return true;
}

static bool all_ended(const struct pipeline *p)
{
    return is_sealed(p, UINT64_MAX - 1);
}

struct rejects_to_write {
    struct rejects_file *file;
    struct worker **workers;
    size_t count, written;
};

/* Write rejected lines to disk before the position passes them; after a crash they may repeat. A call after a
 * failure resumes at the worker whose rejects failed. */
static bool write_rejects(void *context, struct err *e)
{
    struct rejects_to_write *w = context;
    for (; w->file != NULL && w->written < w->count; w->written++) {
        const struct text *rejects = &w->workers[w->written]->sealed.rejects;
        if (rejects->len > 0 && !rejects_file_append(w->file, text_slice(rejects), e))
            return false;
    }
    return true;
}

static void note_progress(struct pipeline *p, const struct worker *w)
{
    books_add(&p->progress.books, &w->lane.part->books);
    samples_merge(&p->progress.samples, &w->sealed.samples);
}

/* Collect the workers with a part of the stripe. They do not touch what they sealed until it is applied. */
static size_t collect(struct pipeline *p, uint64_t number, struct worker **workers)
{
    size_t count = 0;
    pthread_mutex_lock(&p->lanes.lock);
    for (size_t i = 0; i < p->options.threads; i++) {
        struct worker *w = &p->workers[i];
        if (lane_needs_applying(&w->lane) && w->sealed.stripe == number)
            workers[count++] = w;
    }
    pthread_mutex_unlock(&p->lanes.lock);
    return count;
}

/* Apply stripe `number` to the store. No lock is held: workers fill their next parts. */
static bool apply_stripe(struct pipeline *p, uint64_t number, const struct range *source, struct err *e)
{
    struct worker *workers[PIPELINE_THREADS_MAX];
    struct part *parts[PIPELINE_THREADS_MAX];
    const struct stripe *s = stripe_at(p, number);
    struct range range = *source;
    struct batch batch = {.ranges = &range,
                          .books = &p->books,
                          .range_count = 1,
                          .parts = parts,
                          .part_count = collect(p, number, workers),
                          .backfills = p->options.backfills,
                          .report = p->options.report,
                          .only_from_ms = p->options.only.from_ms,
                          .only_to_ms = p->options.only.to_ms};
    range.from = s->from;
    range.to = s->to;
    range.tail_hash = s->tail_hash;
    range.tail_len = s->tail_len;
    range_set_latest(&range, &p->latest, s->latest_ms);
    range.builds = derived_builds(chain_derived(p->workers[0].chain));
    books_clear(&p->books);
    for (size_t i = 0; i < batch.part_count; i++) {
        parts[i] = workers[i]->lane.part;
        books_add(&p->books, &parts[i]->books);
    }
    struct rejects_to_write rejects = {p->options.rejects, workers, batch.part_count, 0};
    if (!(p->options.apply != NULL ? p->options.apply(p->options.context, &batch, e)
                                   : writer_apply(&p->writer, &batch, write_rejects, &rejects, e)))
        return false;
    p->progress.stored = s->to;
    p->progress.batches++;
    p->progress.cells += (uint64_t)writer_count_cells(&batch);
    for (size_t i = 0; i < batch.part_count; i++)
        note_progress(p, workers[i]);
    pthread_mutex_lock(&p->lanes.lock);
    for (size_t i = 0; i < batch.part_count; i++)
        lane_note_applied(&workers[i]->lane);
    p->next_apply = number + 1;
    pthread_mutex_unlock(&p->lanes.lock);
    return true;
}

/* Wait for the next sealed stripe or a tick. False: no stripe is left, and none will come. */
static bool wait_sealed(struct pipeline *p, bool *sealed)
{
    pthread_mutex_lock(&p->lanes.lock);
    while (!(*sealed = p->next_apply < p->stripe && is_sealed(p, p->next_apply)) && !all_ended(p)) {
        struct timespec until = clock_timespec_in(WRITER_TICK_MS);
        if (pthread_cond_timedwait(&p->lanes.sealed, &p->lanes.lock, &until) == ETIMEDOUT)
            break;
    }
    p->progress.offset = p->read_offset;
    p->progress.raw_offset = p->raw_offset;
    bool more = *sealed || !all_ended(p);
    pthread_mutex_unlock(&p->lanes.lock);
    return more;
}

/* The work between batches; if others apply them, it is theirs. */
static bool housekeep(struct pipeline *p, struct err *e)
{
    return p->options.apply != NULL ||
           ((!p->options.housekeep || writer_housekeep(&p->writer, e)) && writer_expire(&p->writer, e));
}

static bool write_stripes(struct pipeline *p, const struct range *source, struct err *e)
{
    bool sealed;
    p->writer.ticked_ms = 0;
    p->writer.housekeeping_is_failing = false;
    while (wait_sealed(p, &sealed)) {
        /* Only this thread moves next_apply. */
        if (sealed && !apply_stripe(p, p->next_apply, source, e))
            return false;
        if (!housekeep(p, e))
            return false;
        writer_turn(&p->writer);
    }
    return true;
}

/* Have all workers make fields by the same lists and databases. */
static void share_data(struct pipeline *p)
{
    struct derive_data *data = derive_hold(p->options.decode->derive);
    for (size_t i = 0; i < p->options.threads; i++)
        derived_set_data(chain_derived(p->workers[i].chain), data);
    derive_release(data);
}

static void reset(struct pipeline *p, struct reader *reader, const struct range *source)
{
    struct books books = p->progress.books;
    p->reader = reader;
    p->seal_wanted = p->ended = p->read_failed = false;
    p->stripe = p->next_apply = 1;
    p->latest = (struct latest){0};
    p->backfill_latest_ms = source->latest_ms;
    *stripe_at(p, p->stripe) = (struct stripe){.from = reader_offset(reader)};
    books_clear(&books);
    share_data(p);
    p->progress = (struct pipeline_progress){
        .offset = reader_offset(reader), .stored = reader_offset(reader), .books = books};
    for (size_t i = 0; i < p->options.threads; i++) {
        p->workers[i].open.stripe = p->stripe;
        p->past[i] = p->stripe;
        shard_set_source(p->workers[i].lane.shard, source, p->options.raw);
    }
}

/* Start as many threads as possible: the others do the work of one that cannot start. */
static size_t start_threads(struct pipeline *p, struct thread *threads)
{
    size_t started = 0;
    pthread_mutex_lock(&p->lanes.lock); /* so that no thread ends before all are known */
    for (size_t i = 0; i < p->options.threads; i++) {
        threads[i] = (struct thread){.p = p, .number = i};
        if (started < i || pthread_create(&threads[i].id, NULL, worker_thread, &threads[i]) != 0) {
            p->past[i] = UINT64_MAX;
            continue;
        }
        pthread_setname_np(threads[i].id, "tallyd-ingest");
        started++;
    }
    pthread_mutex_unlock(&p->lanes.lock);
    return started;
}

bool pipeline_run(struct pipeline *p, struct reader *reader, const struct range *range, struct err *e)
{
    struct thread threads[PIPELINE_THREADS_MAX];
    reset(p, reader, range);
    if (atomic_load(&p->abandon)) {
        *e = p->store_error;
        return false;
    }
    /* so that the shards know the watermark before the first event */
    if (p->options.apply == NULL && !writer_expire(&p->writer, e))
        return false;
    size_t started = start_threads(p, threads);
    if (started == 0)
        return err_set(e, EX_OSERR, "cannot start a thread; allow this user more processes or memory");
    bool good = write_stripes(p, range, e);
    if (!good) {
        p->store_error = *e;
        lanes_abandon(&p->lanes, &p->abandon);
    }
    for (size_t i = 0; i < started; i++)
        pthread_join(threads[i].id, NULL);
    for (size_t i = 0; good && i < p->options.threads; i++)
        good = lane_take_back(&p->workers[i].lane, LANE_FOREVER_MS);
    if (p->options.tick != NULL)
        p->options.tick(p->options.context, &p->progress);
    if (good && p->read_failed) {
        *e = p->read_error;
        return false;
    }
    return good;
}
