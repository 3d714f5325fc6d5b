/* lane.h - the way of one ingest thread's records to the writer: it decodes them, adds their events to its
 * shard, hands the sealed part to the writer, and takes it back. Each worker of an import and
 * each feed of a daemon has one; they differ in where records come from and when a part is sealed.
 *
 *   lane_line(), lane_record() → events → shard → lane_hand_over() → part → writer: lane_note_applied()
 *                                           └──────── lane_take_back() ◀───────────┘
 *
 * Memory : a lane has one open and one sealed part. There is no other queue: a slow store stops the reading.
 * Threads: everything is the ingest thread's own, except `part` and `is_applied`: their changes need the lock
 *          of `lanes`. A part belongs to the writer from hand-over until it is applied.
 */
#pragma once

#include "aggregate/shard.h"
#include "ingest/decode/chain.h"
#include "ingest/decode/decoder.h"
#include "ingest/file/reader.h"
#include "stats/heartbeat.h"
#include "store/backfill.h"

#include <pthread.h>
#include <stdatomic.h>

#define LANE_FOREVER_MS (INT64_MAX / 1000) /* a time that never comes */

/* State that the lanes of one writer share. */
struct lanes {
    const struct clock *clock;
    pthread_mutex_t lock;
    pthread_cond_t sealed;  /* for the writer: a lane needs it */
    pthread_cond_t applied; /* for the lanes: the writer has done something */
};

/* Is called for each record, line or element that is rejected, after it was counted in the books. */
typedef void lane_reject_fn(void *context, const struct record *r, struct slice bytes, struct reject why);

struct lane {
    struct lanes *lanes;
    const atomic_bool *abandon; /* set: the writer has failed, nothing more will be applied */
    struct shard *shard;
    struct heartbeat *heartbeat; /* NULL: no heartbeat */
    lane_reject_fn *reject;
    void *context;
    const struct backfill_filter *filter;  /* other events are left out; NULL: none is */
    int64_t latest_ms, future_max_ms;      /* events later than record_latest() are rejected */
    struct event events[SHARD_EVENTS_MAX]; /* decoded, not yet added */
    size_t event_count;
    bool is_full_of_raw; /* the events added last have filled the shard with raw events */

    struct part *part; /* sealed; NULL: none */
    bool is_applied;   /* the writer is done with the sealed part */
};

void lanes_init(struct lanes *ls, const struct clock *clock);
void lanes_fini(struct lanes *ls);
/* Set *abandon, and end the waits of its lanes. The writer calls it when it fails. */
void lanes_abandon(struct lanes *ls, atomic_bool *abandon);

/* Count the lines of a block. Longer ones than line_max are rejected. The block may be reused afterwards. */
void lane_block(struct lane *l, struct chain *chain, const struct block *b, size_t line_max);
/* Count a record of any kind. The chain's memory is reused as soon as no event needs it. */
void lane_record(struct lane *l, struct chain *chain, const struct record *r);
/* Count something that is no event, of one record of the chain's. */
void lane_reject(struct lane *l, struct chain *chain, const struct record *r, struct slice bytes,
                 struct reject why);
/* Add the decoded events to the shard. Needed before the bytes that they point into go. */
void lane_add(struct lane *l);

/* Pre: the lock is held, and no sealed part is left. */
void lane_hand_over(struct lane *l, struct part *part);
/* The writer has applied the sealed part. Pre: the lock is held. */
void lane_note_applied(struct lane *l);
/* Does the writer have to apply the sealed part? Pre: the lock is held. */
static inline bool lane_needs_applying(const struct lane *l)
{
    return l->part != NULL && !l->is_applied;
}
/* Would lane_take_back() return at once? */
bool lane_is_free(struct lane *l);
/* Wait until the writer has applied the sealed part, and give it back to the shard. False: the writer has
 * failed, or has not applied it by until_ms (monotonic). */
bool lane_take_back(struct lane *l, int64_t until_ms) MUST_CHECK;

/* Count a plain line by its decoder: the fast path. False: it is not counted, nothing was done, and `why`
 * says why. */
static inline bool lane_line(struct lane *l, struct decoder *decoder, struct slice line, int64_t offset,
                             struct reject *why)
{
    struct event *ev = &l->events[l->event_count];
    if (!decoder_decode(decoder, line, ev, why))
        return false;
    if (UNLIKELY(ev->at_ms > l->latest_ms)) {
        *why = (struct reject){REJECT_FUTURE, 1};
        return false;
    }
    ev->order = record_order(offset, 0);
    if (++l->event_count == SHARD_EVENTS_MAX)
        lane_add(l);
    return true;
}
