#include "daemon/file/follow.h"

#include "base/check.h"
#include "base/log.h"
#include "base/mem.h"
#include "daemon/setup.h"
#include "daemon/source.h"
#include "ingest/file/identity.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define GROW_MAX        4   /* a batch grows to GROW_MAX × flush_ms while the writer is busy */
#define LOOK_MS         250 /* between two attempts to open a file */
#define WAIT_MS         50  /* for more lines */
#define BLOCKS_IN_A_ROW 16  /* of one file, while others wait */

/* A server writes to a renamed log until it has opened the new one. So the old one is read until nothing came
 * for RENAMED_QUIET_MS, but no longer than RENAMED_MAX_MS in case a process never closes it. */
#define RENAMED_QUIET_MS 5000
#define RENAMED_MAX_MS   60000

enum followed_state { FOLLOWED_CLOSED, FOLLOWED_OPEN, FOLLOWED_LEFT, FOLLOWED_ENDED };

struct followed {
    const struct config_source *config;
    struct chain *chain;
    struct source source;
    struct input *before;      /* the file that the next one replaces; NULL: none */
    struct range range;        /* of the source; `to`: end of what was added to a batch */
    size_t index;              /* of its range in the open batch, if that has one of this source */
    bool is_in_batch;          /* the open batch has a range of it */
    bool was_found;            /* it was there once, if only empty */
    bool has_caught_up;        /* the log has told that its end was reached */
    bool has_told_end;         /* the log has told that standard input ended */
    int64_t consumed;          /* lines since it was opened */
    int64_t latest_ms;         /* of its last range; 0: none yet */
    int64_t latest_from;       /* offset from which on all ranges had that */
    int64_t block_ms;          /* monotonic time of its last block */
    int64_t renamed_ms;        /* monotonic time at which it was first seen renamed; 0: it was not */
    int64_t look_ms;           /* monotonic time of the next attempt to open it */
    _Atomic int64_t read_to;   /* offset up to which it was read, for the status */
    _Atomic int64_t stored_to; /* … is durable */
    enum followed_state state;
};

struct follow {
    struct engine *engine;
    struct feed feed;
    struct followed *list;
    size_t count;
    const char **paths;               /* paths of all files, and NULL */
    struct followed *current;         /* its rejects are being noted */
    struct followed **open, **sealed; /* by range of the feed's deliveries */
    size_t open_capacity, sealed_capacity;
    struct block block;
    pthread_t thread;
    bool has_thread;
    atomic_bool abandon, end;
    bool has_ended;   /* the thread; under lanes.lock */
    bool read_failed; /* `error` says why the thread ended; under lanes.lock */
    struct err error;
    bool has_failed; /* the writer's */
};

static bool is_stdin(const struct followed *f)
{
    return f->config->path == NULL;
}

static int64_t now_ms(const struct follow *fo)
{
    return clock_mono_ms(fo->feed.shared->lanes.clock);
}

/* ---- the thread */

/* The lane's reject function. */
static void note_reject(void *context, const struct record *r, struct slice bytes, struct reject why)
{
    struct follow *fo = context;
    struct record of_file = *r;
    if (!fo->feed.shared->has_dead_letters)
        return;
    of_file.topic = slice_text(fo->current->range.label);
    of_file.partition = RECORD_NO_PARTITION;
    dead_letters_add(&fo->feed.open.dead_letters, &of_file, bytes, why);
}

/* The feed calls it before it seals. */
static void finish_ranges(void *context)
{
    struct follow *fo = context;
    for (size_t i = 0; i < fo->feed.open.range_count; i++)
        fo->open[i]->is_in_batch = false;
    struct followed **used = fo->sealed;
    size_t used_capacity = fo->sealed_capacity;
    fo->sealed = fo->open;
    fo->sealed_capacity = fo->open_capacity;
    fo->open = used;
    fo->open_capacity = used_capacity;
}

