#include "ingest/decode/json_write.h"

#include "base/check.h"
#include "base/civil.h"
#include "base/mem.h"
#include "ingest/decode/json_scan.h"
#include "ingest/float_text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define FIRST_BYTES    1024
#define GROUP          1000000000u /* nine decimal digits */
#define GROUP_DIGITS   9
#define DECIMAL_DIGITS (JSON_DECIMAL_BYTES * 5 / 2 + GROUP_DIGITS) /* a byte has less than 2.41 digits */
#define DAYS_END       (CIVIL_END_MS / DAY_MS)

size_t json_write_number(double number, bool is_float, char *out)
{
    if (!isfinite(number)) {
        memcpy(out, "null", 4);
        return 4;
    }
    return float_text_print(number, is_float, out);
}

size_t json_write_string(struct slice s, char *out)
{
    char *to = out;
    *to++ = '"';
    for (const char *p = s.ptr, *end = slice_end(s); p < end;) {
        const char *stop = json_scan_string(s.ptr, p, end);
        memcpy(to, p, (size_t)(stop - p));
        to += stop - p;
        p = stop;
        if (p == end)
            break;
        unsigned char c = (unsigned char)*p++;
        if (c < 0x20) {
            to += sprintf(to, "\\u%04x", c);
        } else {
            *to++ = '\\';
            *to++ = (char)c;
        }
    }
    *to++ = '"';
    return (size_t)(to - out);
}

/* Writes digits from the last one on; returns the first. */
static char *write_digits(uint64_t value, char *end)
{
    do
        *--end = (char)('0' + value % 10);
    while ((value /= 10) > 0);
    return end;
}

size_t json_write_scaled(int64_t units, unsigned scale, char *out)
{
    char buf[JSON_NUMBER_BYTES], *end = buf + sizeof buf, *p = end;
    uint64_t value = units < 0 ? -(uint64_t)units : (uint64_t)units;
    if (scale > 0) {
        for (unsigned i = 0; i < scale; i++, value /= 10)
            *--p = (char)('0' + value % 10);
        *--p = '.';
    }
    p = write_digits(value, p);
    if (units < 0)
        *--p = '-';
    memcpy(out, p, (size_t)(end - p));
    return (size_t)(end - p);
}

void json_out_fini(struct json_out *o)
{
    free(o->bytes);
    o->bytes = NULL;
    o->len = o->capacity = 0;
}

bool json_out_grow(struct json_out *o, size_t more)
{
    if (more > o->max || o->len > o->max - more)
        return false;
    size_t need = o->len + more, capacity = o->capacity > 0 ? o->capacity : FIRST_BYTES;
    while (capacity < need)
        capacity *= 2;
    o->capacity = capacity < o->max ? capacity : o->max;
    o->bytes = xrealloc(o->bytes, o->capacity);
    return true;
}

bool json_out_string(struct json_out *o, struct slice s)
{
    if (s.len > o->max || !json_out_has(o, JSON_WRITE_GROWTH * s.len + 2))
        return false;
    o->len += json_write_string(s, o->bytes + o->len);
    return true;
}

bool json_out_integer(struct json_out *o, int64_t value)
{
    return json_out_scaled(o, value, 0);
}

bool json_out_number(struct json_out *o, double number, bool is_float)
{
    if (!json_out_has(o, JSON_NUMBER_BYTES))
        return false;
    o->len += json_write_number(number, is_float, o->bytes + o->len);
    return true;
}

bool json_out_scaled(struct json_out *o, int64_t units, unsigned scale)
{
    if (!json_out_has(o, JSON_NUMBER_BYTES))
        return false;
    o->len += json_write_scaled(units, scale, o->bytes + o->len);
    return true;
}

bool json_out_date(struct json_out *o, int64_t day)
{
    char text[32];
    if (day < 0 || day >= DAYS_END)
        return json_out_integer(o, day);
    struct civil c = civil_from_ms(day * DAY_MS);
    return json_out_add(o, text,
                        (size_t)snprintf(text, sizeof text, "\"%04d-%02d-%02d\"", c.year, c.month, c.day));
}

/* Divides the number by GROUP in place; returns the rest. */
static uint32_t divide(uint32_t *limbs, size_t count)
{
    uint64_t rest = 0;
    for (size_t i = 0; i < count; i++) {
        rest = rest << 32 | limbs[i];
        limbs[i] = (uint32_t)(rest / GROUP);
        rest %= GROUP;
    }
    return (uint32_t)rest;
}

/* Takes the magnitude of a number in two's complement, big endian. */
static bool take_magnitude(struct slice bytes, uint32_t limbs[JSON_DECIMAL_BYTES / 4])
{
    bool is_negative = bytes.len > 0 && ((unsigned char)bytes.ptr[0] & 0x80) != 0;
    uint64_t carry = is_negative;
    memset(limbs, 0, JSON_DECIMAL_BYTES);
    for (size_t i = 0; i < bytes.len; i++) {
        size_t place = bytes.len - 1 - i; /* bytes behind this one */
        uint32_t byte = (unsigned char)bytes.ptr[i] ^ (is_negative ? 0xFFu : 0);
        limbs[JSON_DECIMAL_BYTES / 4 - 1 - place / 4] |= byte << (8 * (place % 4));
    }
    for (size_t i = JSON_DECIMAL_BYTES / 4; i > 0 && carry > 0; i--) {
        carry += limbs[i - 1];
        limbs[i - 1] = (uint32_t)carry;
        carry >>= 32;
    }
    return is_negative;
}

bool json_out_decimal(struct json_out *o, struct slice bytes, unsigned scale)
{
    uint32_t limbs[JSON_DECIMAL_BYTES / 4];
    char digits[DECIMAL_DIGITS + JSON_DECIMAL_BYTES + 4], *end = digits + sizeof digits, *p = end;
    ASSERT(bytes.len <= JSON_DECIMAL_BYTES && scale <= JSON_DECIMAL_BYTES);
    bool is_negative = take_magnitude(bytes, limbs), is_zero = false;
    for (unsigned count = 0; count <= scale || !is_zero;) {
        uint32_t group = divide(limbs, COUNT_OF(limbs));
        is_zero = true;
        for (size_t i = 0; i < COUNT_OF(limbs) && is_zero; i++)
            is_zero = limbs[i] == 0;
        /* a whole group, or as much as is left: digits, and zeros up to one before the point */
        for (unsigned i = 0; i < GROUP_DIGITS && (!is_zero || group > 0 || count <= scale); i++) {
            if (count == scale && scale > 0)
                *--p = '.';
            *--p = (char)('0' + group % 10);
            group /= 10;
            count++;
        }
    }
    if (is_negative)
        *--p = '-';
    return json_out_add(o, p, (size_t)(end - p));
}
