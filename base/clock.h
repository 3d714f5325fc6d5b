/* clock.h - the current time, from a clock that a test can replace.
 *
 * Wall time is in ms since 1970 UTC. It judges the times of events, and times that a store shares between
 * daemons, such as leases. Timers are monotonic, so that a jump of the wall clock does not move them.
 */
#pragma once

#include <stdint.h>
#include <time.h>

struct clock {
    int64_t (*wall_ms)(const struct clock *c);
    int64_t (*mono_ms)(const struct clock *c);
    int64_t fake_wall_ms, fake_mono_ms; /* times that a clock of clock_fake() shows */
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

/* A time of the system's monotonic clock, in the form that pthread_cond_timedwait() takes. */
struct timespec clock_timespec(int64_t mono_ms);
/* The time `for_ms` from now on the system's monotonic clock, in the same form. */
struct timespec clock_timespec_in(int64_t for_ms);
