/* decimal.h - parses decimal numbers as JSON writes them ("-12", "0.5", "1.5e3") into scaled integers:
 * exactly, without floats.
 *
 * Exact : any number of digits and any exponent; 0.0000005 is 0.000001 (half away from zero), 1e-400 is 0.
 */
#pragma once

#include "base/slice.h"

#include <stdint.h>

enum decimal_result {
    DECIMAL_OK,
    DECIMAL_NONE, /* it is no number of RFC 8259 */
    DECIMAL_RANGE /* its magnitude is above the limit */
};

/* Sign and magnitude of a number in units of 10^-places, rounded down; `rounds_up`: rounding to nearest adds
 * one. */
struct decimal {
    int64_t magnitude;
    bool is_negative, rounds_up;
};

/* Pre: 0 <= places <= 9, 0 <= max <= 10^18. */
enum decimal_result decimal_scan(struct slice text, int places, int64_t max, struct decimal *out);
/* *value is in units of 1/EVENT_SCALE, rounded; its magnitude is at most EVENT_DECIMAL_MAX. */
enum decimal_result decimal_parse(struct slice text, int64_t *value);

/* Parses one digit or more, nothing else, up to the value `max` (< 2^59, so that ten times `max` does not
 * overflow). */
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
