#include "base/civil.h"

#include "base/check.h"

#include <stdio.h>

#define MONTHS 12 /* in a year */

static const char *const span_names[] = {"second", "minute", "hour", "day", "month", "year", "week", NULL};
_Static_assert(sizeof span_names / sizeof *span_names == SPAN_END + 1, "a name for each span");

int64_t civil_days(int year, int month, int day)
{
    int y = year - (month <= 2);
    int era = (y >= 0 ? y : y - 399) / 400;
    int year_of_era = y - era * 400;
    int day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    int day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    return (int64_t)era * 146097 + day_of_era - 719468;
}

int civil_month_days(int year, int month)
{
    static const int days[12] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    ASSERT(month >= 1 && month <= 12);
    return month == 2 && leap ? 29 : days[month - 1];
}

int64_t civil_to_ms(const struct civil *c)
{
    int64_t days = civil_days(c->year, c->month, c->day);
    return days * DAY_MS + (int64_t)c->hour * HOUR_MS + (int64_t)c->minute * MINUTE_MS +
           (int64_t)c->second * SECOND_MS + c->ms;
}

static int64_t floor_to(int64_t ms, int64_t unit)
{
    int64_t rest = ms % unit;
    return ms - (rest < 0 ? rest + unit : rest);
}

struct civil civil_from_ms(int64_t ms)
{
    int64_t midnight = floor_to(ms, DAY_MS);
    int64_t z = midnight / DAY_MS + 719468;
    int64_t era = (z >= 0 ? z : z - 146096) / 146097;
    int doe = (int)(z - era * 146097);
    int yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
    int doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    int mp = (5 * doy + 2) / 153;
    int month = mp < 10 ? mp + 3 : mp - 9;
    int rest = (int)(ms - midnight);
    return (struct civil){
        .year = (int)(yoe + era * 400) + (month <= 2),
        .month = month,
        .day = doy - (153 * mp + 2) / 5 + 1,
        .hour = rest / HOUR_MS,
        .minute = rest % HOUR_MS / MINUTE_MS,
        .second = rest % MINUTE_MS / SECOND_MS,
        .ms = rest % SECOND_MS,
    };
}

const char *span_name(enum span span)
{
    ASSERT((unsigned)span < SPAN_END);
    return span_names[span];
}

bool span_parse(struct slice text, enum span *span)
{
    int i = slice_find(text, span_names);
    if (i < 0 || i >= SPAN_COUNT)
        return false;
    *span = (enum span)i;
    return true;
}

int64_t civil_month_index(int64_t ms)
{
    struct civil c = civil_from_ms(ms);
    return (int64_t)(c.year - 1970) * 12 + c.month - 1;
}

int64_t civil_month_start(int64_t month_index)
{
    return civil_days((int)(1970 + month_index / 12), (int)(month_index % 12) + 1, 1) * DAY_MS;
}

int64_t span_floor(enum span span, int64_t ms)
{
    switch (span) {
    case SPAN_SECOND:
        return floor_to(ms, SECOND_MS);
    case SPAN_MINUTE:
        return floor_to(ms, MINUTE_MS);
    case SPAN_HOUR:
        return floor_to(ms, HOUR_MS);
    case SPAN_DAY:
        return floor_to(ms, DAY_MS);
    case SPAN_MONTH:
        return civil_month_start(civil_month_index(ms));
    default:
        ASSERT(span == SPAN_YEAR);
        return civil_month_start(civil_month_index(ms) / MONTHS * MONTHS);
    }
}

int64_t span_next(enum span span, int64_t start_ms)
{
    static const int64_t lengths[SPAN_END] = {SECOND_MS, MINUTE_MS, HOUR_MS, DAY_MS, [SPAN_WEEK] = WEEK_MS};
    if (span == SPAN_MONTH || span == SPAN_YEAR)
        return civil_month_start(civil_month_index(start_ms) + (span == SPAN_YEAR ? MONTHS : 1));
    ASSERT((unsigned)span < SPAN_END);
    return start_ms + lengths[span];
}

const char *const civil_weekdays[] = {"monday", "tuesday",  "wednesday", "thursday",
                                      "friday", "saturday", "sunday",    NULL};

int64_t civil_week_floor(enum weekday first, int64_t ms)
{
    int64_t origin_ms = ((int64_t)first - WEEKDAY_THURSDAY) * DAY_MS; /* 1970-01-01 was a Thursday */
    return floor_to(ms - origin_ms, WEEK_MS) + origin_ms;
}

char *civil_iso(int64_t ms, char buf[CIVIL_ISO_BYTES])
{
    struct civil c = civil_from_ms(ms);
    ASSERT(c.year >= 0 && c.year <= CIVIL_YEAR_MAX + 1);
    snprintf(buf, CIVIL_ISO_BYTES, "%04u-%02u-%02uT%02u:%02u:%02uZ", (unsigned)c.year % 10000u,
             (unsigned)c.month % 100u, (unsigned)c.day % 100u, (unsigned)c.hour % 100u,
             (unsigned)c.minute % 100u, (unsigned)c.second % 100u);
    return buf;
}
