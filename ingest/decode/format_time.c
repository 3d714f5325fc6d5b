#include "ingest/decode/format_time.h"

#include "base/check.h"

#define LOCAL_BYTES 26 /* 10/Oct/2000:13:55:36 -0700 */
#define ISO_BYTES   25 /* 2000-10-10T13:55:36-07:00 */

void format_clock_init(struct format_clock *k)
{
    *k = (struct format_clock){.minutes = {{CLF_NOBODY, 0}, {CLF_NOBODY, 0}}};
}

void format_clock_reset(struct format_clock *k)
{
    k->civil = (struct civil){.year = 1970, .month = 1, .day = 1};
    k->zone_ms = 0;
    k->fraction_ms = 0;
    k->start = NULL;
}

/* A part being read. */
struct part {
    const char *p, *end;
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Takes just so many digits; of the first ones, spaces are zeros if `is_padded`. */
static bool take_digits(struct part *t, int digits, bool is_padded, int *value)
{
    *value = 0;
    for (; digits > 0; digits--, t->p++) {
        if (t->p == t->end || !(is_digit(*t->p) || (is_padded && digits > 1 && *t->p == ' ')))
            return false;
        *value = *value * 10 + (is_digit(*t->p) ? *t->p - '0' : 0);
    }
    return true;
}

static bool take_number(struct part *t, int digits, int max, int *value)
{
    struct part from = *t;
    if (!take_digits(t, digits, false, value))
        return false;
    if (*value <= max)
        return true;
    *t = from;
    return false;
}

static bool take_byte(struct part *t, char c)
{
    if (t->p == t->end || *t->p != c)
        return false;
    t->p++;
    return true;
}

/* Takes the first three letters of one of the names; *index counts from 0. */
static bool take_name(struct part *t, const char *names, int *index)
{
    for (*index = 0; *names != '\0' && t->end - t->p >= 3; names += 3, (*index)++) {
        if (memcmp(t->p, names, 3) == 0) {
            t->p += 3;
            return true;
        }
    }
    return false;
}

static bool take_zone(struct part *t, int64_t *zone_ms)
{
    bool is_west = t->p < t->end && *t->p == '-';
    int hours, minutes;
    if (!(is_west || (t->p < t->end && *t->p == '+')))
        return false;
    t->p++;
    if (!take_number(t, 2, 23, &hours) || !take_number(t, 2, 59, &minutes))
        return false;
    *zone_ms = (hours * (int64_t)HOUR_MS + minutes * (int64_t)MINUTE_MS) * (is_west ? -1 : 1);
    return true;
}

static bool take_short_year(struct part *t, int *year)
{
    if (!take_number(t, 2, 99, year))
        return false;
    *year += *year < 69 ? 2000 : 1900; /* as POSIX has it */
    return true;
}

static bool take_clock(struct part *t, struct civil *c, bool with_second)
{
    return take_number(t, 2, 23, &c->hour) && take_byte(t, ':') && take_number(t, 2, 59, &c->minute) &&
           (!with_second || (take_byte(t, ':') && take_number(t, 2, 60, &c->second)));
}

/* Takes what strftime()'s %`what` writes. */
static bool take_conversion(struct part *t, char what, struct civil *c, int64_t *zone_ms)
{
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec", days[] = "SunMonTueWedThuFriSat";
    int index;
    switch (what) {
    case 'Y':
        return take_number(t, 4, 9999, &c->year);
    case 'y':
        return take_short_year(t, &c->year);
    case 'm':
        return take_number(t, 2, 12, &c->month);
    case 'b':
    case 'h':
        return take_name(t, months, &index) && (c->month = index + 1) > 0;
    case 'd':
        return take_number(t, 2, 31, &c->day);
    case 'e':
        return take_digits(t, 2, true, &c->day);
    case 'a':
        return take_name(t, days, &index);
    case 'H':
        return take_number(t, 2, 23, &c->hour);
    case 'M':
        return take_number(t, 2, 59, &c->minute);
    case 'S':
        return take_number(t, 2, 60, &c->second);
    case 'T':
    case 'R':
        return take_clock(t, c, what == 'T');
    case 'F':
        return take_number(t, 4, 9999, &c->year) && take_byte(t, '-') && take_number(t, 2, 12, &c->month) &&
               take_byte(t, '-') && take_number(t, 2, 31, &c->day);
    case 'D':
        return take_number(t, 2, 12, &c->month) && take_byte(t, '/') && take_number(t, 2, 31, &c->day) &&
               take_byte(t, '/') && take_short_year(t, &c->year);
    case 'z':
        return take_zone(t, zone_ms);
    default:
        ASSERT(what == '%');
        return take_byte(t, what);
    }
}

static bool take_spec(struct format_clock *k, struct part *t, const char *spec, const char *spec_end)
{
    if (k->start == NULL)
        k->start = t->p;
    for (; spec < spec_end; spec++) {
        bool good = *spec == '%' ? take_conversion(t, *++spec, &k->civil, &k->zone_ms) : take_byte(t, *spec);
        if (!good)
            return false;
    }
    return true;
}

/* Takes an epoch in `unit` milliseconds, or in fractions of one. */
static bool take_epoch(struct part *t, int unit, int64_t *ms)
{
    const char *from = t->p;
    int64_t value = 0;
    for (; t->p < t->end && is_digit(*t->p); t->p++) {
        value = value * 10 + (*t->p - '0');
        if (value > CIVIL_END_MS * 1000)
            return false;
    }
    if (t->p == from)
        return false;
    *ms = unit > 0 ? value : value / -unit;
    if (unit != 1000)
        return *ms < CIVIL_END_MS;
    if (value >= CIVIL_END_MS / 1000)
        return false;
    *ms = value * 1000;
    return true;
}

/* Takes ".250" behind the seconds of nginx's $msec. */
static void take_decimals(struct part *t, int64_t *ms)
{
    int weight = 100;
    if (t->end - t->p < 2 || *t->p != '.' || !is_digit(t->p[1]))
        return;
    for (t->p++; t->p < t->end && is_digit(*t->p); t->p++, weight /= 10)
        *ms += (*t->p - '0') * weight;
}

/* Takes a CLF time without its brackets. */
static bool take_local(struct format_clock *k, struct part *t, int64_t *ms, enum reject_reason *reason)
{
    char whole[CLF_TIME_BYTES] = "[";
    size_t len = t->end - t->p < LOCAL_BYTES ? (size_t)(t->end - t->p) : LOCAL_BYTES;
    const char *at;
    memcpy(whole + 1, t->p, len);
    whole[len + 1] = ']';
    bool good = len == LOCAL_BYTES && clf_time_cached(k->minutes, whole, ms);
    if (!good && !clf_time_parse(k->minutes, whole, whole + len + 2, ms, reason, &at)) {
        size_t column = (size_t)(at - whole) - 1;
        t->p += column < len ? column : len;
        return false;
    }
    t->p += LOCAL_BYTES;
    return true;
}

static bool take_iso(struct format_clock *k, struct part *t, int64_t *ms, enum reject_reason *reason)
{
    if (t->end - t->p < ISO_BYTES || !timestamp_parse_near(&k->iso, slice_of(t->p, ISO_BYTES), ms, reason))
        return false;
    t->p += ISO_BYTES;
    return true;
}

static bool take_fraction(struct format_clock *k, struct part *t, int digits, bool is_time)
{
    int value;
    if (!take_digits(t, digits, false, &value))
        return false;
    if (is_time)
        k->fraction_ms = digits == 3 ? value : value / 1000;
    return true;
}

const char *format_clock_take(struct format_clock *k, const struct format *f, const struct format_op *op,
                              const char *p, const char *end, enum reject_reason *reason, const char **at)
{
    struct part t = {p, end};
    int64_t ms = 0;
    bool good;
    *reason = REJECT_TIME;
    switch ((enum format_op_kind)op->kind) {
    case OP_TIME_CLF:
        good = end - p >= CLF_TIME_BYTES && clf_time_cached(k->minutes, p, &ms);
        if (!good)
            good = clf_time_parse(k->minutes, p, end, &ms, reason, &t.p);
        if (good)
            t.p = p + CLF_TIME_BYTES;
        break;
    case OP_TIME_LOCAL:
        good = take_local(k, &t, &ms, reason);
        break;
    case OP_TIME_ISO:
        good = take_iso(k, &t, &ms, reason);
        break;
    case OP_TIME_EPOCH:
        good = take_epoch(&t, op->scale, &ms);
        if (good && op->scale == 1000 && !(op->literal_len > 0 && f->pool[op->literal] == '.'))
            take_decimals(&t, &ms);
        break;
    case OP_TIME_FRACTION:
        good = take_fraction(k, &t, op->scale, op->is_time);
        break;
    default:
        good = take_spec(k, &t, f->pool + op->spec, f->pool + op->spec + op->spec_len);
        break;
    }
    *at = t.p;
    if (good && op->is_time && op->kind != OP_TIME_FRACTION)
        k->at_ms = ms;
    return good ? t.p : NULL;
}

bool format_clock_finish(const struct format_clock *k, const struct format *f, int64_t *at_ms)
{
    const struct civil *c = &k->civil;
    *at_ms = k->at_ms + k->fraction_ms;
    if (!f->is_assembled)
        return *at_ms < CIVIL_END_MS;
    if (c->year < CIVIL_YEAR_MIN || c->month < 1 || c->day < 1 ||
        c->day > civil_month_days(c->year, c->month))
        return false;
    *at_ms = civil_to_ms(c) - k->zone_ms + k->fraction_ms;
    return *at_ms >= 0 && *at_ms < CIVIL_END_MS;
}
