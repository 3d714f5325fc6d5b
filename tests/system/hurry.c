/* hurry.c - has a program's monotonic clock run faster, so that a test need not wait for its timeouts: loaded
 * by LD_PRELOAD, told by the environment.
 *
 *   HURRY  how many times as fast; 8 without it
 *
 * Waits for a condition end as much earlier. The wall clock, the kernel's sleeps and the times of files stay.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#define USUAL    8
#define SECOND   1000000000L
#define WALL_MIN 1000000000L /* seconds: an absolute time from here on is of the wall clock */

static long speed(void)
{
    const char *text = getenv("HURRY");
    long times = text != NULL ? strtol(text, NULL, 10) : USUAL;
    return times > 0 ? times : USUAL;
}

/* NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name): libc's are reserved names */
int clock_gettime(clockid_t clock, struct timespec *now)
{
    __typeof__(&clock_gettime) real = (__typeof__(&clock_gettime))dlsym(RTLD_NEXT, "clock_gettime");
    int result = real(clock, now);
    if (result != 0 || clock != CLOCK_MONOTONIC)
        return result;
    long ns = now->tv_nsec * speed();
    now->tv_sec = now->tv_sec * speed() + ns / SECOND;
    now->tv_nsec = ns % SECOND;
    return 0;
}

/* NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name): libc's are reserved names */
int pthread_cond_timedwait(pthread_cond_t *changed, pthread_mutex_t *lock, const struct timespec *until)
{
    if (until->tv_sec >= WALL_MIN)
        return pthread_cond_clockwait(changed, lock, CLOCK_REALTIME, until);
    long rest = until->tv_sec % speed();
    const struct timespec sooner = {.tv_sec = until->tv_sec / speed(),
                                    .tv_nsec = (rest * SECOND + until->tv_nsec) / speed()};
    return pthread_cond_clockwait(changed, lock, CLOCK_MONOTONIC, &sooner);
}
