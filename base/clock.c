#include "base/clock.h"

#include "base/check.h"

#include <errno.h>

#define FAKE_LOOK_MS 1

static int64_t read_us(clockid_t id)
{
    struct timespec t;
    clock_gettime(id, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static int64_t system_wall_ms(const struct clock *c)
{
    (void)c;
    return read_us(CLOCK_REALTIME) / 1000;
}

static int64_t system_mono_us(const struct clock *c)
{
    (void)c;
    return read_us(CLOCK_MONOTONIC);
}

static int64_t system_boot_ms(const struct clock *c)
{
    (void)c;
    return read_us(CLOCK_BOOTTIME) / 1000;
}

static bool system_wait(const struct clock *c, pthread_cond_t *changed, pthread_mutex_t *lock,
                        int64_t until_ms)
{
    const struct timespec until = clock_timespec(until_ms);
    (void)c;
    return pthread_cond_timedwait(changed, lock, &until) == 0;
}

const struct clock clock_system = {
    .wall_ms = system_wall_ms, .mono_us = system_mono_us, .boot_ms = system_boot_ms, .wait = system_wait};

static int64_t fake_wall_ms(const struct clock *c)
{
    return c->fake_wall_ms;
}

static int64_t fake_mono_us(const struct clock *c)
{
    return c->fake_mono_ms * 1000;
}

static int64_t fake_boot_ms(const struct clock *c)
{
    return c->fake_mono_ms;
}

/* Nobody signals `changed` when a test changes the time, so it looks again each real millisecond. */
static bool fake_wait(const struct clock *c, pthread_cond_t *changed, pthread_mutex_t *lock, int64_t until_ms)
{
    const struct timespec until = clock_timespec_in(FAKE_LOOK_MS);
    return pthread_cond_timedwait(changed, lock, &until) == 0 || c->fake_mono_ms < until_ms;
}

struct clock clock_fake(int64_t wall_ms)
{
    return (struct clock){.wall_ms = fake_wall_ms,
                          .mono_us = fake_mono_us,
                          .boot_ms = fake_boot_ms,
                          .wait = fake_wait,
                          .fake_wall_ms = wall_ms};
}

void clock_pass(struct clock *c, int64_t ms)
{
    c->fake_wall_ms += ms;
    c->fake_mono_ms += ms;
}

void clock_cond_init(pthread_cond_t *changed)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(changed, &attributes);
    pthread_condattr_destroy(&attributes);
}

struct timespec clock_timespec(int64_t mono_ms)
{
    return (struct timespec){.tv_sec = mono_ms / 1000, .tv_nsec = mono_ms % 1000 * 1000000};
}

struct timespec clock_timespec_in(int64_t for_ms)
{
    return clock_timespec(clock_mono_ms(&clock_system) + for_ms);
}

void clock_sleep(int64_t for_ms)
{
    struct timespec left = clock_timespec(for_ms);
    while (nanosleep(&left, &left) != 0)
        ASSERT(errno == EINTR);
}
