/* otherday.c - has a program believe that it is another day: loaded by LD_PRELOAD, told by the environment.
 *
 *   OTHERDAY_S  how many seconds the wall clock is put forward; negative: back
 *
 * Monotonic clocks stay, and so do the kernel's waits and the times of files.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>

/* NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name): libc's are reserved names */
int clock_gettime(clockid_t clock, struct timespec *now)
{
    __typeof__(&clock_gettime) real = (__typeof__(&clock_gettime))dlsym(RTLD_NEXT, "clock_gettime");
    const char *seconds = getenv("OTHERDAY_S");
    int result = real(clock, now);
    if (result == 0 && clock == CLOCK_REALTIME && seconds != NULL)
        now->tv_sec += strtol(seconds, NULL, 10);
    return result;
}
