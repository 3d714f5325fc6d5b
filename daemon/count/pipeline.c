#include "daemon/count/pipeline.h"

#include "base/check.h"
#include "base/log.h"
#include "base/mem.h"
#include "daemon/count/worker.h"
#include "daemon/count/writer.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

/* Most stripes under way: each worker may hold a sealed part, an open part, and a block of a third stripe.
 * One more is opened by the next block. */
#define STRIPES   (3 * PIPELINE_THREADS_MAX + 1)
#define GROW_MAX  4 /* a stripe ends after GROW_MAX × stripe_ms even if the writer is busy */
#define WAIT_MS   50
#define FOLLOW_MS 200

/* A server writes to a renamed log until it has opened the new one. So the old one is read until nothing came
 * for RENAMED_QUIET_MS, but no longer than RENAMED_MAX_MS in case a process never closes it. */
#define RENAMED_QUIET_MS 5000
#define RENAMED_MAX_MS   60000

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

    pthread_mutex_t reading; /* guards the reader and the making of stripes; taken before `lock` */
    struct reader *reader;
    struct pipeline_limits limits;
    bool seal_wanted, ended;
    int64_t block_ms, renamed_ms; /* monotonic times: last block read; file first seen renamed */
    struct err read_error;
    bool read_failed;
    int64_t latest_ms, latest_from;          /* the writer's: of the last range; 0: no range yet */
    _Atomic int64_t read_offset, raw_offset; /* read by the writer for its progress */

    pthread_mutex_t lock; /* guards the members below */
    pthread_cond_t sealed, applied;
    struct stripe stripes[STRIPES];
    uint64_t stripe;     /* number of the open stripe */
    uint64_t next_apply; /* first stripe that is not applied */
    uint64_t *past;      /* by worker: first stripe that it may still add to */
    bool abandon;        /* the store failed for good: end, although input is left */
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
    p->limits = options->limits;
    p->late_ms = xcalloc(report_count, sizeof *p->late_ms);
    p->options.shard.late_ms = p->late_ms;
    p->workers = xcalloc(options->threads, sizeof *p->workers);
    p->past = xcalloc(options->threads, sizeof *p->past);
    const struct worker_options own = {.decode = options->decode,
                                       .line_max = options->line_max,
                                       .shard = p->options.shard,
                                       .keeps_rejects = options->rejects != NULL};
    for (size_t i = 0; i < options->threads; i++)
        worker_init(&p->workers[i], (uint32_t)i, reports, report_count, &own);
    for (size_t i = 0; options->beats != NULL && i < options->threads; i++)
        p->workers[i].beat = beats_add(options->beats, "ingest");
    p->writer = (struct writer){.store = store,
                                .clock = options->clock,
                                .give_up = options->stop,
                                .status = options->status,
                                .flush = options->flush,
                                .retry = options->retry,
                                .tick = tick,
                                .context = p,
                                .late_ms = p->late_ms};
    if (options->retry) /* a daemon; the operator of an import is there to look at the clock */
        p->writer.trust_at_ms = clock_mono_ms(options->clock) + WRITER_EXPIRE_TRUST_MS;
    if (options->beats != NULL)
        p->writer.beat = beats_add(options->beats, "writer");
    pthread_mutex_init(&p->reading, NULL);
    pthread_mutex_init(&p->lock, NULL);
    clock_cond_init(&p->sealed);
    pthread_cond_init(&p->applied, NULL);
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
    pthread_cond_destroy(&p->applied);
    pthread_cond_destroy(&p->sealed);
    pthread_mutex_destroy(&p->lock);
    pthread_mutex_destroy(&p->reading);
    free(p->workers);
    free(p->past);
    free(p->late_ms);
    writer_fini(&p->writer);
    free(p);
}

void pipeline_set_decode(struct pipeline *p, const struct decode *d, const struct raw *raw)
{
    p->options.raw = raw;
    for (size_t i = 0; i < p->options.threads; i++)
        worker_set_decode(&p->workers[i], d);
}

const struct pipeline_progress *pipeline_progress(const struct pipeline *p)
{
    return &p->progress;
}

void pipeline_set_limits(struct pipeline *p, const struct pipeline_limits *limits)
{
    pthread_mutex_lock(&p->reading);
    p->limits = *limits;
    pthread_mutex_unlock(&p->reading);
}

int64_t pipeline_bytes(const struct pipeline *p)
{
    int64_t bytes = 0;
    for (size_t i = 0; i < p->options.threads; i++)
        bytes += p->workers[i].bytes;
    return bytes;
}

