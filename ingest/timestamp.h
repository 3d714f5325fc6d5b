/* timestamp.h - parses instants as JSON and syslog write them.
 *
 *   2010-10-10T14:17:22Z     RFC 3339; also a space or t for T, a comma for the point, any number of decimals
 *   2010-10-10T14:17+0200    ISO 8601: without seconds, zones as +02 and +0200, or no zone (UTC)
 *   1286720242.25            seconds since 1970-01-01T00:00:00Z, as a number or as digits in a string
 *   1286720242250            milliseconds, if above 10^11, as a number or as digits in a string
 *   1286720242250123         microseconds, from 10^14 on
 *   1286720242250123456      nanoseconds, from 10^17 on
 *
 * Range: dates of 1970 to 9999; second 60 is the first of the next minute; fractions of a millisecond are cut
 *        off.
 */
#pragma once

#include "base/slice.h"
#include "ingest/reject.h"

#include <stdint.h>

/* False: *reason is REJECT_TIME (it is no time) or REJECT_TIME_RANGE. */
bool timestamp_parse(struct slice text, int64_t *at_ms, enum reject_reason *reason);
/* As timestamp_parse(), for a number as JSON writes it. */
bool timestamp_parse_number(struct slice text, int64_t *at_ms, enum reject_reason *reason);

#define TIMESTAMP_ZONE_MAX 6 /* bytes of "+02:00" */

/* A cached minute, as a text wrote it with its zone; all zeros: none yet. */
struct timestamp_minute {
    char text[16]; /* "2010-10-10T14:17" */
    char zone[TIMESTAMP_ZONE_MAX];
    size_t zone_len;
    int64_t start_ms;
};

/* As timestamp_parse(), at a quarter of the cost for a time in the cached minute. */
bool timestamp_parse_near(struct timestamp_minute *m, struct slice text, int64_t *at_ms,
                          enum reject_reason *reason);
/* Parses a date and time at the beginning of `text`; returns its length. 0: there is none, or it is out of
 * range. */
size_t timestamp_take(struct slice text, int64_t *at_ms, enum reject_reason *reason);
