/* follow_internal.h - shared by the files of follow.h: the state of a follower and its files.
 *
 *   serve.c   the writer opens, closes and stores
 *   read.c    the ingest thread reads
 *
 * Threads : a file's members belong to the thread while it is open, else to the writer. `state` changes under
 *           lanes.lock, as do the members that say so.
 */
#pragma once

#include "daemon/file/follow.h"
#include "daemon/source.h"

#include <pthread.h>

/* Pause of the thread when no file has more lines. */
#define FOLLOW_WAIT_MS 50

enum followed_state { FOLLOWED_CLOSED, FOLLOWED_OPEN, FOLLOWED_LEFT, FOLLOWED_ENDED };

struct followed {
    const struct config_source *config;
    struct chain *chain;
    struct source source;
    struct input *before; /* the file that the next one replaces; NULL: none */
    struct range range;   /* of the source; `to`: end of what was added to a batch */
    size_t index;         /* of its range in the open batch, if that has one of this source */
    bool is_in_batch;     /* the open batch has a range of it */
    bool was_found;       /* it was there once, if only empty */
    bool has_caught_up;   /* the log has told that its end was reached */
    bool has_told_end;    /* the log has told that standard input ended */
    int64_t consumed;     /* lines since it was opened */
    struct latest latest;
    int64_t block_ms;          /* monotonic time of its last block */
    int64_t renamed_ms;        /* monotonic time at which it was first seen renamed; 0: it was not */
    int64_t look_ms;           /* monotonic time of the next attempt to open it */
    _Atomic int64_t read_to;   /* offset up to which it was read, for the status */
    _Atomic int64_t stored_to; /* offset up to which it is durable */
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
    bool read_failed; /* `error` says why the thread ends; under lanes.lock */
    struct err error;
    bool has_failed; /* the writer's */
};

static inline bool followed_is_stdin(const struct followed *f)
{
    return f->config->path == NULL;
}

static inline int64_t follow_now_ms(const struct follow *fo)
{
    return clock_mono_ms(fo->feed.shared->lanes.clock);
}

/* ---- read.c */

/* Prepare the feed and its buffers. `number`: of the feed's shard. */
void follow_init_feed(struct follow *fo, uint32_t number, struct heartbeat *heartbeat);
void follow_fini_feed(struct follow *fo);
/* Must the thread end? */
bool follow_is_ending(const struct follow *fo);
/* End the thread because of an error. follow_serve() returns the error once all that was read is stored. */
void follow_fail(struct follow *fo, const struct err *why);
enum followed_state followed_get_state(struct follow *fo, const struct followed *f);
void followed_set_state(struct follow *fo, struct followed *f, enum followed_state state);
/* Thread body for pthread_create(), with a struct follow: reads until a stop or a failure, then seals the
 * last delivery. */
void *follow_read(void *context);
