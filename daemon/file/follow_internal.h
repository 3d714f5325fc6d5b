/* follow_internal.h - shared by the files of follow.h: the state of a follower and its logs.
 *
 *   serve.c   the writer's turn: stores, opens, closes
 *   find.c    the writer lists the logs that are there
 *   open.c    the writer decides which file of a log is next, and opens it
 *   hand.c    files that `import` hands over
 *   read.c    the ingest thread reads
 *
 * Threads : a log's members belong to the thread while it is open, else to the writer. `state` changes under
 *           lanes.lock, as do the members that say so.
 */
#pragma once

#include "daemon/file/desk.h"
#include "daemon/file/follow.h"
#include "daemon/file/survey.h"
#include "daemon/source.h"
#include "ingest/decode/constants.h"
#include "ingest/file/family.h"
#include "ingest/file/listing.h"

#include <pthread.h>

/* Pause of the thread when no file has more lines; with many files it is longer. */
#define FOLLOW_WAIT_MS     50
#define FOLLOW_WAIT_MAX_MS 500

/* A server writes to a renamed log until it has opened the new one. So the old one is read until nothing came
 * for RENAMED_QUIET_MS, but no longer than RENAMED_MAX_MS in case a process never closes it. */
#define RENAMED_QUIET_MS 5000
#define RENAMED_MAX_MS   60000

/* Time for which a log's last file is watched for lines that a server still writes to it. */
#define BEFORE_MS (10 * 60 * 1000)

/*   CLOSED ──followed_open()──▶ OPEN ──another file has its place──▶ LEFT ──▶ CLOSED
 *     │                           └──standard input ends──▶ ENDED
 *     └──a followed file has ended, and nothing comes after it──▶ ENDING ──its end is in a batch──▶ CLOSED */
enum followed_state { FOLLOWED_CLOSED, FOLLOWED_OPEN, FOLLOWED_LEFT, FOLLOWED_ENDING, FOLLOWED_ENDED };

/* Signs that a log's folder has changed. */
struct folder_stamp {
    int64_t folder_ns[FAMILY_FOLDERS];
    int64_t log_size;
    dev_t device;
    ino_t inode; /* of the log; 0: there is none */
};

/* A file that a source's pattern matches, but that looks rotated by its name. */
struct suspect {
    char *path; /* owned */
    dev_t device;
    ino_t inode;
    int64_t size;    /* when it was first seen under this path */
    int64_t seen_ms; /* monotonic time of that */
    bool is_told;
};

/* A source of the configuration: standard input, or logs. */
struct follow_source {
    const struct config_source *config;
    struct chain *chain; /* the thread's */
    bool has_globs;      /* some of its logs are found by listing folders */
    bool has_begun;      /* they were listed */
    struct listing listing;
    uint64_t stamp;    /* of the folders' times at the last listing */
    int64_t listed_ms; /* monotonic time of the last listing */
    struct suspect *suspects;
    size_t suspect_count, suspect_capacity;
};

/* A log (or standard input), and the file of it that is open. */
struct followed {
    struct follow_source *of;
    struct handed *handed;      /* NULL, or the file that was handed over; then `of` is its own */
    struct err *failure;        /* of a file that was handed over: why it was not counted to its end */
    char *path;                 /* absolute; NULL: standard input, or a file that was handed over */
    struct constants constants; /* fields that its name sets */
    bool is_listed;             /* it was found by a glob, and is removed when it is gone */
    uint64_t removed_in;        /* version of the list in which it was no more */
    struct followed *next_removed;
    struct source source;
    struct survey survey;
    struct survey_answer answer; /* about the open file */
    struct folder_stamp stamp;   /* when the writer looked last */
    struct input *before;        /* the log's last file, kept open in case lines are still written to it */
    char before_source[RANGE_SOURCE_BYTES];
    bool before_came_next; /* `came_next` of it */
    int64_t before_size;   /* its size when it was left */
    int64_t before_ms;     /* monotonic time at which it was left */
    int64_t looked_ms;     /* monotonic time of the last survey */
    int64_t begun_ns;      /* wall clock of the first survey */
    int64_t missing_ms;    /* monotonic time since which the followed file is missed; 0: it is not */
    struct range range;    /* of the source; `to`: end of what was added to a batch */
    struct identity head;  /* hash of the file's first bytes */
    size_t index;          /* of its range in the open batch, if that has one of this source */
    bool is_in_batch;      /* the open batch has a range of it */
    bool was_found;        /* the log was there once */
    bool has_looked;       /* the writer has looked since it was closed */
    bool was_truncated;    /* the file that was open was truncated */
    bool has_turned;       /* the open file was left only for now (must_turn) */
    bool has_seen_next;    /* another file was seen in the open file's place */
    bool came_next;        /* and that came directly after it */
    size_t told_skipped;   /* number of skipped files that the log has told */
    bool is_damaged;       /* the open file cannot be unpacked to its end */
    bool has_caught_up;    /* the log has told that its end was reached */
    bool has_told_away;    /* the log has told that there is no file; it has been away since */
    bool has_told_end;     /* the log has told that standard input ended */
    int64_t consumed;      /* lines since it was opened */
    struct latest latest;
    int64_t opened_ms;       /* monotonic time */
    int64_t block_ms;        /* monotonic time of its last block */
    int64_t fate_ms;         /* monotonic time of the next question for its fate */
    int64_t renamed_ms;      /* monotonic time at which it was first seen renamed; 0: it was not */
    int64_t look_ms;         /* monotonic time at which the writer looks again */
    atomic_bool must_turn;   /* the writer has found an older file with more lines: leave this one for now */
    _Atomic int64_t read_to; /* offset up to which it was read, for the status */
    _Atomic int64_t pending; /* ranges of it in batches that are not durable yet; empty ones count */
    _Atomic int64_t stored_to; /* offset up to which it is durable */
    enum followed_state state;
};

