/* turning.h - a clock that stands still but for turning_pass(), and that knows who waits for it.
 *
 *   Once turning_pass() returns, a thread that waits by clock_wait() has done all that is due by then, and
 *   waits again. So a test needs no sleep to show what does not happen.
 *
 * Threads: one waits by the clock; else a look of another may be taken for its own.
 */
#pragma once

#include "base/clock.h"

struct turning {
    struct clock clock; /* first: a struct turning is a struct clock */
    bool (*wait)(const struct clock *c, pthread_cond_t *changed, pthread_mutex_t *lock, int64_t until_ms);
    _Atomic int64_t looks; /* times that a thread looked at the clock and waits on */
};

void turning_init(struct turning *t, int64_t wall_ms);
/* Wait until the thread has done what is due. */
void turning_settle(struct turning *t);
void turning_pass(struct turning *t, int64_t ms);
