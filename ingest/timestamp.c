#include "ingest/timestamp.h"

#include "base/check.h"
#include "base/civil.h"
#include "ingest/decimal.h"

#define SECONDS_MAX ((int64_t)100000000000) /* seconds until the year 5138; larger numbers are milliseconds */
#define TEXT_MIN    16                      /* "2010-10-10T14:17" */

#define MS_MAX            ((int64_t)100000000000000) /* larger numbers are finer */
#define NANOSECOND_DIGITS 18                         /* and more; fewer are microseconds */

static unsigned digit(const char *p)
{
    return (unsigned char)*p - '0';
}

/* The value of two digits; above 99: they are no digits. */
static unsigned two_digits(const char *p)
{
    unsigned tens = digit(p), ones = digit(p + 1);
    return tens > 9 || ones > 9 ? 100 : tens * 10 + ones;
}

/* Takes ":22" and ".25"; each may be missing. */
static bool take_seconds(const char **at, const char *end, struct civil *c)
{
    const char *p = *at;
    if (p == end || *p != ':')
        return true;
    if (end - p < 3 || (c->second = (int)two_digits(p + 1)) > 60)
        return false;
    p += 3;
    if (end - p >= 2 && (*p == '.' || *p == ',') && digit(p + 1) <= 9) {
        int weight = 100;
        for (p++; p < end && digit(p) <= 9; p++, weight /= 10)
            c->ms += (int)digit(p) * weight;
    }
    *at = p;
    return true;
}

static bool take_zone(const char **at, const char *end, int64_t *zone_ms)
{
    const char *p = *at;
    *zone_ms = 0;
    if (p == end || (*p != '+' && *p != '-')) {
        *at = p + (p < end && (*p | 0x20) == 'z');
        return true;
    }
    bool is_west = *p++ == '-';
    unsigned hours = end - p >= 2 ? two_digits(p) : 100, minutes = 0;
    p += 2;
    if (hours <= 23 && p < end && (*p == ':' || digit(p) <= 9)) {
        p += *p == ':';
        minutes = end - p >= 2 ? two_digits(p) : 100;
        p += 2;
    }
    if (hours > 23 || minutes > 59)
        return false;
    *zone_ms = hours * (int64_t)HOUR_MS + minutes * (int64_t)MINUTE_MS;
    *zone_ms = is_west ? -*zone_ms : *zone_ms;
    *at = p;
    return true;
}

static bool is_shaped(const char *p)
{
    return p[4] == '-' && p[7] == '-' && ((p[10] | 0x20) == 't' || p[10] == ' ') && p[13] == ':';
}

size_t timestamp_take(struct slice text, int64_t *at_ms, enum reject_reason *reason)
{
    const char *p = text.ptr, *end = slice_end(text);
    *reason = REJECT_TIME;
    if (text.len < TEXT_MIN || !is_shaped(p))
        return 0;
    unsigned century = two_digits(p), year = two_digits(p + 2), month = two_digits(p + 5);
    unsigned day = two_digits(p + 8), hour = two_digits(p + 11), minute = two_digits(p + 14);
    struct civil c = {(int)(century * 100 + year), (int)month, (int)day, (int)hour, (int)minute, 0, 0};
    int64_t zone_ms;
    if (century > 99 || year > 99 || month > 99 || day > 99)
        return 0;
    p += TEXT_MIN;
    if (hour > 23 || minute > 59 || !take_seconds(&p, end, &c) || !take_zone(&p, end, &zone_ms))
        return 0;
    *reason = REJECT_TIME_RANGE;
    if (c.year < CIVIL_YEAR_MIN || month < 1 || month > 12 || day < 1 ||
        c.day > civil_month_days(c.year, c.month))
        return 0;
    *at_ms = civil_to_ms(&c) - zone_ms;
    return *at_ms >= 0 && *at_ms < CIVIL_END_MS ? (size_t)(p - text.ptr) : 0;
}

