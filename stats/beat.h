/* beat.h - the heartbeats of the threads that count, for the watchdog: is any of them stuck?
 *
 * Turn    : a thread says beat_turn() in every turn of its loop, also when it had nothing to do and when it
 *           tries the store again: a store that is away is no reason to be restarted.
 * Rest    : beat_rest() before it waits for another watched thread, and when it ends: whoever is waited for
 *           is the one to blame.
 * Stuck   : a thread that was not at rest and made no turn for so long.
 * Threads : beats_add() before the watched threads start; each beat is turned by one thread; any may ask.
 */
#pragma once

#include "base/clock.h"

#include <stdatomic.h>
#include <stddef.h>

#define BEATS_MAX 160

struct beat {
    _Atomic int64_t turned_ms; /* monotonic; INT64_MAX: at rest */
    const char *name;          /* borrowed, for the log */
    const struct clock *clock;
};

struct beats {
    const struct clock *clock;
    struct beat list[BEATS_MAX];
    size_t count;
};

void beats_init(struct beats *bs, const struct clock *clock);
/* A new one, at rest. It stays: a thread that is started again uses the same. */
struct beat *beats_add(struct beats *bs, const char *name);
/* The one that made no turn for longest, if that is over for_ms; else NULL. */
const struct beat *beats_stuck(const struct beats *bs, int64_t for_ms);

/* NULL: nobody watches. */
static inline void beat_turn(struct beat *b)
{
    if (b != NULL)
        atomic_store_explicit(&b->turned_ms, clock_mono_ms(b->clock), memory_order_relaxed);
}

static inline void beat_rest(struct beat *b)
{
    if (b != NULL)
        atomic_store_explicit(&b->turned_ms, INT64_MAX, memory_order_relaxed);
}
