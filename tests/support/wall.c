#include "tests/support/wall.h"

#include "base/check.h"

#include <stdlib.h>
#include <time.h>

const char *const wall_zones[] = {
    "UTC",
    "Europe/Berlin",
    "America/New_York",    /* behind UTC */
    "Asia/Kolkata",        /* half an hour */
    "Asia/Kathmandu",      /* 15 minutes off, since 1986 */
    "Australia/Lord_Howe", /* half an hour of summer time */
    "America/Sao_Paulo",   /* days without a midnight, and hours twice before one, until 2019 */
    "America/St_Johns",    /* put back over midnight, until 2011 */
    "America/Havana",      /* midnight twice */
    "Pacific/Apia",        /* no 2011-12-30 */
    "Antarctica/Troll",    /* two hours of summer time */
    "Africa/Casablanca",   /* summer time but in Ramadan */
    NULL,
};

const char *wall_any(int64_t roll)
{
    return wall_zones[(size_t)roll % (COUNT_OF(wall_zones) - 1)];
}

void wall_hang(const char *zone)
{
    ASSERT(setenv("TZ", zone, 1) == 0);
    tzset();
}

int64_t wall_offset(int64_t ms)
{
    time_t at = (time_t)(ms / 1000);
    struct tm tm;
    ASSERT(ms >= 0 && localtime_r(&at, &tm) != NULL);
    return tm.tm_gmtoff * INT64_C(1000);
}

int64_t wall_local(int64_t ms)
{
    return ms + wall_offset(ms);
}
