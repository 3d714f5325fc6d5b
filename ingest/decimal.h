/* decimal.h - decimal numbers as JSON writes them ("-12", "0.5", "1.5e3"), kept as integers: exact, never by
 * way of a float.
 *
 * Exact : any count of digits and any exponent; 0.0000005 is 0.000001 (half away from zero), 1e-400 is 0.
 */
#pragma once

#include "base/slice.h"

#include <stdint.h>

enum decimal_result {
    DECIMAL_OK,
    DECIMAL_NONE, /* it is not a number as RFC 8259 writes them */
    DECIMAL_RANGE /* its magnitude is above the limit */
};

/* A number as sign and magnitude in units of 10^-places, cut off, and whether rounding would add one. */
struct decimal {
    int64_t magnitude;
    bool is_negative, rounds_up;
};

/* Pre: 0 <= places <= 9, 0 <= max <= 10^18. */
enum decimal_result decimal_scan(struct slice text, int places, int64_t max, struct decimal *out);
/* In units of 1/EVENT_SCALE, up to EVENT_DECIMAL_MAX, rounded. */
enum decimal_result decimal_parse(struct slice text, int64_t *value);

/* Digits only, one at least, and at most `max` (< 2^59: ten times as much does not overflow). */
static inline bool decimal_integer(struct slice text, int64_t max, int64_t *value)
{
    int64_t v = 0;
    for (const char *p = text.ptr, *end = p + text.len; p < end; p++) {
        unsigned digit = (unsigned char)*p - '0';
        if (digit > 9 || v > max)
            return false;
        v = v * 10 + digit;
    }
    *value = v;
    return text.len > 0 && v <= max;
}