/* Make sure that the open batch has a range of the file. */
static void add_range(struct follow *fo, struct followed *f)
{
    if (f->is_in_batch)
        return;
    f->range.from = f->range.to;
    if (f->latest_ms != fo->feed.lane.latest_ms)
        f->latest_from = f->range.from;
    f->range.latest_ms = f->latest_ms = fo->feed.lane.latest_ms;
    f->range.latest_from = f->latest_from;
    f->index = feed_add_range(&fo->feed, &f->range);
    f->is_in_batch = true;
    fo->open = xgrow(fo->open, &fo->open_capacity, f->index + 1, sizeof(struct followed *));
    fo->open[f->index] = f;
}

/* Move the end of the file's range to where the reader is. */
static void advance(struct follow *fo, struct followed *f)
{
    struct range *r = &fo->feed.open.ranges[f->index];
    f->range.to = r->to = reader_offset(f->source.reader);
    r->tail_hash = identity_tail(reader_tail(f->source.reader), &r->tail_len);
    f->read_to = r->to;
}

static void count_block(struct follow *fo, struct followed *f, int64_t at_ms)
{
    struct shard *shard = fo->feed.lane.shard;
    if (fo->feed.open.range_count == 0)
        feed_begin(&fo->feed, at_ms);
    add_range(fo, f);
    fo->current = f;
    shard_set_raw(shard, &f->config->raw, &f->range);
    lane_block(&fo->feed.lane, f->chain, &fo->block, fo->feed.shared->line_max);
    struct books *books = &fo->feed.open.books[f->index];
    int64_t before = books->entries[BOOK_CONSUMED];
    shard_take_books(shard, books);
    f->consumed += books->entries[BOOK_CONSUMED] - before;
    fo->feed.open.messages += books->entries[BOOK_CONSUMED] - before;
    fo->feed.bytes = (int64_t)shard_bytes(shard);
    f->block_ms = at_ms;
    advance(fo, f);
}

/* Is the file complete, so that its end is final? */
static bool is_left(struct followed *f, int64_t at_ms)
{
    enum input_fate fate = reader_fate(f->source.reader);
    if (fate != INPUT_RENAMED) {
        f->renamed_ms = 0;
        return fate != INPUT_STANDS;
    }
    if (f->renamed_ms == 0)
        f->renamed_ms = at_ms;
    int64_t since_ms = f->block_ms > f->renamed_ms ? f->block_ms : f->renamed_ms;
    return at_ms - since_ms >= RENAMED_QUIET_MS || at_ms - f->renamed_ms >= RENAMED_MAX_MS;
}

static void set_state(struct follow *fo, struct followed *f, enum followed_state state)
{
    struct lanes *ls = fo->feed.lane.lanes;
    pthread_mutex_lock(&ls->lock);
    f->state = state;
    pthread_cond_signal(&ls->sealed);
    pthread_mutex_unlock(&ls->lock);
}

/* A line feed of a line that was counted before may be all that is left: it has its range, too. */
static void leave(struct follow *fo, struct followed *f, int64_t at_ms, enum followed_state state)
{
    if (reader_offset(f->source.reader) > f->range.to) {
        if (fo->feed.open.range_count == 0)
            feed_begin(&fo->feed, at_ms);
        add_range(fo, f);
        advance(fo, f);
    }
    set_state(fo, f, state);
}

static void tell_caught_up(struct followed *f)
{
    char label[LOG_QUOTE_BYTES];
    if (!f->has_caught_up)
        log_info("caught_up", "source=%s offset=%" PRId64 " consumed=%" PRId64,
                 log_quote(f->range.label, label), reader_offset(f->source.reader), f->consumed);
    f->has_caught_up = true;
}

static bool is_ending(const struct follow *fo)
{
    return engine_is_stopping(fo->engine) || atomic_load(&fo->end) || atomic_load(&fo->abandon);
}

/* Standard input alone is waited for by its reader, so that its lines are taken at once. */
static bool waits_itself(const struct follow *fo)
{
    return fo->count == 1 && is_stdin(&fo->list[0]);
}

