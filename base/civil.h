/* civil.h - instants (int64 ms since 1970-01-01T00:00:00Z), calendar dates, and resolutions of time buckets.
 *
 * Range  : years 1970 to 9999, proleptic Gregorian, UTC; no leap seconds (second 60 counts as the
 *          first of the next minute).
 * Source : days_from_civil as in Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms".
 */
#pragma once

#include "base/slice.h"

#include <stdbool.h>
#include <stdint.h>

#define CIVIL_YEAR_MIN 1970
#define CIVIL_YEAR_MAX 9999
#define CIVIL_END_MS   253402300800000 /* 10000-01-01T00:00:00Z */
#define SECOND_MS      1000
#define MINUTE_MS      60000
#define HOUR_MS        3600000
#define DAY_MS         86400000

struct civil {
    int year, month, day; /* month 1..12, day 1..31 */
    int hour, minute, second, ms;
};

/* Resolution: the length of a time bucket; months and years vary in length. A year and a
 * week are only lengths of MongoDB documents; queries never read them as buckets. */
enum span {
    SPAN_SECOND,
    SPAN_MINUTE,
    SPAN_HOUR,
    SPAN_DAY,
    SPAN_MONTH,
    SPAN_COUNT, /* number of resolutions that time buckets have */
    SPAN_YEAR = SPAN_COUNT,
    SPAN_WEEK, /* outside the order of lengths above; see civil_week_floor() */
    SPAN_END
};

/* The days on which a week may begin. */
enum weekday {
    WEEKDAY_MONDAY,
    WEEKDAY_TUESDAY,
    WEEKDAY_WEDNESDAY,
    WEEKDAY_THURSDAY,
    WEEKDAY_FRIDAY,
    WEEKDAY_SATURDAY,
    WEEKDAY_SUNDAY
};
#define WEEK_MS (7 * (int64_t)DAY_MS)

/* Days since 1970-01-01 of a valid date. */
int64_t civil_days(int year, int month, int day);
int civil_month_days(int year, int month);
int64_t civil_to_ms(const struct civil *c);
struct civil civil_from_ms(int64_t ms);

const char *span_name(enum span span);
bool span_parse(struct slice text, enum span *span);
/* The start of the bucket that holds `ms`. */
int64_t span_floor(enum span span, int64_t ms);
/* The start of the bucket after the one that begins at `start_ms`. */
int64_t span_next(enum span span, int64_t start_ms);
/* The number of months since 1970-01. */
int64_t civil_month_index(int64_t ms);
int64_t civil_month_start(int64_t month_index);

/* "monday" and so on, NULL at the end. */
extern const char *const civil_weekdays[];
/* The start of the week that holds `ms`, if weeks begin on the day `first`. */
int64_t civil_week_floor(enum weekday first, int64_t ms);

/* "2015-05-17T00:00:00Z"; buf of 21 bytes. */
#define CIVIL_ISO_BYTES 21
char *civil_iso(int64_t ms, char buf[CIVIL_ISO_BYTES]);
/* Parses a time as users write it: 2015-05-17, 2015-05, 2015-05-17T10:05, …:03, …:03.250, with Z or
 * +02:00 (UTC if absent); epoch seconds (10 digits) or ms (13); `now`, `today`, `yesterday` (which are
 * midnights); or back from now: -90s, -15m, -1h, -7d, -2w. */
bool civil_parse(struct slice text, int64_t now_ms, int64_t *ms);
/* As civil_parse(). *is_local: the text has no offset. *ms was read as UTC then; the caller may
 * read it as the local time of a zone, whose clock is `offset_ms` ahead of UTC now. */
bool civil_parse_local(struct slice text, int64_t now_ms, int64_t offset_ms, int64_t *ms, bool *is_local);