bool pipeline_has_failed(const struct pipeline *p)
{
    return p->abandon;
}

static struct stripe *stripe_at(struct pipeline *p, uint64_t number)
{
    return &p->stripes[number % STRIPES];
}

static int64_t latest(const struct pipeline *p)
{
    return record_clock_latest(clock_wall_ms(p->options.clock), p->limits.future_max_ms);
}

/* End the open stripe at the reader's offset, and open the next. */
static void close_stripe(struct pipeline *p)
{
    struct slice tail = reader_tail(p->reader);
    pthread_mutex_lock(&p->lock);
    ASSERT(p->stripe + 1 - p->next_apply < STRIPES);
    struct stripe *s = stripe_at(p, p->stripe);
    s->to = reader_offset(p->reader);
    s->tail_hash = XXH3_64bits(tail.ptr, tail.len);
    s->tail_len = (uint32_t)tail.len;
    if (s->begun_ms == 0)
        s->latest_ms = latest(p); /* the stripe has only the line feed of a line counted before */
    p->stripe++;
    *stripe_at(p, p->stripe) = (struct stripe){.from = s->to};
    pthread_mutex_unlock(&p->lock);
    p->seal_wanted = false;
}

/* Has the writer applied every closed stripe? */
static bool is_idle(struct pipeline *p)
{
    pthread_mutex_lock(&p->lock);
    bool is_idle = p->next_apply == p->stripe;
    pthread_mutex_unlock(&p->lock);
    return is_idle;
}

/* With a flush rule, a stripe that would only wait for the writer grows instead: less work, and no event
 * waits longer. The growth is limited: a crash loses what was read of a pipe, and time passes the stripe's
 * limit for events in the future. */
static bool may_grow(struct pipeline *p, const struct stripe *s, int64_t mono_ms)
{
    return p->options.flush != NULL && mono_ms - s->begun_ms < GROW_MAX * p->limits.stripe_ms &&
           latest(p) == s->latest_ms && !is_idle(p);
}

static bool stripe_is_over(struct pipeline *p, const struct stripe *s, int64_t mono_ms)
{
    if (s->begun_ms == 0)
        return false;
    return p->seal_wanted || reader_offset(p->reader) - s->from >= p->options.stripe_bytes ||
           (mono_ms - s->begun_ms >= p->limits.stripe_ms && !may_grow(p, s, mono_ms));
}

