#include "base/clock.h"

static int64_t read_ms(clockid_t id)
{
    struct timespec t;
    clock_gettime(id, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static int64_t system_wall_ms(const struct clock *c)
{
    (void)c;
    return read_ms(CLOCK_REALTIME);
}

static int64_t system_mono_ms(const struct clock *c)
{
    (void)c;
    return read_ms(CLOCK_MONOTONIC);
}

const struct clock clock_system = {.wall_ms = system_wall_ms, .mono_ms = system_mono_ms};

static int64_t fake_wall_ms(const struct clock *c)
{
    return c->fake_wall_ms;
}

static int64_t fake_mono_ms(const struct clock *c)
{
    return c->fake_mono_ms;
}

struct clock clock_fake(int64_t wall_ms)
{
    return (struct clock){.wall_ms = fake_wall_ms, .mono_ms = fake_mono_ms, .fake_wall_ms = wall_ms};
}

struct timespec clock_timespec(int64_t mono_ms)
{
    return (struct timespec){.tv_sec = mono_ms / 1000, .tv_nsec = mono_ms % 1000 * 1000000};
}

struct timespec clock_timespec_in(int64_t for_ms)
{
    return clock_timespec(clock_mono_ms(&clock_system) + for_ms);
}
