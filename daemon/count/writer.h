/* writer.h - how a writer uses the store: it applies batches with retries; between batches it runs
 * housekeeping and expiry. The engine of a daemon and the pipeline of an import call it
 * from their writer thread.
 *
 * Retry   : a retryable error (a full disk, a locked file, a broker that is away) is retried with backoff for
 *           ever. It is logged once, and noted in the status. The queue stays as it is meanwhile.
 * Threads : one, which owns the store's handle.
 */
#pragma once

#include "aggregate/batch.h"
#include "base/clock.h"
#include "daemon/count/flush.h"
#include "stats/heartbeat.h"
#include "stats/status.h"
#include "store/writer.h"

#include <stdatomic.h>

#define WRITER_TICK_MS         200
/* ms between two looks for expired buckets; while more are left, expiry takes 1/SHARE of the time */
#define WRITER_EXPIRE_MS       10000
#define WRITER_EXPIRE_SHARE    10
/* Guards against a wrong clock: if the time that expiry goes by (event_time.h) jumped by more than LEAP_MS
 * since the watermarks last moved, they stay. They move again once the daemon has been up for TRUST_MS: by
 * then its clock is set. */
#define WRITER_EXPIRE_LEAP_MS  ((int64_t)DAY_MS)
#define WRITER_EXPIRE_TRUST_MS (15 * (int64_t)MINUTE_MS)
/* ms between two attempts to move back a watermark that is ahead */
#define WRITER_RESTORE_MS      (5 * (int64_t)MINUTE_MS)
/* A clock that is further ahead of the newest events is logged. */
#define WRITER_EXPIRE_AHEAD_MS ((int64_t)DAY_MS)
/* A connection may have broken since it was last used, and with it others of its pool. */
#define LAST_TRIES_MAX         5

struct writer {
    struct store *store;
    const struct clock *clock;
    const atomic_bool *give_up;  /* set: make at most LAST_TRIES_MAX attempts more, without pauses */
    struct status *status;       /* NULL, or the status that notes batches and store errors */
    struct flush *flush;         /* NULL, or the flush rule that notes how long batches take */
    struct heartbeat *heartbeat; /* NULL: no heartbeat */
    bool retry;
    bool insist; /* retry even after give_up: something else ends a drain that takes too long */
    /* NULL, or called about every WRITER_TICK_MS, also during retries. */
    void (*tick)(void *context);
    void *context;
    int64_t ticked_ms;
    bool housekeeping_is_failing, expire_is_failing; /* logged as failing */
    /* NULL, or the expiry watermark of months, by report of the store, for the shards. */
    _Atomic int64_t *late_ms;
    /* NULL, or the newest timestamp that a broker or producer gave the records read; 0: not known. */
    const _Atomic int64_t *broker_ms;
    int64_t expire_at_ms;    /* monotonic time of the next expiry */
    int64_t trust_at_ms;     /* monotonic time from which any wall clock is trusted */
    int64_t ahead_ms;        /* wall clock minus monotonic clock at the last check, in ms; 0: never checked */
    bool expire_waits;       /* expiry waits after a leap of the clock, and the log says so */
    bool clock_is_ahead;     /* the clock is ahead of the newest events, and the log says so */
    int64_t restore_at_ms;   /* monotonic time of the next attempt */
    bool watermark_is_ahead; /* a watermark is ahead of all events, and the log says so */
    struct expired expired;  /* deletions that are not logged yet */
    struct watermarks *watermarks; /* watermarks as last read, by report; NULL: never read */
};

void writer_fini(struct writer *w);
/* Apply a batch. `before` (NULL: nothing) must succeed first, and runs until it has succeeded once. Its
 * failures are retried, too. */
bool writer_apply(struct writer *w, const struct batch *batch, bool (*before)(void *context, struct err *e),
                  void *context, struct err *e) MUST_CHECK;
/* Run the store's housekeeping (store_housekeep()). A retryable failure is logged once, and retried at the
 * next call. */
bool writer_housekeep(struct writer *w, struct err *e) MUST_CHECK;
/* Delete expired buckets (store_expire()) if it is time to, by the time that the newest events confirm
 * (event_time.h). Watermarks that move and deletions are logged. A failure is logged once, and retried;
 * EX_DATAERR: the store is damaged. */
bool writer_expire(struct writer *w, struct err *e) MUST_CHECK;
/* Do one turn of the loop: heartbeat and tick. */
void writer_turn(struct writer *w);
/* Sleep for `ms` or until give_up, and take turns meanwhile. */
void writer_sleep(struct writer *w, int64_t ms);
/* Count the cells of all parts. */
int64_t writer_count_cells(const struct batch *batch);