struct follow {
    struct engine *engine;
    struct desk *desk; /* NULL: no files are handed over */
    struct feed feed;
    struct follow_source *sources;
    size_t source_count;
    struct followed **list; /* the writer changes it under lanes.lock */
    size_t count, capacity;
    uint64_t version, seen_version; /* of the list; the last one that the thread took; under lanes.lock */
    struct index by_path;           /* of the list */
    struct followed *removed;       /* not freed yet: the thread may have them in its list */
    struct followed **turn;         /* the thread's copy of the list */
    size_t turn_count, turn_capacity;
    size_t next;        /* index of the log that the writer serves next */
    int64_t find_ms;    /* monotonic time at which folders are looked at again */
    int64_t host;       /* number of this host; 0: the store has one writer */
    struct known known; /* what the store knew, while has_known, and what this process stored since */
    bool has_known;
    bool is_known_fresh;              /* no other process can have stored more since */
    struct followed *current;         /* its rejects are being noted */
    struct followed **open, **sealed; /* by range of the feed's deliveries; NULL: a file that ended */
    size_t open_capacity, sealed_capacity;
    bool has_ends; /* the open batch has ends of files */
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
    return f->path == NULL && f->handed == NULL;
}

static inline int64_t follow_now_ms(const struct follow *fo)
{
    return clock_mono_ms(fo->feed.shared->lanes.clock);
}

/* ---- find.c */

/* Add standard input and the logs that are named without globs. */
void follow_find_plain(struct follow *fo);
/* Add the logs that globs match now. False: a final error. */
bool follow_find(struct follow *fo, struct err *e) MUST_CHECK;
void follow_free_suspects(struct follow_source *of);
/* For survey.h. */
bool follow_find_owner(void *context, const char *path, struct survey_owner *owner);
/* Add a file that was handed over. */
void follow_add(struct follow *fo, struct followed *f);
/* Remove logs that are gone, and were read to their ends. */
void follow_remove_gone(struct follow *fo);
/* The time of a folder's last change; 0: there is no folder; -1: it was now, so that the next may have
 * the same time. */
int64_t follow_folder_ns(const struct follow *fo, const char *path);
/* Is there a log of this path? `context` is the follower. */
bool follow_has_log(void *context, const char *path);

/* ---- open.c */

/* Read what the store knows, unless nothing else can be known. In a store that others write, it may be out of
 * date after this turn. */
bool follow_need_fresh(struct follow *fo, struct err *e) MUST_CHECK;

/* Open the next file of a log, or standard input; or look later. False: a final error. */
bool followed_open(struct follow *fo, struct followed *f, struct err *e) MUST_CHECK;
/* Begin to read what is open. */
void followed_begin(struct follow *fo, struct followed *f);
/* Close a file that was left. Everything read of it is stored. */
void followed_close(struct follow *fo, struct followed *f);
/* Look whether an older file of an open log has more lines; if so, the thread leaves the log. */
bool followed_look_back(struct follow *fo, struct followed *f, struct err *e) MUST_CHECK;
void followed_free(struct follow *fo, struct followed *f);

/* ---- hand.c */

/* Take a file that was handed over, if there is one. False: a final error. */
bool follow_take_handed(struct follow *fo, struct err *e) MUST_CHECK;
/* Is a file that was handed over this one, or does it begin alike? Then a log that would open it waits. */
bool follow_is_handed(const struct follow *fo, const struct survey_answer *a);
/* Give the file back to the desk. */
void followed_give_back(struct follow *fo, struct followed *f);

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
