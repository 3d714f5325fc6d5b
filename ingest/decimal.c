#include "ingest/decimal.h"

#include "base/check.h"
#include "ingest/event.h"

#define DIGITS_MAX   19                 /* digits in a magnitude; one more would not fit int64 */
#define SHORT_BYTES  12                 /* numbers of so many bytes are in range: below 10^12 */
#define EXPONENT_MAX ((int64_t)1 << 40) /* no text has enough digits to compensate such an exponent */

static bool is_digit(const char *p, const char *end)
{
    return p < end && *p >= '0' && *p <= '9';
}

static const char *skip_digits(const char *p, const char *end)
{
    while (is_digit(p, end))
        p++;
    return p;
}

/* The parts of a number: digits [whole, point) and [fraction, fraction_end). */
struct parts {
    const char *whole, *point, *fraction, *fraction_end;
    int64_t exponent;
    bool is_negative;
};

static bool split_exponent(const char *p, const char *end, int64_t *exponent)
{
    bool negative = p < end && *p == '-';
    p += p < end && (*p == '-' || *p == '+');
    if (!is_digit(p, end))
        return false;
    for (; is_digit(p, end); p++) {
        if (*exponent < EXPONENT_MAX)
            *exponent = *exponent * 10 + (*p - '0');
    }
    *exponent = negative ? -*exponent : *exponent;
    return p == end;
}

static bool split(struct slice text, struct parts *n)
{
    const char *p = text.ptr, *end = slice_end(text);
    *n = (struct parts){.is_negative = p < end && *p == '-'};
    n->whole = p += n->is_negative;
    n->point = n->fraction = n->fraction_end = p = skip_digits(p, end);
    if (n->point == n->whole || (*n->whole == '0' && n->point - n->whole > 1))
        return false;
    if (p < end && *p == '.') {
        n->fraction = p + 1;
        n->fraction_end = p = skip_digits(p + 1, end);
        if (p == n->fraction)
            return false;
    }
    return p == end || ((*p | 0x20) == 'e' && split_exponent(p + 1, end, &n->exponent));
}

/* Reads the digits as one long number, digit by digit; the position of the decimal point says where to
 * stop. */
enum decimal_result decimal_scan(struct slice text, int places, int64_t max, struct decimal *out)
{
    struct parts n;
    ASSERT(places >= 0 && places <= 9 && max >= 0);
    if (!split(text, &n))
        return DECIMAL_NONE;
    *out = (struct decimal){.is_negative = n.is_negative};
    const char *p = n.whole;
    int64_t wanted = n.point - n.whole + n.exponent + places; /* number of digits that are not cut off */
    while (p < n.fraction_end && (*p == '0' || *p == '.')) {
        wanted -= *p == '0';
        p++;
    }
    if (p == n.fraction_end || wanted < 0)
        return DECIMAL_OK;
    if (wanted > DIGITS_MAX)
        return DECIMAL_RANGE;
    uint64_t value = 0;
    for (; wanted > 0; wanted--) {
        p += p == n.point && p < n.fraction_end;
        value = value * 10 + (p < n.fraction_end ? (unsigned)(*p++ - '0') : 0);
    }
    p += p == n.point && p < n.fraction_end;
    if (value > (uint64_t)max)
        return DECIMAL_RANGE;
    out->magnitude = (int64_t)value;
    out->rounds_up = p < n.fraction_end && *p >= '5';
    return DECIMAL_OK;
}

/* Fast path: some digits, and perhaps a point and more digits. False: the number is not so, or out of
 * range. */
static bool parse_short(struct slice text, int64_t *value)
{
    static const int32_t units[] = {1000000, 100000, 10000, 1000, 100, 10, 1}; /* by decimal places */
    const char *p = text.ptr, *end = slice_end(text), *point = NULL;
    bool is_negative = p < end && *p == '-';
    int64_t digits = 0;
    p += is_negative;
    if (end - p > SHORT_BYTES || !is_digit(p, end) || (*p == '0' && is_digit(p + 1, end)))
        return false;
    for (; p < end; p++) {
        unsigned digit = (unsigned char)*p - '0';
        if (digit <= 9)
            digits = digits * 10 + digit;
        else if (*p == '.' && point == NULL && is_digit(p + 1, end))
            point = p + 1;
        else
            return false;
    }
    size_t places = point != NULL ? (size_t)(end - point) : 0;
    if (places >= COUNT_OF(units))
        return false;
    digits *= units[places];
    *value = is_negative ? -digits : digits;
    return true;
}

enum decimal_result decimal_parse(struct slice text, int64_t *value)
{
    struct decimal d;
    if (LIKELY(parse_short(text, value)))
        return DECIMAL_OK;
    enum decimal_result result = decimal_scan(text, 6, EVENT_DECIMAL_MAX, &d);
    if (result != DECIMAL_OK)
        return result;
    int64_t magnitude = d.magnitude + d.rounds_up;
    if (magnitude > EVENT_DECIMAL_MAX)
        return DECIMAL_RANGE;
    *value = d.is_negative ? -magnitude : magnitude;
    return DECIMAL_OK;
}
