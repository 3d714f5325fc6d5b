/* clock.h - what time it is, from a clock that a test can replace.
 *
 * Wall time (ms since 1970 UTC) says when an event is in the future and nothing else; every timer is
 * monotonic, so that a wall-clock jump moves nothing.
 */
#pragma once

#include <stdint.h>
#include <time.h>

struct clock {
    int64_t (*wall_ms)(const struct clock *c);
    int64_t (*mono_ms)(const struct clock *c);
    int64_t fake_wall_ms, fake_mono_ms; /* read by clock_fake() only */
};

extern const struct clock clock_system;
/* A clock that stands still until its fields are changed. */
struct clock clock_fake(int64_t wall_ms);

static inline int64_t clock_wall_ms(const struct clock *c)
{
    return c->wall_ms(c);
}

static inline int64_t clock_mono_ms(const struct clock *c)
{
    return c->mono_ms(c);
}

/* A time of the system's monotonic clock as pthread_cond_timedwait() takes it, … */
struct timespec clock_timespec(int64_t mono_ms);
/* … and one so far from now. */
struct timespec clock_timespec_in(int64_t for_ms);
