#include "aggregate/number.h"

#include "base/check.h"

#include <inttypes.h>
#include <stdio.h>

#define FRACTION_DIGITS 6
_Static_assert(EVENT_SCALE == 1000000, "FRACTION_DIGITS zeros");

const char *number_text(int128 number, char buf[NUMBER_BYTES])
{
    bool is_negative = number < 0;
    int128 magnitude = is_negative ? -number : number;
    int64_t fraction = (int64_t)(magnitude % EVENT_SCALE);
    int digits = FRACTION_DIGITS;
    int n = snprintf(buf, NUMBER_BYTES, "%s%" PRIu64, is_negative ? "-" : "",
                     (uint64_t)(magnitude / EVENT_SCALE));
    if (fraction == 0)
        return buf;
    for (; fraction % 10 == 0; fraction /= 10)
        digits--;
    snprintf(buf + n, NUMBER_BYTES - (size_t)n, ".%0*" PRId64, digits, fraction);
    return buf;
}

double number_double(int128 number)
{
    const int128 whole = number / EVENT_SCALE;
    return whole * EVENT_SCALE == number ? (double)whole : (double)number / EVENT_SCALE;
}

int128 number_mean(int128 sum, int64_t count)
{
    ASSERT(count > 0);
    int128 quotient = sum / count, rest = sum % count;
    if (rest < 0)
        return -rest >= count + rest ? quotient - 1 : quotient;
    return rest >= count - rest ? quotient + 1 : quotient;
}
