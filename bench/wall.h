/* wall.h - the wall clock of programs that keep time with it: what they write is dated. */
#pragma once

#include <errno.h>
#include <stdint.h>
#include <time.h>

static inline int64_t wall_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static inline void wall_sleep_until(int64_t at_ms)
{
    struct timespec at = {.tv_sec = at_ms / 1000, .tv_nsec = at_ms % 1000 * 1000000};
    while (clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &at, NULL) == EINTR) {
    }
}
