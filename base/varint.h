/* varint.h - integers in as few bytes as they need: 7 bits a byte, low first, high bit = more.
 *
 * For a signed value, the caller passes varint_zigzag(v). Encoded bytes may come from a damaged disk, so
 * varint_get() checks every bound: it returns NULL if the number is cut off, exceeds 64 bits or has more than
 * VARINT_BYTES_MAX bytes. It accepts an encoding that is longer than it need be.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define VARINT_BYTES_MAX 10

/* Returns the byte after the number. Pre: there is room for VARINT_BYTES_MAX bytes. */
static inline uint8_t *varint_put(uint8_t *p, uint64_t v)
{
    while (v >= 0x80) {
        *p++ = (uint8_t)(v | 0x80);
        v >>= 7;
    }
    *p++ = (uint8_t)v;
    return p;
}

/* The bytes of a number: 7 bits each. */
static inline size_t varint_size(uint64_t v)
{
    return ((63 - (size_t)__builtin_clzll(v | 1)) * 9 + 73) / 64;
}

/* Returns the byte after the number, or NULL. */
static inline const uint8_t *varint_get(const uint8_t *p, const uint8_t *end, uint64_t *v)
{
    uint64_t value = 0;
    if (p < end && *p < 0x80) { /* fast path: one byte */
        *v = *p;
        return p + 1;
    }
    for (unsigned shift = 0; shift < 64 && p < end; shift += 7) {
        uint64_t byte = *p++;
        value |= (byte & 0x7f) << shift;
        if (byte < 0x80) {
            if (shift == 63 && byte > 1)
                return NULL; /* more than 64 bits */
            *v = value;
            return p;
        }
    }
    return NULL;
}

static inline uint64_t varint_zigzag(int64_t v)
{
    return ((uint64_t)v << 1) ^ (uint64_t)(v >> 63);
}

static inline int64_t varint_unzigzag(uint64_t v)
{
    return (int64_t)(v >> 1) ^ -(int64_t)(v & 1);
}
