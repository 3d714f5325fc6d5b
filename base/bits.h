/* bits.h - numbers in as few bits as they need, one behind the other, from the lowest bit of each byte on.
 * The SQLite store packs sketches so.
 *
 *   bits    the number itself, in a known number of bits
 *   unary   as many zeros as the number says, and a one
 *   gamma   a number above 0: in unary how many bits follow its highest one, and these (P. Elias, 1975)
 *   rice    number >> shift in unary, and the other bits: short if most are about 2^shift (R. Rice)
 *
 * Errors: writing ends with the room, and reading with the bytes. Then `failed` is set, and all else means
 *         nothing. So it is enough to look once, at the end. Bytes may come from a damaged disk.
 */
#pragma once

#include <endian.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

struct bits_out {
    uint8_t *p, *end;
    uint64_t held; /* bits that are no whole byte yet */
    unsigned count;
    bool failed;
};

struct bits_in {
    const uint8_t *p, *end;
    uint64_t held; /* bits that are read next */
    unsigned count;
    bool failed;
};

/* Pre: bits is up to 32, and the number has no more. */
static inline void bits_put(struct bits_out *b, uint64_t number, unsigned bits)
{
    b->held |= number << b->count;
    b->count += bits;
    if (b->count < 32)
        return;
    if (b->end - b->p >= 4) {
        const uint32_t four = htole32((uint32_t)b->held);
        memcpy(b->p, &four, sizeof four);
        b->p += sizeof four;
    } else {
        b->failed = true;
    }
    b->held >>= 32;
    b->count -= 32;
}

static inline void bits_put_unary(struct bits_out *b, uint64_t number)
{
    if (number / 8 > (uint64_t)(b->end - b->p)) {
        b->failed = true;
        return;
    }
    for (; number >= 32; number -= 32)
        bits_put(b, 0, 32);
    bits_put(b, (uint64_t)1 << number, (unsigned)number + 1);
}

static inline void bits_put_gamma(struct bits_out *b, uint64_t number)
{
    const unsigned more = 63 - (unsigned)__builtin_clzll(number);
    if (more < 16) { /* at once */
        bits_put(b, (uint64_t)1 << more | (number ^ (uint64_t)1 << more) << (more + 1), 2 * more + 1);
        return;
    }
    bits_put_unary(b, more);
    if (more > 32)
        bits_put(b, number >> 32 ^ (uint64_t)1 << (more - 32), more - 32);
    bits_put(b, more > 32 ? (uint32_t)number : number ^ (uint64_t)1 << more, more > 32 ? 32 : more);
}

/* Pre: shift is below 32. */
static inline void bits_put_rice(struct bits_out *b, uint64_t number, unsigned shift)
{
    const uint64_t high = number >> shift, low = number & (((uint64_t)1 << shift) - 1);
    if (high + shift < 32) { /* at once */
        bits_put(b, (uint64_t)1 << high | low << (high + 1), (unsigned)high + 1 + shift);
        return;
    }
    bits_put_unary(b, high);
    bits_put(b, low, shift);
}

/* Fills the last byte with zeros. Returns the byte after it. */
static inline uint8_t *bits_finish(struct bits_out *b)
{
    for (; b->count > 0; b->count -= b->count < 8 ? b->count : 8) {
        if (b->p < b->end)
            *b->p++ = (uint8_t)b->held;
        else
            b->failed = true;
        b->held >>= 8;
    }
    return b->p;
}

/* Reads up to four bytes ahead. Pre: at most 32 bits are held. False: there are no more. */
static inline bool bits_more(struct bits_in *b)
{
    uint32_t four;
    if (b->end - b->p >= 4) {
        memcpy(&four, b->p, sizeof four);
        b->held |= (uint64_t)le32toh(four) << b->count;
        b->p += sizeof four;
        b->count += 32;
        return true;
    }
    if (b->p == b->end) {
        b->failed = true;
        return false;
    }
    b->held |= (uint64_t)*b->p++ << b->count;
    b->count += 8;
    return true;
}

/* Pre: bits is up to 32. */
static inline uint64_t bits_get(struct bits_in *b, unsigned bits)
{
    while (b->count < bits) {
        if (!bits_more(b))
            return 0;
    }
    const uint64_t number = b->held & (((uint64_t)1 << bits) - 1);
    b->held >>= bits;
    b->count -= bits;
    return number;
}

static inline uint64_t bits_get_unary(struct bits_in *b)
{
    uint64_t zeros = 0;
    while (b->held == 0) {
        zeros += b->count;
        b->count = 0;
        if (!bits_more(b))
            return 0;
    }
    const unsigned more = (unsigned)__builtin_ctzll(b->held);
    b->held = b->held >> more >> 1;
    b->count -= more + 1;
    return zeros + more;
}

static inline uint64_t bits_get_gamma(struct bits_in *b)
{
    const uint64_t more = bits_get_unary(b);
    if (more > 63) {
        b->failed = true;
        return 1;
    }
    const uint64_t high = more > 32 ? bits_get(b, (unsigned)more - 32) << 32 : 0;
    return (uint64_t)1 << more | high | bits_get(b, more > 32 ? 32 : (unsigned)more);
}

/* Pre: shift is below 32. */
static inline uint64_t bits_get_rice(struct bits_in *b, unsigned shift)
{
    if (b->count < 32 && b->end - b->p >= 4)
        (void)bits_more(b);
    if (b->held != 0) {
        const unsigned zeros = (unsigned)__builtin_ctzll(b->held), bits = zeros + 1 + shift;
        if (bits <= b->count) { /* at once; there are at most 63 */
            const uint64_t low = b->held >> zeros >> 1 & (((uint64_t)1 << shift) - 1);
            b->held >>= bits;
            b->count -= bits;
            return (uint64_t)zeros << shift | low;
        }
    }
    const uint64_t high = bits_get_unary(b);
    return high << shift | bits_get(b, shift);
}

/* Was everything read, but zeros in the last byte? */
static inline bool bits_end(const struct bits_in *b)
{
    return !b->failed && b->p == b->end && b->count < 8 && b->held == 0;
}
