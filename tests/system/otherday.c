/* otherday.c - has a program believe that it is another day: loaded by LD_PRELOAD, told by the environment.
 *
 *   OTHERDAY_S     how many seconds the wall clock is put forward; negative: back
 *   OTHERDAY_FILE  a file that says so instead, at any time
 *
 * Monotonic clocks stay, and so do the kernel's waits and the times of files.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static long seconds_ahead(void)
{
    const char *seconds = getenv("OTHERDAY_S"), *path = getenv("OTHERDAY_FILE");
    char text[32] = "0";
    FILE *file = path != NULL ? fopen(path, "re") : NULL;
    if (file != NULL) {
        seconds = fgets(text, sizeof text, file) != NULL ? text : "0";
        (void)fclose(file);
    }
    return seconds != NULL ? strtol(seconds, NULL, 10) : 0;
}

/* NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name): libc's are reserved names */
int clock_gettime(clockid_t clock, struct timespec *now)
{
    __typeof__(&clock_gettime) real = (__typeof__(&clock_gettime))dlsym(RTLD_NEXT, "clock_gettime");
    int result = real(clock, now);
    if (result == 0 && clock == CLOCK_REALTIME)
        now->tv_sec += seconds_ahead();
    return result;
}