/* Read one file for a while. False: end the thread. *read: something was read. */
static bool read_file(struct follow *fo, struct followed *f, bool *read)
{
    struct err e;
    for (int i = 0; i < BLOCKS_IN_A_ROW; i++) {
        int64_t at_ms = now_ms(fo);
        heartbeat_turn(fo->feed.lane.heartbeat);
        switch (reader_next(f->source.reader, &fo->block, waits_itself(fo) ? WAIT_MS : 0, &e)) {
        case READER_BLOCK:
            *read = true;
            count_block(fo, f, at_ms);
            break;
        case READER_WAIT:
            return feed_seal_if_due(&fo->feed, at_ms);
        case READER_END:
            if (is_stdin(f))
                leave(fo, f, at_ms, FOLLOWED_ENDED);
            else if (is_left(f, at_ms))
                leave(fo, f, at_ms, FOLLOWED_LEFT);
            else
                tell_caught_up(f);
            return feed_seal_if_due(&fo->feed, at_ms);
        case READER_FAILED:
            if (e.retryable && is_ending(fo)) /* the stop interrupted it */
                return true;
            pthread_mutex_lock(&fo->feed.lane.lanes->lock);
            fo->error = e;
            fo->read_failed = true;
            pthread_mutex_unlock(&fo->feed.lane.lanes->lock);
            return false;
        }
        if (!feed_seal_if_due(&fo->feed, at_ms))
            return false;
        if (is_ending(fo))
            break;
    }
    return true;
}

/* Only this thread takes a file out of the open state. */
static bool is_open(struct follow *fo, const struct followed *f)
{
    pthread_mutex_lock(&fo->feed.lane.lanes->lock);
    bool is_open = f->state == FOLLOWED_OPEN;
    pthread_mutex_unlock(&fo->feed.lane.lanes->lock);
    return is_open;
}

/* Read each file that is open. False: end the thread. */
static bool turn(struct follow *fo)
{
    bool read = false;
    heartbeat_turn(fo->feed.lane.heartbeat);
    for (size_t i = 0; i < fo->count && !is_ending(fo); i++) {
        if (is_open(fo, &fo->list[i]) && !read_file(fo, &fo->list[i], &read))
            return false;
    }
    if (!read && !(waits_itself(fo) && is_open(fo, &fo->list[0])))
        nanosleep(&(struct timespec){.tv_nsec = WAIT_MS * 1000000L}, NULL);
    return feed_seal_if_due(&fo->feed, now_ms(fo));
}

static void *run(void *context)
{
    struct follow *fo = context;
    struct lanes *ls = fo->feed.lane.lanes;
    while (!is_ending(fo) && turn(fo))
        continue;
    (void)!feed_drain(&fo->feed, LANE_FOREVER_MS);
    heartbeat_rest(fo->feed.lane.heartbeat);
    pthread_mutex_lock(&ls->lock);
    fo->has_ended = true;
    pthread_cond_signal(&ls->sealed);
    pthread_mutex_unlock(&ls->lock);
    return NULL;
}

/* ---- the writer */

static void log_source(const struct followed *f)
{
    char label[LOG_QUOTE_BYTES], what[LOG_QUOTE_BYTES];
    const struct range *r = &f->source.range;
    log_info("source_opened", "source=%s id=%s from=%" PRId64, log_quote(r->label, label), r->source, r->to);
    if (f->source.note[0] != '\0')
        log_info("source_known", "source=%s note=%s", label, log_quote(f->source.note, what));
}

/* Open standard input. A stream has no content yet that could identify it: each is a new source. A regular
 * file (`tallyd run <FILE`) is recognised by its content. */
