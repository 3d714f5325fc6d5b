/* step.h - the steps of time of an answer: 5m, hour, 6h, day, 2w, month, year, of a time zone.
 *
 * Starts : where people expect them, of the zone's clock and calendar:
 *            up to an hour, if an hour has a whole number of them: whenever the clock shows a multiple of
 *              it; an hour that comes twice is two, and none begins while the clock is put forward
 *            longer, if a day has a whole number of them: from midnight on; when the clocks change, one of
 *              them is longer or shorter
 *            days from midnight to midnight: 23, 24 or 25 hours; weeks from Monday (ISO 8601), or from
 *              `week_start`; months; years
 *            several days, weeks, months or years: each that is a multiple, counted from 1970-01-01, from
 *              the week of it, from 1970-01, from 1970: so 3mo are quarters and 10y are decades
 *            others (7m, 5h, 36h): counted in elapsed time from 1970-01-01T00:00:00Z, whatever the zone
 *          A start that the clock skips is the instant of the change, one that comes twice the first of
 *          both.
 * Range  : instants from 1970 on, but the first step may begin before that.
 */
#pragma once

#include "base/zone.h"

enum step_unit {
    STEP_SECOND,
    STEP_MINUTE,
    STEP_HOUR,
    STEP_DAY,
    STEP_WEEK,
    STEP_MONTH,
    STEP_YEAR,
    STEP_UNIT_COUNT
};

struct step {
    enum step_unit unit;
    int64_t count;           /* 1 to STEP_COUNT_MAX */
    enum weekday week_start; /* of steps of weeks */
};

#define STEP_COUNT_MAX 99999
#define STEP_MAX_MS    (INT64_C(31556952000) * 1000) /* a thousand years: the first may begin before 1970 */

/* "hour", or "6h": a number and s, m, h, d, w, mo or y, up to STEP_MAX_MS. Weeks begin
 * on Monday. */
bool step_parse(struct slice text, struct step *step);
#define STEP_NAME_BYTES 16
const char *step_name(const struct step *step, char buf[STEP_NAME_BYTES]);
/* The names of single units; NULL at the end. */
extern const char *const step_units[];

/* About how long they are; exactly, up to hours. */
int64_t step_ms(const struct step *step);
/* The start of the step that holds `ms`, and of the one after that which begins at `start_ms`. */
int64_t step_floor(const struct step *step, const struct zone *z, int64_t ms);
int64_t step_next(const struct step *step, const struct zone *z, int64_t start_ms);