/* The digits of a number's milliseconds, if it is one of micro- or nanoseconds; otherwise an empty text. */
static struct slice finer_than_ms(struct slice text)
{
    size_t digits = 0;
    while (digits < text.len && digit(text.ptr + digits) <= 9)
        digits++;
    bool has_exponent = memchr(text.ptr, 'e', text.len) != NULL || memchr(text.ptr, 'E', text.len) != NULL;
    if (digits < NANOSECOND_DIGITS - 6 || has_exponent)
        return slice_of(text.ptr, 0);
    return slice_of(text.ptr, digits - (digits < NANOSECOND_DIGITS ? 3 : 6));
}

bool timestamp_parse_number(struct slice text, int64_t *at_ms, enum reject_reason *reason)
{
    struct decimal d; /* thousandths of a second or of a millisecond */
    enum decimal_result result = decimal_scan(text, 3, MS_MAX * 1000 - 1, &d);
    struct slice finer = result == DECIMAL_RANGE ? finer_than_ms(text) : slice_of("", 0);
    *reason = result == DECIMAL_NONE ? REJECT_TIME : REJECT_TIME_RANGE;
    if (finer.len > 0)
        return decimal_integer(finer, CIVIL_END_MS - 1, at_ms) && *at_ms < CIVIL_END_MS;
    if (result != DECIMAL_OK || (d.is_negative && d.magnitude > 0))
        return false;
    *at_ms = d.magnitude > SECONDS_MAX * 1000 ? d.magnitude / 1000 : d.magnitude;
    return true;
}

bool timestamp_parse(struct slice text, int64_t *at_ms, enum reject_reason *reason)
{
    if (text.len < TEXT_MIN || text.ptr[4] != '-')
        return timestamp_parse_number(text, at_ms, reason);
    size_t len = timestamp_take(text, at_ms, reason);
    if (len > 0 && len < text.len)
        *reason = REJECT_TIME;
    return len == text.len;
}

/* Takes ":22.5" of ":22.5+02:00" behind the minute: returns its milliseconds, and the zone's start in *zone.
 * -1: it has another form. */
static int take_milliseconds(const char *p, const char *end, const char **zone)
{
    unsigned second = end - p >= 3 && *p == ':' ? two_digits(p + 1) : 100;
    int ms = (int)second * 1000;
    p += 3;
    if (second > 60)
        return -1;
    if (end - p >= 2 && *p == '.' && digit(p + 1) <= 9) {
        static const short weights[] = {100, 10, 1};
        const char *first = ++p;
        for (; p < end && digit(p) <= 9; p++)
            ms += p - first < 3 ? (int)digit(p) * weights[p - first] : 0;
    }
    *zone = p;
    return ms;
}

static void keep_minute(struct timestamp_minute *m, struct slice text, int64_t at_ms)
{
    const char *zone = NULL, *end = slice_end(text);
    int ms = take_milliseconds(text.ptr + TEXT_MIN, end, &zone);
    if (ms < 0 || end - zone > TIMESTAMP_ZONE_MAX || at_ms - ms > CIVIL_END_MS - 2 * MINUTE_MS)
        return;
    memcpy(m->text, text.ptr, sizeof m->text);
    m->zone_len = (size_t)(end - zone);
    memcpy(m->zone, zone, m->zone_len);
    m->start_ms = at_ms - ms;
}

bool timestamp_parse_near(struct timestamp_minute *m, struct slice text, int64_t *at_ms,
                          enum reject_reason *reason)
{
    const char *zone = NULL, *end = slice_end(text);
    if (LIKELY(text.len > TEXT_MIN && memcmp(text.ptr, m->text, TEXT_MIN) == 0)) {
        int ms = take_milliseconds(text.ptr + TEXT_MIN, end, &zone);
        if (ms >= 0 && (size_t)(end - zone) == m->zone_len && memcmp(zone, m->zone, m->zone_len) == 0) {
            *at_ms = m->start_ms + ms;
            return true;
        }
    }
    if (!timestamp_parse(text, at_ms, reason))
        return false;
    if (text.len > TEXT_MIN && text.ptr[4] == '-')
        keep_minute(m, text, *at_ms);
    return true;
}
