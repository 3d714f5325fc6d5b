/* The writer's turn of a follower. */
#include "base/check.h"
#include "base/log.h"
#include "base/mem.h"
#include "daemon/file/follow_internal.h"
#include "daemon/setup.h"

#define XXH_INLINE_ALL
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>

#define HOST_BYTES   256
#define FILES_WANTED 65536
#define TURN_MS      200 /* longest time for opening files, while a batch may wait */

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
    for (size_t i = 0; i < fo->feed.sealed.range_count; i++) {
        if (fo->has_known)
            known_note(&fo->known, &fo->feed.sealed.ranges[i]);
        if (fo->sealed[i] == NULL)
            continue;
        fo->sealed[i]->stored_to = fo->feed.sealed.ranges[i].to;
        if (fo->sealed[i]->handed != NULL)
            books_add(&fo->sealed[i]->handed->books, &fo->feed.sealed.books[i]);
        fo->sealed[i]->pending--;
    }
    engine_release(fo->engine, &fo->feed);
    return true;
}

bool follow_needs_writer(struct follow *fo)
{
    return fo != NULL && (lane_needs_applying(&fo->feed.lane) || (fo->read_failed && fo->has_ended));
}

static bool serve_one(struct follow *fo, struct followed *f, struct err *e)
{
    enum followed_state state = followed_get_state(fo, f);
    bool is_stored = f->pending == 0, must_look = follow_now_ms(fo) >= f->look_ms;
    if (state == FOLLOWED_LEFT && is_stored)
        followed_close(fo, f);
    else if (state == FOLLOWED_ENDED && is_stored && f->handed != NULL)
        followed_set_state(fo, f, FOLLOWED_CLOSED);
    else if (state == FOLLOWED_ENDED && is_stored)
        tell_end(f);
    else if (f->handed != NULL)
        return true;
    else if (state == FOLLOWED_CLOSED && must_look)
        return followed_open(fo, f, e);
    else if (state == FOLLOWED_OPEN && must_look && f->answer.what == SURVEY_LOG)
        return followed_look_back(fo, f, e);
    return true;
}

static bool serve(struct follow *fo, struct err *e)
{
    pthread_mutex_lock(&fo->feed.lane.lanes->lock);
    bool must_apply = lane_needs_applying(&fo->feed.lane);
    pthread_mutex_unlock(&fo->feed.lane.lanes->lock);
    if (must_apply && !apply(fo, e))
        return false;
    int64_t until_ms = follow_now_ms(fo) + TURN_MS;
    if (!follow_is_ending(fo) && (!follow_find(fo, e) || !follow_take_handed(fo, e)))
        follow_fail(fo, e);
    for (size_t i = 0; i < fo->count && !follow_is_ending(fo) && follow_now_ms(fo) < until_ms; i++) {
        fo->next = fo->next + 1 < fo->count ? fo->next + 1 : 0;
        if (!serve_one(fo, fo->list[fo->next], e))
            follow_fail(fo, e);
    }
    follow_remove_gone(fo);
    fo->is_known_fresh = fo->is_known_fresh && !fo->engine->options.store->is_shared;
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
    if (!lane_needs_applying(&fo->feed.lane) && !fo->has_ended && !engine_has_loan(fo->engine))
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
    size_t closed = 0, ended = 0, handed = 0;
    figures->shard_bytes += fo->feed.bytes;
    figures->files_lost += fo->lost;
    for (size_t i = 0; i < fo->count; i++) {
        struct followed *f = fo->list[i];
        enum followed_state state = followed_get_state(fo, f);
        figures->offset += f->read_to;
        figures->stored += f->stored_to;
        handed += f->handed != NULL;
        closed += f->handed == NULL && state == FOLLOWED_CLOSED;
        ended += f->handed == NULL && state == FOLLOWED_ENDED;
    }
    if (fo->source_count == 0) /* only files that are handed over: topics say how it is */
        return;
    figures->state = handed > 0                            ? STATUS_COUNTING
                     : fo->count > 0 && ended == fo->count ? STATUS_ENDED
                     : closed + ended == fo->count         ? STATUS_WAITING
                                                           : STATUS_COUNTING;
}

/* ---- begin and end */

/* 32 bits of the host's name, for the state of files in a database that others count into (known.h). */
static int64_t host_number(void)
{
    char name[HOST_BYTES] = "";
    (void)gethostname(name, sizeof name - 1);
    return (int64_t)(XXH3_64bits(name, strlen(name)) & UINT32_MAX);
}

/* Each log holds up to three files open, and the usual limit of a shell is 1,024. */
static void raise_file_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= FILES_WANTED)
        return;
    limit.rlim_cur = limit.rlim_max < FILES_WANTED ? limit.rlim_max : FILES_WANTED;
    (void)setrlimit(RLIMIT_NOFILE, &limit); /* if it fails, opening a file says so */
}

struct follow *follow_start(struct engine *en, struct desk *desk, struct err *e)
{
    const struct config *c = en->options.config;
    struct follow *fo = xcalloc(1, sizeof *fo);
    raise_file_limit();
    fo->engine = en;
    fo->desk = desk;
    fo->host = en->options.store->is_shared ? host_number() : 0;
    follow_init_feed(fo, (uint32_t)(setup_has_topics(c) ? c->kafka.threads : 0),
                     heartbeats_add(&en->options.service->notify.heartbeats, "ingest"));
    fo->sources = xcalloc(setup_count_files(c), sizeof *fo->sources);
    for (size_t i = 0; i < c->source_count; i++) {
        if (!setup_is_followed(c, &c->sources[i]))
            continue;
        struct follow_source *of = &fo->sources[fo->source_count++];
        of->config = &c->sources[i];
        of->chain = chain_new(&of->config->decode, en->feeds.line_max);
    }
    follow_find_plain(fo);
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
    for (size_t i = 0; i < fo->count; i++)
        followed_free(fo, fo->list[i]);
    for (struct followed *f = fo->removed, *next; f != NULL; f = next) {
        next = f->next_removed;
        followed_free(fo, f);
    }
    for (size_t i = 0; i < fo->source_count; i++) {
        chain_free(fo->sources[i].chain);
        listing_fini(&fo->sources[i].listing);
        follow_free_suspects(&fo->sources[i]);
    }
    follow_fini_feed(fo);
    known_fini(&fo->known);
    index_fini(&fo->by_path);
    free(fo->sources);
    free(fo->list);
    free(fo->turn);
    free(fo);
}
