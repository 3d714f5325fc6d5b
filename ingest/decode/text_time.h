/* text_time.h - parses an instant that stands by itself, as the text of a member, a column or a group.
 *
 *   2010-10-10T14:17:22Z, 1286720242    all of timestamp.h
 *   10/Oct/2000:13:55:36 -0700          as Apache and nginx write it, in brackets or not
 *   10/Oct/2000:13:55:36.123            as HAProxy does (UTC)
 *   2000/10/10 13:55:36                 as nginx's error log does (UTC)
 *
 * Cost    : a time in a cached minute takes a few compares.
 */
#pragma once

#include "ingest/decode/clf_time.h"
#include "ingest/timestamp.h"

/* All zeros at first. */
struct text_time {
    struct timestamp_minute minute;
    struct clf_minute clf_minutes[2];
};

/* False: *reason is REJECT_TIME (it is no time) or REJECT_TIME_RANGE. */
bool text_time_parse(struct text_time *tt, struct slice text, int64_t *at_ms, enum reject_reason *reason);
