/* desk.h - takes the files that `tallyd import` hands over (handover.h), and hands them to the follower
 * (follow.h). It counts those of `tallyd backfill` itself (desk_backfill.h). The daemon of an SQLite store
 * has one.
 *
 *   importer ──▶ desk: recognise, judge ──desk_take()──▶ follower: count to the end
 *            ◀── desk: what was counted ◀──desk_give_back()──┘
 *
 * Limits : one file at a time; further importers get an answer that they have to wait.
 * Threads: the desk has a thread of its own, with its own read handle. desk_take() and desk_give_back() are
 *          the writer's; between them, each member of struct handed says whose it is.
 */
#pragma once

#include "aggregate/books.h"
#include "config/config.h"
#include "daemon/count/samples.h"
#include "daemon/source.h"
#include "ingest/decode/constants.h"

/* A file that was handed over. */
struct handed {
    struct source source; /* at the store's position; the follower takes it over */
    struct decode decode;
    struct constants constants;
    struct samples samples;                       /* the reading thread's */
    struct books books;                           /* the writer's: of what is durable */
    int64_t stored;                               /* the writer's: offset up to which it is durable */
    size_t left;                                  /* the writer's: bytes of an unfinished last line */
    atomic_bool is_left;                          /* the importer has gone: end the reading */
    _Atomic int64_t offset, raw_offset, consumed; /* read so far */
};

struct desk;
struct desk_backfill;
struct engine;

struct desk_options {
    struct engine *engine;       /* applies the batches of a backfill */
    const struct config *config; /* borrowed; only keys that do not change are read */
    const char *store_url;
    size_t line_max;
    const atomic_bool *stop; /* ends all waits */
    /* Backfills a report from all topics (daemon/topic/refill.h). `said` receives a line for each part. */
    bool (*refill)(const struct desk_backfill *d, struct text *said, int64_t *records, struct err *e);
};

/* NULL on failure. Pre: the store is open for writing. */
struct desk *desk_start(const struct desk_options *options, struct err *e) MUST_CHECK;
/* Pre: every file was given back. NULL: does nothing. */
void desk_stop(struct desk *d);
/* The next file; NULL: there is none. */
struct handed *desk_take(struct desk *d);
/* The file is counted to its end, or `why` (not NULL) says why not. */
void desk_give_back(struct desk *d, struct handed *h, const struct err *why);
