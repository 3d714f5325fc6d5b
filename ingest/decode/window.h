/* window.h - finds the bytes of a line that matter, 64 at a time, on CPUs with AVX2. clf_fast.c and
 * format_scan.h call it.
 *
 * Pre     : the bytes that a function loads are of the line: WINDOW from `p` on, if it says nothing else.
 * Source  : classifying bytes by a shuffle is simdjson's (Geoff Langdale and Daniel Lemire, "Parsing
 *           Gigabytes of JSON per Second", 2019).
 */
#pragma once

#include "base/load.h"
#include "ingest/decode/clf_time.h"

#include <immintrin.h>

#define AVX2 __attribute__((target("avx2,bmi,bmi2")))
#define HOT  inline __attribute__((always_inline)) AVX2

#define WINDOW 64

/* Constants to compare bytes with, 32 bytes at a time. */
struct window_tables {
    signed char space[32], question[32];
    signed char quoted[32], word[32], long_word[32]; /* marks by low nibble, for window_stops() */
    signed char zero[16], above_9[16], weights_10[16];
    short weights_100[8], weights_10000[8];
    signed char columns[9][16]; /* shuffles by number of the size's digits, for window_numbers() */
};

extern const struct window_tables window_tables; /* in clf_fast.c */

static HOT __m128i load128(const void *p)
{
    return _mm_loadu_si128(p);
}

static HOT __m256i load256(const void *p)
{
    return _mm256_loadu_si256(p);
}

/* The number of the lowest bit; 64: there is none. */
static HOT size_t first_bit(uint64_t bits)
{
    return _tzcnt_u64(bits);
}

/* A bit for each negative byte. */
static HOT uint64_t window_signs(__m256i low, __m256i high)
{
    return (uint64_t)(uint32_t)_mm256_movemask_epi8(high) << 32 | (uint32_t)_mm256_movemask_epi8(low);
}

/* Of 32 bytes, makes a byte negative if it is in `marks`, or odd (scan.h). `marks` has one byte per low
 * nibble. For a byte below 0x80, the shuffle selects the mark of its low nibble, and the two are compared.
 * The other odd bytes are less than a space; bytes of 0x80 and above, because they are negative. */
static HOT __m256i window_stops(const char *p, __m256i marks, __m256i space)
{
    __m256i v = load256(p), equal = _mm256_cmpeq_epi8(_mm256_shuffle_epi8(marks, v), v);
    return _mm256_or_si256(equal, _mm256_subs_epi8(v, space));
}

/* A bit for each '?'. */
static HOT uint64_t window_questions(const struct window_tables *t, const char *p)
{
    __m256i mark = load256(t->question);
    return window_signs(_mm256_cmpeq_epi8(mark, load256(p)), _mm256_cmpeq_epi8(mark, load256(p + 32)));
}

/* Compares the 32 bytes "- - [05/Jan/2026:00:00:00 +0000]" at once, except the second and those with a bit in
 * `spared`. */
static HOT bool window_is_in_minute(const struct clf_minute *m, const char *p, uint32_t spared,
                                    int64_t *at_ms)
{
    __m256i same = _mm256_cmpeq_epi8(load256(p), load256(m->text));
    const char *second = p + CLF_NOBODY_BYTES + CLF_TIME_SECOND;
    unsigned tens = (unsigned char)second[0] - '0', ones = (unsigned char)second[1] - '0';
    spared |= UINT32_C(3) << (CLF_NOBODY_BYTES + CLF_TIME_SECOND);
    *at_ms = m->start_ms + (tens * 10 + ones) * 1000;
    return ((uint32_t)_mm256_movemask_epi8(same) | spared) == UINT32_MAX && tens <= 5 && ones <= 9;
}

/* Reads "200 2326": a status, and a size of at most eight digits. Returns the number of the size's digits,
 * also 0; more than 8: there is no status with a space behind it. A shuffle aligns both numbers in columns,
 * ones below ones. Then three multiplications add neighbours up: ones with tens, and so on. Pre: the 4 bytes
 * before `p` and the 12 from `p` on are of the line. */
static HOT size_t window_numbers(const struct window_tables *t, const char *p, int64_t *status, int64_t *size)
{
    __m128i v = _mm_xor_si128(load128(p - 4), load128(t->zero));
    uint32_t others = (uint32_t)_mm_movemask_epi8(_mm_adds_epu8(v, load128(t->above_9)));
    size_t digits = first_bit(others >> 8 | 1u << 8);
    if ((others & 0x70) != 0 || p[3] != ' ')
        return SIZE_MAX;
    v = _mm_shuffle_epi8(v, load128(t->columns[digits]));
    v = _mm_maddubs_epi16(v, load128(t->weights_10));
    v = _mm_madd_epi16(v, load128(t->weights_100));
    v = _mm_madd_epi16(_mm_packus_epi32(v, v), load128(t->weights_10000));
    uint64_t both = (uint64_t)_mm_cvtsi128_si64(v);
    *status = (int64_t)(both >> 32);
    *size = (uint32_t)both;
    return digits;
}
