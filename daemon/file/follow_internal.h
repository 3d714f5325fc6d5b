/* follow_internal.h - shared by the files of follow.h: the state of a follower and its logs.
 *
 *   serve.c   the writer's turn: stores, opens, closes
 *   open.c    the writer decides which file of a log is next, and opens it
 *   read.c    the ingest thread reads
 *
 * Threads : a log's members belong to the thread while it is open, else to the writer. `state` changes under
 *           lanes.lock, as do the members that say so.
 */
#pragma once

#include "daemon/file/follow.h"
#include "daemon/file/survey.h"
#include "daemon/source.h"

#include <pthread.h>

/* Pause of the thread when no file has more lines. */
#define FOLLOW_WAIT_MS 50

/* A server writes to a renamed log until it has opened the new one. So the old one is read until nothing came
 * for RENAMED_QUIET_MS, but no longer than RENAMED_MAX_MS in case a process never closes it. */
#define RENAMED_QUIET_MS 5000
#define RENAMED_MAX_MS   60000

enum followed_state { FOLLOWED_CLOSED, FOLLOWED_OPEN, FOLLOWED_LEFT, FOLLOWED_ENDED };

/* Signs that a log's folder has changed. */
struct folder_stamp {
    int64_t folder_ns, olddir_ns, log_size;
    dev_t device;
    ino_t inode; /* of the log; 0: there is none */
};

/* A log (or standard input), and the file of it that is open. */
struct followed {
    const struct config_source *config;
    struct chain *chain;
    char *path; /* absolute; NULL: standard input */
    struct source source;
    struct survey survey;
    struct survey_answer answer; /* about the open file */
    struct folder_stamp stamp;   /* when the writer looked last */
    struct input *before;        /* the log's last file, kept open in case lines are still written to it */
    int64_t before_size;         /* its size when it was left */
    int64_t before_ms;           /* monotonic time at which it was left */
    int64_t missing_ms;          /* monotonic time since which the followed file is missed; 0: it is not */
    struct range range;          /* of the source; `to`: end of what was added to a batch */
    struct identity head;        /* hash of the file's first bytes */
    size_t index;                /* of its range in the open batch, if that has one of this source */
    bool is_in_batch;            /* the open batch has a range of it */
    bool was_found;              /* the log was there once */
    bool was_truncated;          /* the file that was open was truncated */
    bool has_turned;             /* the open file was left only for now (must_turn) */
    bool is_damaged;             /* the open file cannot be unpacked to its end */
    bool has_caught_up;          /* the log has told that its end was reached */
    bool has_told_end;           /* the log has told that standard input ended */
    int64_t consumed;            /* lines since it was opened */
    struct latest latest;
    int64_t opened_ms;       /* monotonic time */
    int64_t block_ms;        /* monotonic time of its last block */
    int64_t renamed_ms;      /* monotonic time at which it was first seen renamed; 0: it was not */
    int64_t look_ms;         /* monotonic time at which the writer looks again */
    atomic_bool must_turn;   /* the writer has found an older file with more lines: leave this one for now */
    _Atomic int64_t read_to; /* offset up to which it was read, for the status */
    _Atomic int64_t stored_to; /* offset up to which it is durable */
    enum followed_state state;
};

struct follow {
    struct engine *engine;
    struct feed feed;
    struct followed *list;
    size_t count;
    const char **paths; /* of all logs, absolute, and NULL */
    int64_t host;       /* number of this host; 0: the store has one writer */
    struct known known; /* what the store knows, while has_known */
    bool has_known;
    struct followed *current;         /* its rejects are being noted */
    struct followed **open, **sealed; /* by range of the feed's deliveries; NULL: a file that ended */
    size_t open_capacity, sealed_capacity;
    struct block block;
    pthread_t thread;
    bool has_thread;
    atomic_bool abandon, end;
    bool has_ended;   /* the thread; under lanes.lock */
    bool read_failed; /* `error` says why the thread ends; under lanes.lock */
    struct err error;
    bool has_failed; /* the writer's */
    int64_t lost;    /* files whose rest was not found */
};

static inline bool followed_is_stdin(const struct followed *f)
{
    return f->path == NULL;
}

static inline int64_t follow_now_ms(const struct follow *fo)
{
    return clock_mono_ms(fo->feed.shared->lanes.clock);
}

/* ---- open.c */

/* Open the next file of a log, or standard input; or look later. False: a final error. */
bool followed_open(struct follow *fo, struct followed *f, struct err *e) MUST_CHECK;
/* Close a file that was left. Everything read of it is stored. */
void followed_close(struct follow *fo, struct followed *f);
/* Look whether an older file of an open log has more lines; if so, the thread leaves the log. */
bool followed_look_back(struct follow *fo, struct followed *f, struct err *e) MUST_CHECK;
void followed_fini(struct followed *f);

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