/* Is the file complete, so that its end is final? */
static bool is_left(struct pipeline *p, int64_t mono_ms)
{
    enum input_fate fate = reader_fate(p->reader);
    if (fate != INPUT_RENAMED) {
        p->renamed_ms = 0;
        return fate != INPUT_STANDS;
    }
    if (p->renamed_ms == 0)
        p->renamed_ms = mono_ms;
    int64_t since_ms = p->block_ms > p->renamed_ms ? p->block_ms : p->renamed_ms;
    return mono_ms - since_ms >= RENAMED_QUIET_MS || mono_ms - p->renamed_ms >= RENAMED_MAX_MS;
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
    if (!p->ended && (atomic_load(p->options.stop) || p->abandon))
        p->ended = true;
    if (!p->ended) {
        result = reader_next(p->reader, &w->block, WAIT_MS, &p->read_error);
        if (result == READER_END && p->options.follow && !is_left(p, mono_ms))
            result = READER_WAIT;
        if (result == READER_BLOCK)
            p->block_ms = mono_ms;
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

/* Wait until the writer has applied the worker's sealed part. False: the run was abandoned. */
static bool take_back(struct pipeline *p, struct worker *w)
{
    if (w->sealed.part == NULL)
        return true;
    pthread_mutex_lock(&p->lock);
    while (!w->sealed.applied && !p->abandon) {
        beat_rest(w->beat);
        pthread_cond_wait(&p->applied, &p->lock);
        beat_turn(w->beat);
    }
    struct part *part = w->sealed.applied ? w->sealed.part : NULL;
    if (part != NULL)
        w->sealed.part = NULL;
    pthread_mutex_unlock(&p->lock);
    if (part != NULL)
        shard_give_back(w->shard, part);
    return part != NULL;
}

/* Hand over the worker's part: it has nothing more for stripes before `stripe`. */
static bool move_to(struct pipeline *p, size_t number, uint64_t stripe)
{
    struct worker *w = &p->workers[number];
    if (w->stripe == stripe)
        return true;
    struct part *part = NULL;
    if (!shard_is_empty(w->shard)) {
        if (!take_back(p, w))
            return false;
        part = shard_seal(w->shard);
    }
    pthread_mutex_lock(&p->lock);
    if (part != NULL)
        worker_hand_over(w, part);
    p->past[number] = stripe;
    pthread_cond_signal(&p->sealed);
    pthread_mutex_unlock(&p->lock);
    w->stripe = stripe;
    return !shard_must_wait(w->shard) || take_back(p, w);
}

static void *worker_thread(void *context)
{
    struct thread *t = context;
    struct pipeline *p = t->p;
    struct worker *w = &p->workers[t->number];
    while (true) {
        uint64_t stripe;
        int64_t latest_ms;
        beat_turn(w->beat);
        enum reader_result result = take_block(p, w, &stripe, &latest_ms);
        if (!move_to(p, t->number, stripe) || result == READER_END)
            break;
        if (result == READER_WAIT) {
            nanosleep(&(struct timespec){.tv_nsec = FOLLOW_MS * 1000000L / 4}, NULL);
            continue;
        }
        worker_count(w, latest_ms);
        if (shard_is_full(w->shard)) {
            pthread_mutex_lock(&p->reading);
            p->seal_wanted = true;
            pthread_mutex_unlock(&p->reading);
        }
    }
    beat_rest(w->beat);
    pthread_mutex_lock(&p->lock);
    p->past[t->number] = UINT64_MAX;
    pthread_cond_signal(&p->sealed);
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

/* Are all workers past the stripe? Pre: p->lock is held. */
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
    const struct rejects_file *file;
    struct outbox **boxes;
    size_t box_count, written;
};

/* Write rejected lines to disk before the position passes them; after a crash they may repeat. A call after a
 * failure resumes at the box that failed. */
static bool write_rejects(void *context, struct err *e)
{
    struct rejects_to_write *w = context;
    for (; w->file != NULL && w->written < w->box_count; w->written++) {
        const struct text *rejects = &w->boxes[w->written]->rejects;
        if (rejects->len > 0 && !rejects_file_append(w->file, text_slice(rejects), e))
            return false;
    }
    return true;
}

static void note_progress(struct pipeline *p, const struct outbox *box)
{
    books_add(&p->progress.books, &box->part->books);
    samples_merge(&p->progress.samples, &box->samples);
}

/* Collect the workers' parts of the stripe. Workers do not touch these boxes until they are applied. */
static size_t collect(struct pipeline *p, uint64_t number, struct outbox **boxes)
{
    size_t count = 0;
    pthread_mutex_lock(&p->lock);
    for (size_t i = 0; i < p->options.threads; i++) {
        struct outbox *box = &p->workers[i].sealed;
        if (box->part != NULL && !box->applied && box->stripe == number)
            boxes[count++] = box;
    }
    pthread_mutex_unlock(&p->lock);
    return count;
}

/* Apply stripe `number` to the store. No lock is held: workers fill their next parts. */
static bool apply_stripe(struct pipeline *p, uint64_t number, const struct range *source, struct err *e)
{
    struct outbox *boxes[PIPELINE_THREADS_MAX];
    struct part *parts[PIPELINE_THREADS_MAX];
    const struct stripe *s = stripe_at(p, number);
    struct range range = *source;
    struct batch batch = {.ranges = &range,
                          .books = &p->books,
                          .range_count = 1,
                          .parts = parts,
                          .part_count = collect(p, number, boxes)};
    range.from = s->from;
    range.to = s->to;
    range.tail_hash = s->tail_hash;
    range.tail_len = s->tail_len;
    if (p->latest_ms != s->latest_ms)
        p->latest_from = s->from;
    range.latest_ms = p->latest_ms = s->latest_ms;
    range.latest_from = p->latest_from;
    books_clear(&p->books);
    for (size_t i = 0; i < batch.part_count; i++) {
        parts[i] = boxes[i]->part;
        books_add(&p->books, &parts[i]->books);
    }
    struct rejects_to_write rejects = {p->options.rejects, boxes, batch.part_count, 0};
    if (!writer_apply(&p->writer, &batch, write_rejects, &rejects, e))
        return false;
    p->progress.stored = s->to;
    p->progress.batches++;
    p->progress.cells += (uint64_t)writer_count_cells(&batch);
    for (size_t i = 0; i < batch.part_count; i++)
        note_progress(p, boxes[i]);
    pthread_mutex_lock(&p->lock);
    for (size_t i = 0; i < batch.part_count; i++)
        boxes[i]->applied = true;
    p->next_apply = number + 1;
    pthread_cond_broadcast(&p->applied);
    pthread_mutex_unlock(&p->lock);
    return true;
}

/* Wait for the next sealed stripe or a tick. False: no stripe is left, and none will come. */
static bool wait_sealed(struct pipeline *p, bool *sealed)
{
    pthread_mutex_lock(&p->lock);
    while (!(*sealed = p->next_apply < p->stripe && is_sealed(p, p->next_apply)) && !all_ended(p)) {
        struct timespec until = clock_timespec_in(WRITER_TICK_MS);
        if (pthread_cond_timedwait(&p->sealed, &p->lock, &until) == ETIMEDOUT)
            break;
    }
    p->progress.offset = p->read_offset;
    p->progress.raw_offset = p->raw_offset;
    bool more = *sealed || !all_ended(p);
    pthread_mutex_unlock(&p->lock);
    return more;
}

bool pipeline_tidy(struct pipeline *p, struct err *e)
{
    return (!p->options.tidy || writer_tidy(&p->writer, e)) && writer_expire(&p->writer, e);
}

static bool write_stripes(struct pipeline *p, const struct range *source, struct err *e)
{
    bool sealed;
    p->writer.ticked_ms = 0;
    p->writer.tidy_is_failing = false;
    while (wait_sealed(p, &sealed)) {
        /* Only this thread moves next_apply. */
        if (sealed && !apply_stripe(p, p->next_apply, source, e))
            return false;
        if (!pipeline_tidy(p, e))
            return false;
        writer_turn(&p->writer);
    }
    return true;
}

static void reset(struct pipeline *p, struct reader *reader, const struct range *source)
{
    struct books books = p->progress.books;
    p->reader = reader;
    p->seal_wanted = p->ended = p->read_failed = false;
    p->stripe = p->next_apply = 1;
    p->latest_ms = 0;
    p->block_ms = p->renamed_ms = 0;
    *stripe_at(p, p->stripe) = (struct stripe){.from = reader_offset(reader)};
    books_clear(&books);
    p->progress = (struct pipeline_progress){
        .offset = reader_offset(reader), .stored = reader_offset(reader), .books = books};
    for (size_t i = 0; i < p->options.threads; i++) {
        p->workers[i].stripe = p->stripe;
        p->past[i] = p->stripe;
        shard_set_raw(p->workers[i].shard, p->options.raw, source);
    }
}

static void abandon(struct pipeline *p, const struct err *e)
{
    p->store_error = *e;
    pthread_mutex_lock(&p->reading);
    pthread_mutex_lock(&p->lock);
    p->abandon = true;
    pthread_cond_broadcast(&p->applied);
    pthread_mutex_unlock(&p->lock);
    pthread_mutex_unlock(&p->reading);
}

/* Start as many threads as possible: the others do the work of one that cannot start. */
static size_t start_threads(struct pipeline *p, struct thread *threads)
{
    size_t started = 0;
    pthread_mutex_lock(&p->lock); /* so that no thread ends before all are known */
    for (size_t i = 0; i < p->options.threads; i++) {
        threads[i] = (struct thread){.p = p, .number = i};
        if (started < i || pthread_create(&threads[i].id, NULL, worker_thread, &threads[i]) != 0) {
            p->past[i] = UINT64_MAX;
            continue;
        }
        pthread_setname_np(threads[i].id, "tallyd-ingest");
        started++;
    }
    pthread_mutex_unlock(&p->lock);
    return started;
}

bool pipeline_run(struct pipeline *p, struct reader *reader, const struct range *range, struct err *e)
{
    struct thread threads[PIPELINE_THREADS_MAX];
    reset(p, reader, range);
    if (p->abandon) {
        *e = p->store_error;
        return false;
    }
    if (!writer_expire(&p->writer, e)) /* so that the shards know the watermark before the first event */
        return false;
    size_t started = start_threads(p, threads);
    if (started == 0)
        return err_set(e, EX_OSERR, "cannot start a thread; allow this user more processes or memory");
    bool good = write_stripes(p, range, e);
    if (!good)
        abandon(p, e);
    for (size_t i = 0; i < started; i++)
        pthread_join(threads[i].id, NULL);
    for (size_t i = 0; good && i < p->options.threads; i++)
        good = take_back(p, &p->workers[i]);
    beat_rest(p->writer.beat);
    if (p->options.tick != NULL)
        p->options.tick(p->options.context, &p->progress);
    if (good && p->read_failed) {
        *e = p->read_error;
        return false;
    }
    return good;
}
