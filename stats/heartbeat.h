/* heartbeat.h - the heartbeats of the counting threads, by which the watchdog (daemon/service) finds a stuck
 * one.
 *
 * Turn    : a thread calls heartbeat_turn() in every turn of its loop, even if it had nothing to do or
 *           retries the store: an unreachable store is no reason for a restart.
 * Rest    : a thread calls heartbeat_rest() before it waits for another watched thread, and when it ends. The
 *           thread that it waits for is the one to blame.
 * Stuck   : a thread that is not at rest and has made no turn for the time given.
 * Threads : call heartbeats_add() before the watched threads start. One thread turns each heartbeat; any may
 *           ask.
 */
#pragma once

#include "base/clock.h"

#include <stdatomic.h>
#include <stddef.h>

#define HEARTBEATS_MAX 160

struct heartbeat {
    _Atomic int64_t turned_ms; /* monotonic time of the last turn; INT64_MAX: at rest */
    const char *name;          /* borrowed, for the log */
    const struct clock *clock;
};

struct heartbeats {
    const struct clock *clock;
    struct heartbeat list[HEARTBEATS_MAX];
    size_t count;
};

void heartbeats_init(struct heartbeats *bs, const struct clock *clock);
/* Adds a heartbeat, at rest. It is never removed: a thread that is restarted uses the same one. */
struct heartbeat *heartbeats_add(struct heartbeats *bs, const char *name);
/* The heartbeat without a turn for the longest time, if that exceeds `for_ms`; else NULL. */
const struct heartbeat *heartbeats_stuck(const struct heartbeats *bs, int64_t for_ms);

/* NULL: no watchdog. */
static inline void heartbeat_turn(struct heartbeat *b)
{
    if (b != NULL)
        atomic_store_explicit(&b->turned_ms, clock_mono_ms(b->clock), memory_order_relaxed);
}

static inline void heartbeat_rest(struct heartbeat *b)
{
    if (b != NULL)
        atomic_store_explicit(&b->turned_ms, INT64_MAX, memory_order_relaxed);
}
