#include "base/civil.h"
#include "base/units.h"

/* `s` is a cursor over the remaining text; every take_* moves it only on success. */
static bool take_digits(struct slice *s, size_t count, int *value)
{
    struct slice digits = slice_of(s->ptr, count);
    int64_t number;
    if (s->len < count || !units_take_digits(&digits, &number) || digits.len > 0)
        return false;
    *value = (int)number;
    *s = slice_of(s->ptr + count, s->len - count);
    return true;
}

static bool take_char(struct slice *s, char c)
{
    if (s->len == 0 || s->ptr[0] != c)
        return false;
    *s = slice_of(s->ptr + 1, s->len - 1);
    return true;
}

static bool parse_back(struct slice s, int64_t now_ms, int64_t *ms)
{
    static const struct unit units[] = {{"s", SECOND_MS}, {"m", MINUTE_MS}, {"h", HOUR_MS},
                                        {"d", DAY_MS},    {"w", WEEK_MS},   {NULL, 0}};
    int64_t back;
    if (!take_char(&s, '-') || !units_parse(units, s, &back))
        return false;
    *ms = now_ms - back;
    return *ms >= 0;
}

static bool parse_epoch(struct slice s, int64_t *ms)
{
    size_t digits = s.len;
    int64_t value;
    if ((digits != 10 && digits != 13) || !units_take_digits(&s, &value) || s.len != 0)
        return false;
    *ms = digits == 10 ? value * 1000 : value;
    return true;
}

static bool take_zone(struct slice *s, int64_t *offset_ms)
{
    *offset_ms = 0;
    if (s->len == 0 || take_char(s, 'Z'))
        return true;
    int64_t sign = s->ptr[0] == '-' ? -1 : 1;
    int hours, minutes;
    if (!take_char(s, '+') && !take_char(s, '-'))
        return false;
    if (!take_digits(s, 2, &hours))
        return false;
    take_char(s, ':');
    if (!take_digits(s, 2, &minutes) || hours > 23 || minutes > 59)
        return false;
    *offset_ms = sign * (hours * (int64_t)HOUR_MS + minutes * (int64_t)MINUTE_MS);
    return true;
}

static bool take_time(struct slice *s, struct civil *c)
{
    if (!take_digits(s, 2, &c->hour) || !take_char(s, ':') || !take_digits(s, 2, &c->minute))
        return false;
    if (take_char(s, ':')) {
        if (!take_digits(s, 2, &c->second))
            return false;
        if (take_char(s, '.') && !take_digits(s, 3, &c->ms))
            return false;
    }
    return c->hour <= 23 && c->minute <= 59 && c->second <= 60;
}

/* "2015-05-17", or a month: "2015-05". */
static bool take_date(struct slice *s, struct civil *c, bool *has_day)
{
    c->day = 1;
    if (!take_digits(s, 4, &c->year) || !take_char(s, '-') || !take_digits(s, 2, &c->month))
        return false;
    *has_day = take_char(s, '-');
    return (!*has_day || take_digits(s, 2, &c->day)) && c->year >= CIVIL_YEAR_MIN && c->month >= 1 &&
           c->month <= 12 && c->day >= 1 && c->day <= civil_month_days(c->year, c->month);
}

static bool parse_date(struct slice s, int64_t *ms, bool *is_local)
{
    struct civil c = {0};
    int64_t offset_ms;
    bool has_day;
    if (!take_date(&s, &c, &has_day))
        return false;
    if (has_day && (take_char(&s, 'T') || take_char(&s, ' ')) && !take_time(&s, &c))
        return false;
    *is_local = s.len == 0;
    if (!take_zone(&s, &offset_ms) || s.len != 0)
        return false;
    *ms = civil_to_ms(&c) - offset_ms;
    return *ms >= 0 && *ms <= CIVIL_END_MS;
}

/* Local midnight. */
static bool parse_day(struct slice s, int64_t local_now_ms, int64_t *ms, bool *is_local)
{
    int64_t today_ms = local_now_ms - local_now_ms % DAY_MS;
    *is_local = slice_is(s, "today") || slice_is(s, "yesterday");
    *ms = slice_is(s, "yesterday") ? today_ms - DAY_MS : today_ms;
    return *is_local && *ms >= 0;
}

bool civil_parse_local(struct slice text, int64_t now_ms, int64_t offset_ms, int64_t *ms, bool *is_local)
{
    *is_local = false;
    if (slice_is(text, "now")) {
        *ms = now_ms;
        return true;
    }
    return parse_back(text, now_ms, ms) || parse_epoch(text, ms) ||
           parse_day(text, now_ms + offset_ms, ms, is_local) || parse_date(text, ms, is_local);
}

bool civil_parse(struct slice text, int64_t now_ms, int64_t *ms)
{
    bool is_local;
    return civil_parse_local(text, now_ms, 0, ms, &is_local);
}
