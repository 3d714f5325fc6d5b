/* clf_time.h - parses the time of a log line, "[10/Oct/2000:13:55:36 -0700]"; it caches the last two minutes.
 *
 * Takes  : any zone from -2359 to +2359; second 60 is the first of the next minute; dates of 1970 to 9999.
 * Cost   : a time in a cached minute and zone takes four compares and two digits.
 */
#pragma once

#include "base/civil.h"
#include "base/load.h"
#include "ingest/reject.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Most lines have this before the time: no logname, no user. */
#define CLF_NOBODY       "- - "
#define CLF_NOBODY_BYTES 4

/* A cached minute. */
struct clf_minute {
    char text[32];    /* CLF_NOBODY and a time as a line wrote it; comparisons skip the second */
    int64_t start_ms; /* instant of its second 0 */
};

#define CLF_TIME_BYTES  28
#define CLF_TIME_SECOND 19 /* offset of the second's two digits */

/* Is the time at `p` in this minute, and written alike? Pre: CLF_TIME_BYTES bytes may be read. */
static inline bool clf_time_is_in(const struct clf_minute *m, const char *p, int64_t *at_ms)
{
    const char *t = m->text + CLF_NOBODY_BYTES;
    /* bytes 19 and 20, the second, are in the middle of the third word: the mask suits both byte orders */
    uint64_t third = (load64(p + 16) ^ load64(t + 16)) & ~UINT64_C(0x000000FFFF000000);
    uint64_t differ = (load64(p) ^ load64(t)) | (load64(p + 8) ^ load64(t + 8));
    unsigned tens = (unsigned char)p[CLF_TIME_SECOND] - '0',
             ones = (unsigned char)p[CLF_TIME_SECOND + 1] - '0';
    unsigned second = tens * 10 + ones;
    if ((differ | third | (load32(p + 24) ^ load32(t + 24))) != 0 || tens > 6 || ones > 9 || second > 60)
        return false;
    *at_ms = m->start_ms + second * 1000;
    return true;
}

static inline bool clf_time_cached(const struct clf_minute minutes[2], const char *p, int64_t *at_ms)
{
    return clf_time_is_in(&minutes[0], p, at_ms) || clf_time_is_in(&minutes[1], p, at_ms);
}

/* Parses without the cache, and fills it. On false *reason says why and *at is the byte that does not fit. */
bool clf_time_parse(struct clf_minute minutes[2], const char *p, const char *end, int64_t *at_ms,
                    enum reject_reason *reason, const char **at);
