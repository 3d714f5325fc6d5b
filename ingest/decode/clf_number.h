/* clf_number.h - parses decimal numbers in a few multiplications, without a branch per digit. clf_any.c calls
 * it.
 *
 * Source : the parallel addition of neighbouring digits, as in Daniel Lemire, "Quickly parsing eight
 *          digits" (2018). A byte x = c ^ '0' is a digit if x < 10, that is, if x + 0x76 has no high bit.
 */
#pragma once

#include "base/load.h"

#include <endian.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* " 200": a space and three digits. Pre: four bytes may be read. */
static inline bool clf_number_status(const char *p, int64_t *value)
{
    uint32_t x = le32toh(load32(p)) ^ 0x30303020;
    if ((((x + 0x76767600) | x) & 0x808080FF) != 0)
        return false;
    *value = (x >> 8 & 0xF) * 100 + (x >> 16 & 0xF) * 10 + (x >> 24);
    return true;
}

/* The number of digits (1 to 7) at `p`, and their value; 0: there are none, or more than 7.
 * Pre: eight bytes may be read. */
static inline unsigned clf_number_digits(const char *p, int64_t *value)
{
    uint64_t x = le64toh(load64(p)) ^ UINT64_C(0x3030303030303030);
    uint64_t others = ((x + UINT64_C(0x7676767676767676)) | x) & UINT64_C(0x8080808080808080);
    unsigned bits = others != 0 ? (unsigned)__builtin_ctzll(others) & ~7u : 0;
    if (bits == 0)
        return 0;
    x <<= 64 - bits; /* the last digit into the highest byte, zeros before the first */
    x = x * 10 + (x >> 8);
    x = (x & UINT64_C(0x000000FF000000FF)) * UINT64_C(0x000F424000000064) +
        (x >> 16 & UINT64_C(0x000000FF000000FF)) * UINT64_C(0x0000271000000001);
    *value = (int64_t)(x >> 32);
    return bits / 8;
}
