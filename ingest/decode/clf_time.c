#include "ingest/decode/clf_time.h"

/* Offsets of the numbers in "[dd/Mon/yyyy:hh:mm:ss +zzzz]". */
enum { AT_DAY = 1, AT_MONTH = 4, AT_YEAR = 8, AT_HOUR = 13, AT_MINUTE = 16, AT_SIGN = 22, AT_ZONE = 23 };

static int number(const char *p, int digits)
{
    int v = 0;
    for (int i = 0; i < digits; i++)
        v = v * 10 + (p[i] - '0');
    return v;
}

static bool fits(char c, char shape)
{
    switch (shape) {
    case '0':
        return c >= '0' && c <= '9';
    case '+':
        return c == '+' || c == '-';
    case 'M':
        return true; /* month_of() checks it */
    default:
        return c == shape;
    }
}

/* The first byte that differs from the shape; NULL: all match. */
static const char *misfit(const char *p, const char *end)
{
    static const char shape[CLF_TIME_BYTES + 1] = "[00/MMM/0000:00:00:00 +0000]";
    for (int i = 0; i < CLF_TIME_BYTES; i++) {
        if (p + i == end || !fits(p[i], shape[i]))
            return p + i;
    }
    return NULL;
}

static int month_of(const char *p)
{
    static const char names[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    for (int i = 0; i < 12; i++) {
        if (memcmp(names + (size_t)i * 3, p, 3) == 0)
            return i + 1;
    }
    return 0;
}

/* The first number of a well-shaped time that no clock shows; NULL: all are valid. */
static const char *off_the_clock(const char *p)
{
    static const struct {
        int at, max;
    } limits[] = {{AT_HOUR, 23}, {AT_MINUTE, 59}, {CLF_TIME_SECOND, 60}, {AT_ZONE, 23}, {AT_ZONE + 2, 59}};
    if (month_of(p + AT_MONTH) == 0)
        return p + AT_MONTH;
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        if (number(p + limits[i].at, 2) > limits[i].max)
            return p + limits[i].at;
    }
    return NULL;
}

/* The first part of a date that no calendar has, or that is before 1970; NULL: the date is valid. */
static const char *off_the_calendar(const char *p)
{
    int year = number(p + AT_YEAR, 4), day = number(p + AT_DAY, 2);
    if (year < CIVIL_YEAR_MIN)
        return p + AT_YEAR;
    if (day < 1 || day > civil_month_days(year, month_of(p + AT_MONTH)))
        return p + AT_DAY;
    return NULL;
}

static int64_t minute_ms(const char *p)
{
    struct civil civil = {.year = number(p + AT_YEAR, 4),
                          .month = month_of(p + AT_MONTH),
                          .day = number(p + AT_DAY, 2),
                          .hour = number(p + AT_HOUR, 2),
                          .minute = number(p + AT_MINUTE, 2)};
    int64_t zone_ms =
        number(p + AT_ZONE, 2) * (int64_t)HOUR_MS + number(p + AT_ZONE + 2, 2) * (int64_t)MINUTE_MS;
    return civil_to_ms(&civil) - (p[AT_SIGN] == '-' ? -zone_ms : zone_ms);
}

bool clf_time_parse(struct clf_minute minutes[2], const char *p, const char *end, int64_t *at_ms,
                    enum reject_reason *reason, const char **at)
{
    *reason = REJECT_TIME;
    if ((*at = misfit(p, end)) != NULL || (*at = off_the_clock(p)) != NULL)
        return false;
    *reason = REJECT_TIME_RANGE;
    if ((*at = off_the_calendar(p)) != NULL)
        return false;
    int64_t minute = minute_ms(p);
    *at_ms = minute + number(p + CLF_TIME_SECOND, 2) * 1000;
    *at = p + AT_DAY;
    if (*at_ms < 0 || *at_ms >= CIVIL_END_MS)
        return false;
    if (minute >= 0 && minute < CIVIL_END_MS - MINUTE_MS) { /* all its seconds, 60 too, are in range */
        minutes[1] = minutes[0];
        minutes[0].start_ms = minute;
        memcpy(minutes[0].text + CLF_NOBODY_BYTES, p, CLF_TIME_BYTES);
    }
    return true;
}