static bool open_stream(struct follow *fo, struct source *src, const struct source_options *options,
                        struct err *e)
{
    struct stat status;
    if (fstat(STDIN_FILENO, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0)
        return source_open(src, "-", fo->engine->options.store, options, e);
    src->in = input_open("-", e);
    if (src->in == NULL)
        return false;
    input_stop_by(src->in, options->stop);
    src->reader = reader_new(src->in, options->line_max, options->last_line);
    snprintf(src->range.source, sizeof src->range.source, "stdin:%" PRId64,
             clock_wall_ms(fo->feed.shared->lanes.clock));
    snprintf(src->range.label, sizeof src->range.label, "standard input");
    return true;
}

/* The other open file with this identity; NULL: there is none. Two would have one position in the store. */
static const struct followed *find_alike(const struct follow *fo, const struct followed *f)
{
    for (size_t i = 0; i < fo->count; i++) {
        const struct followed *other = &fo->list[i];
        if (other != f && other->source.reader != NULL &&
            strcmp(other->source.range.source, f->source.range.source) == 0)
            return other;
    }
    return NULL;
}

/* Two files may begin with the same line: with more lines they differ. False: they are one file. */
static bool wait_until_it_differs(const struct followed *f, const struct followed *other, struct err *e)
{
    char label[LOG_QUOTE_BYTES], alike[LOG_QUOTE_BYTES];
    const char *path = f->source.range.label, *other_path = other->source.range.label;
    if (input_is_same(f->source.in, other->source.in))
        return err_set(e, EX_CONFIG, "%s and %s are one file: name it once", other_path, path);
    log_limited(
        LOG_LEVEL_WARN, "file_waits",
        "source=%s reason=\"it begins as another file does\" other=%s next=\"looking again until it has "
        "more lines\"",
        log_quote(path, label), log_quote(other_path, alike));
    return true;
}

static void begin_reading(struct follow *fo, struct followed *f)
{
    f->range = f->source.range;
    f->range.from = f->range.to = reader_offset(f->source.reader);
    f->read_to = f->stored_to = f->range.to;
    f->has_caught_up = false;
    f->consumed = 0;
    f->latest_ms = f->block_ms = f->renamed_ms = 0;
    log_source(f);
    set_state(fo, f, FOLLOWED_OPEN);
}

static bool open_source(struct follow *fo, struct followed *f, struct err *e)
{
    const struct source_options options = {.line_max = fo->feed.shared->line_max,
                                           .last_line = LAST_LINE_LEAVE,
                                           .before = f->before,
                                           .others = fo->paths,
                                           .stop = is_stdin(f) ? fo->engine->options.service->stop : NULL};
    struct stat status;
    if (is_stdin(f))
        return open_stream(fo, &f->source, &options, e);
    if (fo->count > 1 && f->before == NULL && stat(f->config->path, &status) == 0 && !S_ISREG(status.st_mode))
        return err_set(e, EX_CONFIG, "%s is no file: beside other sources, pipe it into standard input",
                       f->config->path);
    return source_open(&f->source, f->config->path, fo->engine->options.store, &options, e);
}

/* Is this failure one to wait for? A file that was there once may be missing between two rotations. */
static bool may_pass(const struct followed *f, const struct err *e)
{
    char quoted[LOG_QUOTE_BYTES];
    bool is_away = f->was_found && (e->code == EX_NOINPUT || e->code == EX_NOPERM);
    if (is_away || e->retryable)
        log_limited(LOG_LEVEL_WARN, is_away ? "file_away" : "store_away", "error=%s next=\"waiting for it\"",
                    log_quote(e->text, quoted));
    return is_away || e->retryable;
}

/* Open a file, or look later. An empty one has no content that could identify it: its first bytes are waited
 * for. */
static bool open_file(struct follow *fo, struct followed *f, struct err *e)
{
    bool good = open_source(fo, f, e);
    f->look_ms = now_ms(fo) + LOOK_MS;
    if (!good)
        return may_pass(f, e);
    const struct followed *other = f->source.is_empty ? NULL : find_alike(fo, f);
    f->was_found = true;
    if (f->source.is_empty) { /* if the successor is empty again, look next for the file that has its place */
        input_close(f->before);
        f->before = NULL;
    }
    if (other != NULL)
        good = wait_until_it_differs(f, other, e);
    if (f->source.is_empty || other != NULL) {
        source_close(&f->source);
        return good;
    }
    input_close(f->before);
    f->before = NULL;
    begin_reading(fo, f);
    return true;
}

static void close_file(struct follow *fo, struct followed *f)
{
    char label[LOG_QUOTE_BYTES];
    size_t left = reader_left(f->source.reader);
    if (left > 0)
        log_warn("line_left",
                 "source=%s bytes=%zu reason=\"the last line is unfinished, and another file has replaced "
                 "this one\"",
                 log_quote(f->range.label, label), left);
    f->before = source_leave(&f->source);
    f->look_ms = 0;
    set_state(fo, f, FOLLOWED_CLOSED);
}

static void tell_end(struct followed *f)
{
    char label[LOG_QUOTE_BYTES];
    if (!f->has_told_end)
        log_info("source_ended", "source=%s consumed=%" PRId64 " next=\"serving until a signal\"",
                 log_quote(f->range.label, label), f->consumed);
    f->has_told_end = true;
}

static enum followed_state state_of(struct follow *fo, const struct followed *f)
{
    pthread_mutex_lock(&fo->feed.lane.lanes->lock);
    enum followed_state state = f->state;
    pthread_mutex_unlock(&fo->feed.lane.lanes->lock);
    return state;
}

static bool apply(struct follow *fo, struct err *e)
{
    if (!engine_apply(fo->engine, &fo->feed, e))
        return false;
    for (size_t i = 0; i < fo->feed.sealed.range_count; i++)
        fo->sealed[i]->stored_to = fo->feed.sealed.ranges[i].to;
    engine_release(fo->engine, &fo->feed);
    return true;
}

static bool needs_applying(const struct follow *fo)
{
    return fo->feed.lane.part != NULL && !fo->feed.lane.is_applied;
}

bool follow_needs_writer(struct follow *fo)
{
    return fo != NULL && (needs_applying(fo) || (fo->read_failed && fo->has_ended));
}

/* End the thread because of an error. follow_serve() returns the error once all that was read is stored. */
static void end_thread(struct follow *fo, const struct err *why)
{
    pthread_mutex_lock(&fo->feed.lane.lanes->lock);
    if (!fo->read_failed)
        fo->error = *why;
    fo->read_failed = true;
    pthread_mutex_unlock(&fo->feed.lane.lanes->lock);
    atomic_store(&fo->end, true);
}

static bool serve(struct follow *fo, struct err *e)
{
    pthread_mutex_lock(&fo->feed.lane.lanes->lock);
    bool must_apply = needs_applying(fo);
    pthread_mutex_unlock(&fo->feed.lane.lanes->lock);
    if (must_apply && !apply(fo, e))
        return false;
    for (size_t i = 0; i < fo->count && !is_ending(fo); i++) {
        struct followed *f = &fo->list[i];
        enum followed_state state = state_of(fo, f);
        if (state == FOLLOWED_LEFT && f->stored_to == f->range.to)
            close_file(fo, f);
        else if (state == FOLLOWED_ENDED && f->stored_to == f->range.to)
            tell_end(f);
        else if (state == FOLLOWED_CLOSED && now_ms(fo) >= f->look_ms && !open_file(fo, f, e))
            end_thread(fo, e);
    }
    return true;
}

bool follow_serve(struct follow *fo, struct err *e)
{
    if (fo == NULL)
        return true;
    bool good = serve(fo, e);
    pthread_mutex_lock(&fo->feed.lane.lanes->lock);
    if (good && fo->read_failed && fo->has_ended && !needs_applying(fo)) { /* all that was read is stored */
        *e = fo->error;
        good = false;
    }
    pthread_mutex_unlock(&fo->feed.lane.lanes->lock);
    fo->has_failed |= !good;
    return good;
}

bool follow_has_failed(const struct follow *fo)
{
    return fo != NULL && fo->has_failed;
}

/* Wait up to half a tick for something to do. False: the thread has ended. */
static bool wait_for_need(struct follow *fo)
{
    struct lanes *ls = fo->feed.lane.lanes;
    const struct timespec until = clock_timespec_in(WRITER_TICK_MS / 2);
    pthread_mutex_lock(&ls->lock);
    if (!needs_applying(fo) && !fo->has_ended)
        pthread_cond_timedwait(&ls->sealed, &ls->lock, &until);
    bool has_ended = fo->has_ended && !needs_applying(fo);
    pthread_mutex_unlock(&ls->lock);
    return !has_ended;
}

bool follow_run(struct follow *fo, struct err *e)
{
    bool good = true;
    while (good && fo != NULL && wait_for_need(fo))
        good = follow_serve(fo, e) && engine_turn(fo->engine, e);
    return good && follow_serve(fo, e);
}

bool follow_finish(struct follow *fo, struct err *e)
{
    if (fo == NULL)
        return true;
    atomic_store(&fo->end, true);
    return follow_run(fo, e);
}

/* The engine's note function. */
static void note(void *part, struct status_figures *figures)
{
    struct follow *fo = part;
    size_t closed = 0, ended = 0;
    figures->shard_bytes += fo->feed.bytes;
    for (size_t i = 0; i < fo->count; i++) {
        struct followed *f = &fo->list[i];
        enum followed_state state = state_of(fo, f);
        figures->offset += f->read_to;
        figures->stored += f->stored_to;
        closed += state == FOLLOWED_CLOSED;
        ended += state == FOLLOWED_ENDED;
    }
    figures->state = ended == fo->count            ? STATUS_ENDED
                     : closed + ended == fo->count ? STATUS_WAITING
                                                   : STATUS_COUNTING;
}

/* ---- begin and end */

struct follow *follow_start(struct engine *en, struct err *e)
{
    const struct config *c = en->options.config;
    struct follow *fo = xcalloc(1, sizeof *fo);
    size_t path_count = 0;
    fo->engine = en;
    feed_init(&fo->feed, &en->feeds, (uint32_t)(setup_has_topics(c) ? c->kafka.threads : 0), &fo->abandon,
              heartbeats_add(&en->options.service->notify.heartbeats, "ingest"), note_reject, finish_ranges,
              fo);
    fo->feed.grow_max = GROW_MAX;
    block_init(&fo->block, en->feeds.line_max);
    fo->list = xcalloc(setup_count_files(c), sizeof *fo->list);
    fo->paths = xcalloc(setup_count_files(c) + 1, sizeof *fo->paths);
    for (size_t i = 0; i < c->source_count; i++) {
        if (!setup_is_followed(c, &c->sources[i]))
            continue;
        struct followed *f = &fo->list[fo->count++];
        f->config = &c->sources[i];
        if (f->config->path != NULL)
            fo->paths[path_count++] = f->config->path;
        f->chain = chain_new(&f->config->decode, en->feeds.line_max);
    }
    engine_add_part(en, note, fo);
    fo->has_thread = pthread_create(&fo->thread, NULL, run, fo) == 0;
    if (fo->has_thread) {
        pthread_setname_np(fo->thread, "tallyd-ingest");
        return fo;
    }
    follow_free(fo);
    err_set(e, EX_OSERR, "cannot start a thread; allow this user more processes or memory");
    return NULL;
}

void follow_free(struct follow *fo)
{
    if (fo == NULL)
        return;
    lanes_abandon(&fo->engine->feeds.lanes, &fo->abandon);
    if (fo->has_thread)
        pthread_join(fo->thread, NULL);
    engine_drop_part(fo->engine, fo);
    for (size_t i = 0; i < fo->count; i++) {
        chain_free(fo->list[i].chain);
        source_close(&fo->list[i].source);
        input_close(fo->list[i].before);
    }
    feed_fini(&fo->feed);
    block_fini(&fo->block);
    free(fo->list);
    free(fo->paths);
    free(fo->open);
    free(fo->sealed);
    free(fo);
}
