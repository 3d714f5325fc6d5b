/* step.h - the steps of time of an answer, in a time zone: 5m, hour, 6h, day, 2w, month, year. Queries, their
 * hints and tables use it. Only step_parse() can fail.
 *
 * Starts : steps start where people expect them, by the zone's clock and calendar:
 *            up to an hour, if an hour has a whole number of them: whenever the clock shows a multiple of
 *              the step; a repeated hour counts as two, and no step begins in a skipped hour
 *            longer, if a day has a whole number of them: from midnight on; when the clocks change, one step
 *              is longer or shorter
 *            days from midnight to midnight: 23, 24 or 25 hours; weeks from Monday (ISO 8601), or from
 *              `week_start`; months; years
 *            several days, weeks, months or years: multiples, counted from 1970-01-01, from its week, from
 *              1970-01, from 1970: so 3mo are quarters and 10y are decades
 *            others (7m, 5h, 36h): counted in elapsed time from 1970-01-01T00:00:00Z, whatever the zone
 *          If the clock skips a start, the step starts at the instant of the change. If a start comes twice,
 *          the first one counts.
 * Range  : instants from 1970 on; the first step may begin before 1970.
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
    enum weekday week_start; /* first day of a week, for steps of weeks */
};

#define STEP_COUNT_MAX 99999
#define STEP_MAX_MS    (INT64_C(31556952000) * 1000) /* 1000 years: the first step may begin before 1970 */

/* Reads "hour", or "6h": a number and s, m, h, d, w, mo or y, up to STEP_MAX_MS. Weeks begin on Monday. */
bool step_parse(struct slice text, struct step *step);
#define STEP_NAME_BYTES 16
const char *step_name(const struct step *step, char buf[STEP_NAME_BYTES]);
/* The names of single units; NULL at the end. */
extern const char *const step_units[];

/* The length of a step in ms: exact up to hours, else an average. */
int64_t step_ms(const struct step *step);
/* The start of the step that holds `ms`; the end of the step that begins at `start_ms`. */
int64_t step_floor(const struct step *step, const struct zone *z, int64_t ms);
int64_t step_next(const struct step *step, const struct zone *z, int64_t start_ms);
