/* The writer's side of a follower: it opens and closes files, and stores what the thread sealed. */
#include "base/check.h"
#include "base/log.h"
#include "base/mem.h"
#include "daemon/file/follow_internal.h"
#include "daemon/setup.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define LOOK_MS 250 /* between two attempts to open a file */

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
    f->latest = (struct latest){0};
    f->block_ms = f->renamed_ms = 0;
    log_source(f);
    followed_set_state(fo, f, FOLLOWED_OPEN);
}

static bool open_source(struct follow *fo, struct followed *f, struct err *e)
{
    const struct source_options options = {.line_max = fo->feed.shared->line_max,
                                           .last_line = LAST_LINE_LEAVE,
                                           .before = f->before,
                                           .others = fo->paths,
                                           .stop = followed_is_stdin(f) ? fo->engine->options.service->stop
                                                                        : NULL};
    struct stat status;
    if (followed_is_stdin(f))
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
    f->look_ms = follow_now_ms(fo) + LOOK_MS;
    if (!good)
        return may_pass(f, e);
    f->was_found = true;
    const struct followed *other = f->source.is_empty ? NULL : find_alike(fo, f);
    if (other != NULL) {
        good = wait_until_it_differs(f, other, e);
    } else { /* if the successor is empty again, look next for the file that has its place */
        input_close(f->before);
        f->before = NULL;
    }
    if (other != NULL || f->source.is_empty)
        source_close(&f->source);
    else
        begin_reading(fo, f);
    return good;
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
    followed_set_state(fo, f, FOLLOWED_CLOSED);
}

static void tell_end(struct followed *f)
{
    char label[LOG_QUOTE_BYTES];
    if (!f->has_told_end)
        log_info("source_ended", "source=%s consumed=%" PRId64 " next=\"serving until a signal\"",
                 log_quote(f->range.label, label), f->consumed);
    f->has_told_end = true;
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

bool follow_needs_writer(struct follow *fo)
{
    return fo != NULL && (lane_needs_applying(&fo->feed.lane) || (fo->read_failed && fo->has_ended));
}

static bool serve(struct follow *fo, struct err *e)
{
    pthread_mutex_lock(&fo->feed.lane.lanes->lock);
    bool must_apply = lane_needs_applying(&fo->feed.lane);
    pthread_mutex_unlock(&fo->feed.lane.lanes->lock);
    if (must_apply && !apply(fo, e))
        return false;
    for (size_t i = 0; i < fo->count && !follow_is_ending(fo); i++) {
        struct followed *f = &fo->list[i];
        enum followed_state state = followed_get_state(fo, f);
        if (state == FOLLOWED_LEFT && f->stored_to == f->range.to)
            close_file(fo, f);
        else if (state == FOLLOWED_ENDED && f->stored_to == f->range.to)
            tell_end(f);
        else if (state == FOLLOWED_CLOSED && follow_now_ms(fo) >= f->look_ms && !open_file(fo, f, e))
            follow_fail(fo, e);
    }
    return true;
}

bool follow_serve(struct follow *fo, struct err *e)
{
    if (fo == NULL)
        return true;
    bool good = serve(fo, e);
    pthread_mutex_lock(&fo->feed.lane.lanes->lock);
    if (good && fo->read_failed && fo->has_ended &&
        !lane_needs_applying(&fo->feed.lane)) { /* all that was read is stored */
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
    if (!lane_needs_applying(&fo->feed.lane) && !fo->has_ended)
        pthread_cond_timedwait(&ls->sealed, &ls->lock, &until);
    bool has_ended = fo->has_ended && !lane_needs_applying(&fo->feed.lane);
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
        enum followed_state state = followed_get_state(fo, f);
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
    follow_init_feed(fo, (uint32_t)(setup_has_topics(c) ? c->kafka.threads : 0),
                     heartbeats_add(&en->options.service->notify.heartbeats, "ingest"));
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
    fo->has_thread = pthread_create(&fo->thread, NULL, follow_read, fo) == 0;
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
    follow_fini_feed(fo);
    free(fo->list);
    free(fo->paths);
    free(fo);
}
