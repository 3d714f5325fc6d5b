/* writer.h - what every pipeline's writer does with the store: apply until it is done, and keep house
 * between.
 *
 * Retry   : what may pass (a full disk, a locked file, a broker that is away) is tried again with backoff for
 *           ever, said once, and noted in the status; the pipeline's queue stays as it is meanwhile.
 * Threads : one, which owns the store's handle.
 */
#pragma once

#include "aggregate/batch.h"
#include "base/clock.h"
#include "daemon/count/flush.h"
#include "stats/beat.h"
#include "stats/status.h"
#include "store/store.h"

#include <stdatomic.h>

#define WRITER_TICK_MS         200
/* From one look for what may go to the next. While there is more, it takes this part of the time. */
#define WRITER_EXPIRE_MS       10000
#define WRITER_EXPIRE_SHARE    10
/* If the time that expiry goes by (event_time.h) leapt by more than LEAP since the watermarks moved last,
 * they stay until the daemon has run for TRUST: by then its clock was set. */
#define WRITER_EXPIRE_LEAP_MS  ((int64_t)DAY_MS)
#define WRITER_EXPIRE_TRUST_MS (15 * (int64_t)MINUTE_MS)
/* From one attempt to move a watermark that is ahead back to the next. */
#define WRITER_RESTORE_MS      (5 * (int64_t)MINUTE_MS)
/* A clock that is ahead of the newest events by more is told. */
#define WRITER_EXPIRE_AHEAD_MS ((int64_t)DAY_MS)
/* A connection may have broken since it was last used, and others in its pool with it. */
#define LAST_TRIES_MAX         5

struct writer {
    struct store *store;
    const struct clock *clock;
    const atomic_bool *give_up; /* do not try again, but for LAST_TRIES_MAX in all, without a pause */
    struct status *status;      /* NULL, or who is told of batches and of the store's failures */
    struct flush *flush;        /* NULL, or the rule that is told how long batches take */
    struct beat *beat;          /* NULL: nobody watches */
    bool retry;
    bool insist; /* … also when it is to give up: something else ends a drain that takes too long */
    /* NULL, or called about every WRITER_TICK_MS, also while it tries again. */
    void (*tick)(void *context);
    void *context;
    int64_t ticked_ms;
    bool tidy_is_failing, expire_is_failing; /* and that was said */
    /* NULL, or by report of the store: where the mark of months is, for who lets events in. */
    _Atomic int64_t *late_ms;
    /* NULL, or the newest timestamp of the records read, by their broker or producer; 0: not known. */
    const _Atomic int64_t *broker_ms;
    int64_t expire_at_ms;   /* monotonic: when it is due again */
    int64_t trust_at_ms;    /* monotonic: from when on the wall clock is believed whatever it says */
    int64_t ahead_ms;       /* of the monotonic clock the wall clock, when it was looked at last; 0: never */
    bool expire_waits;      /* and that was said */
    bool clock_is_ahead;    /* of the newest events, and that was said */
    int64_t restore_at_ms;  /* monotonic: when the next attempt is due */
    bool mark_is_ahead;     /* of all events, and that was said */
    struct expired expired; /* deleted since that was last said */
    struct marks *marks;    /* by report, as they were read last; NULL: never */
};

void writer_fini(struct writer *w);
/* `before` (NULL: nothing) is to succeed first, and once: its failures are tried again likewise. */
bool writer_apply(struct writer *w, const struct batch *batch, bool (*before)(void *context, struct err *e),
                  void *context, struct err *e) MUST_CHECK;
/* Housekeeping of the store. A failure that may pass is said once, and tried again the next time. */
bool writer_tidy(struct writer *w, struct err *e) MUST_CHECK;
/* Delete what reports need not keep (store_expire()), when it is due, by the time that the newest events
 * confirm (event_time.h). What expires is logged; a failure is said once, and tried again; EX_DATAERR: the
 * store is damaged. */
bool writer_expire(struct writer *w, struct err *e) MUST_CHECK;
/* One turn of the loop. */
void writer_turn(struct writer *w);
/* Sleep so long, taking turns, or until give_up. */
void writer_sleep(struct writer *w, int64_t ms);
/* Cells of all parts. */
int64_t writer_count_cells(const struct batch *batch);
