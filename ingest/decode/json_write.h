/* json_write.h - writes the values of binary formats as JSON, for the next step of a chain. msgpack.c, avro.c
 * and protobuf.c call it.
 *
 * Bytes   : bytes that are not UTF-8 stay as they are: the steps behind do not check them.
 * Room    : json_write_…() write into memory that the caller knows to suffice; a struct json_out grows by
 *           itself, up to its maximum.
 */
#pragma once

#include "base/slice.h"

#include <stdint.h>

#define JSON_WRITE_GROWTH 6  /* most bytes that a byte of a string becomes */
#define JSON_NUMBER_BYTES 32 /* most bytes of a number, with a NUL */

/* Each returns the number of bytes written. */

/* The shortest of two texts that is the same number; null if it is none. A float needs fewer digits. */
size_t json_write_number(double number, bool is_float, char *out);
/* The string, in quotes: at most JSON_WRITE_GROWTH times as long, and 2 bytes. */
size_t json_write_string(struct slice s, char *out);
/* units / 10^scale, as "-1.250". Pre: scale < 20; JSON_NUMBER_BYTES suffice. */
size_t json_write_scaled(int64_t units, unsigned scale, char *out);

/* JSON that is being written. All zeros but `max`: empty. */
struct json_out {
    char *bytes;
    size_t len, capacity;
    size_t max; /* greatest capacity */
};

void json_out_fini(struct json_out *o);
/* Makes room for so many more bytes. False: that would be more than `max`. */
bool json_out_grow(struct json_out *o, size_t more);

static inline bool json_out_has(struct json_out *o, size_t more)
{
    return more <= o->capacity - o->len || json_out_grow(o, more);
}

/* Each returns false if there is no room. */

static inline bool json_out_add(struct json_out *o, const char *bytes, size_t len)
{
    if (!json_out_has(o, len))
        return false;
    memcpy(o->bytes + o->len, bytes, len);
    o->len += len;
    return true;
}

static inline bool json_out_byte(struct json_out *o, char c)
{
    if (!json_out_has(o, 1))
        return false;
    o->bytes[o->len++] = c;
    return true;
}

bool json_out_string(struct json_out *o, struct slice s);
bool json_out_integer(struct json_out *o, int64_t value);
bool json_out_number(struct json_out *o, double number, bool is_float);
bool json_out_scaled(struct json_out *o, int64_t units, unsigned scale);
/* The date of a day since 1970, "2010-10-10" in quotes. Outside of the years 1970 to 9999: the number of
 * days. */
bool json_out_date(struct json_out *o, int64_t day);
/* A number in two's complement, big endian, / 10^scale. Pre: at most JSON_DECIMAL_BYTES. */
#define JSON_DECIMAL_BYTES 64
bool json_out_decimal(struct json_out *o, struct slice bytes, unsigned scale);
