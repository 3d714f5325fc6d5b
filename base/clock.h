/* clock.h - the current time, from a clock that a test can replace.
 *
 * Wall time is in ms since 1970 UTC. It judges the times of events, and times that a store shares between
 * daemons, such as leases. Timers are monotonic, so that a jump of the wall clock does not move them.
 *
 * Given : the caller that makes a thing gives it a clock. Only commands, the defaults of options, and
 *         log.h name `clock_system`.
 * Kernel: a sleep takes real time whatever the clock, and so does a deadline of clock_timespec_in().
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

struct clock {
    int64_t (*wall_ms)(const struct clock *c);
    int64_t (*mono_us)(const struct clock *c);
    int64_t (*boot_ms)(const struct clock *c);
    bool (*wait)(const struct clock *c, pthread_cond_t *changed, pthread_mutex_t *lock, int64_t until_ms);
    _Atomic int64_t fake_wall_ms, fake_mono_ms; /* times that a clock of clock_fake() shows */
};

extern const struct clock clock_system;
/* A clock that stands still until its fields are changed. */
struct clock clock_fake(int64_t wall_ms);
/* Let time pass on a clock of clock_fake(). */
void clock_pass(struct clock *c, int64_t ms);

static inline int64_t clock_wall_ms(const struct clock *c)
{
    return c->wall_ms(c);
}

static inline int64_t clock_mono_us(const struct clock *c)
{
    return c->mono_us(c);
}

static inline int64_t clock_mono_ms(const struct clock *c)
{
    return c->mono_us(c) / 1000;
}

/* Monotonic, too, but it includes the time for which the machine was suspended. */
static inline int64_t clock_boot_ms(const struct clock *c)
{
    return c->boot_ms(c);
}

/* A condition for clock_wait(). */
void clock_cond_init(pthread_cond_t *changed);
/* Wait for a signal until a monotonic time. False: that time has come. Like pthread_cond_wait() it may return
 * without a signal. */
static inline bool clock_wait(const struct clock *c, pthread_cond_t *changed, pthread_mutex_t *lock,
                              int64_t until_ms)
{
    return c->wait(c, changed, lock, until_ms);
}

/* Nanoseconds since 1970, from the time of a file. */
static inline int64_t clock_ns(struct timespec t)
{
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

/* A time of the system's monotonic clock, in the form that pthread_cond_timedwait() takes. */
struct timespec clock_timespec(int64_t mono_ms);
/* The time `for_ms` from now on the system's monotonic clock, in the same form. */
struct timespec clock_timespec_in(int64_t for_ms);
/* Sleeps, at least so long: a signal does not shorten it. */
void clock_sleep(int64_t for_ms);
