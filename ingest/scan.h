/* scan.h - finds the next byte with a meaning in the grammar of log lines, 16 bytes a step.
 *
 * Odd     : a backslash, a control byte, 0x7F or above. Both scans stop at every odd byte, so the text before
 *           a stop is plain.
 *
 *           scan_word    stops at ' ', ':' and odd bytes
 *           scan_quoted  stops at '"', `also` and odd bytes; also at '|' and '}', since that is cheapest
 *
 *           scan_has_odd says whether there is an odd byte at all
 *
 * Twins   : …_bytes() define the answers; the others give the same answers, faster if there is SSE2 or NEON.
 * Pre     : p <= end; for scan_word and scan_quoted, which return `end` if nothing stops, also: the SCAN_STEP
 *           bytes before `end` may be read.
 * Source  : one signed compare tests a range, after an addition that makes 0x7F negative: v + 1 <= 0x21 is a
 *           space or an odd byte; (v ^ 2) + 3 <= 0x23 is a quote, '|', '}' or an odd byte. The backslash is
 *           compared apart.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#if defined __SSE2__
#include <emmintrin.h>
#elif defined __aarch64__
#include <arm_neon.h>
#endif

#define SCAN_STEP 16

static inline bool scan_is_odd(char byte)
{
    unsigned char c = (unsigned char)byte;
    return c < 0x20 || c >= 0x7F || c == '\\';
}

static inline bool scan_has_odd_bytes(const char *p, const char *end)
{
    while (p < end && !scan_is_odd(*p))
        p++;
    return p < end;
}

static inline const char *scan_word_bytes(const char *p, const char *end)
{
    while (p < end && *p != ' ' && *p != ':' && !scan_is_odd(*p))
        p++;
    return p;
}

static inline const char *scan_quoted_bytes(const char *p, const char *end, char also)
{
    while (p < end && *p != '"' && *p != also && *p != '|' && *p != '}' && !scan_is_odd(*p))
        p++;
    return p;
}

#if defined __SSE2__

/* Bits of `scan_stops` for each of the SCAN_STEP bytes, the lowest for the first. */
#define SCAN_BITS 1
#define SCAN_ALL  0xFFFFu
typedef unsigned scan_stops;

static inline scan_stops scan_odd_stops(const char *p)
{
    __m128i v = _mm_loadu_si128((const __m128i *)(const void *)p);
    __m128i above = _mm_cmpgt_epi8(_mm_add_epi8(v, _mm_set1_epi8(1)), _mm_set1_epi8(0x20));
    return SCAN_ALL ^
           (unsigned)_mm_movemask_epi8(_mm_andnot_si128(_mm_cmpeq_epi8(v, _mm_set1_epi8('\\')), above));
}

static inline scan_stops scan_word_stops(const char *p)
{
    __m128i v = _mm_loadu_si128((const __m128i *)(const void *)p);
    __m128i stop =
        _mm_or_si128(_mm_cmpeq_epi8(v, _mm_set1_epi8('\\')), _mm_cmpeq_epi8(v, _mm_set1_epi8(':')));
    __m128i above = _mm_cmpgt_epi8(_mm_add_epi8(v, _mm_set1_epi8(1)), _mm_set1_epi8(0x21));
    return SCAN_ALL ^ (unsigned)_mm_movemask_epi8(_mm_andnot_si128(stop, above));
}

static inline scan_stops scan_quoted_stops(const char *p, char also)
{
    __m128i v = _mm_loadu_si128((const __m128i *)(const void *)p);
    __m128i stop = _mm_cmpeq_epi8(v, _mm_set1_epi8('\\'));
    if (also != '"')
        stop = _mm_or_si128(stop, _mm_cmpeq_epi8(v, _mm_set1_epi8(also)));
    __m128i folded = _mm_add_epi8(_mm_xor_si128(v, _mm_set1_epi8(2)), _mm_set1_epi8(3));
    __m128i above = _mm_cmpgt_epi8(folded, _mm_set1_epi8(0x23));
    return SCAN_ALL ^ (unsigned)_mm_movemask_epi8(_mm_andnot_si128(stop, above));
}

/* The bits of the bytes that are the same in both. */
static inline scan_stops scan_same(const char *p, const char *q)
{
    return (unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(_mm_loadu_si128((const __m128i *)(const void *)p),
                                                      _mm_loadu_si128((const __m128i *)(const void *)q)));
}

#elif defined __aarch64__

/* NEON has no instruction that gathers one bit of each byte; one narrowing shift gathers four. */
#define SCAN_BITS 4
#define SCAN_ALL  UINT64_MAX
typedef uint64_t scan_stops;

static inline scan_stops scan_gather(uint8x16_t stop)
{
    return vget_lane_u64(vreinterpret_u64_u8(vshrn_n_u16(vreinterpretq_u16_u8(stop), 4)), 0);
}

/* Is a byte + 1, after an xor, at most `most`, as signed bytes; or a backslash? */
static inline uint8x16_t scan_at_most(uint8x16_t v, uint8x16_t folded, signed char most)
{
    return vorrq_u8(vcleq_s8(vreinterpretq_s8_u8(folded), vdupq_n_s8(most)), vceqq_u8(v, vdupq_n_u8('\\')));
}

static inline scan_stops scan_odd_stops(const char *p)
{
    uint8x16_t v = vld1q_u8((const uint8_t *)p);
    return scan_gather(scan_at_most(v, vaddq_u8(v, vdupq_n_u8(1)), 0x20));
}

static inline scan_stops scan_word_stops(const char *p)
{
    uint8x16_t v = vld1q_u8((const uint8_t *)p);
    uint8x16_t stop = scan_at_most(v, vaddq_u8(v, vdupq_n_u8(1)), 0x21);
    return scan_gather(vorrq_u8(stop, vceqq_u8(v, vdupq_n_u8(':'))));
}

static inline scan_stops scan_quoted_stops(const char *p, char also)
{
    uint8x16_t v = vld1q_u8((const uint8_t *)p);
    uint8x16_t stop = scan_at_most(v, vaddq_u8(veorq_u8(v, vdupq_n_u8(2)), vdupq_n_u8(3)), 0x23);
    if (also != '"')
        stop = vorrq_u8(stop, vceqq_u8(v, vdupq_n_u8((uint8_t)also)));
    return scan_gather(stop);
}

static inline scan_stops scan_same(const char *p, const char *q)
{
    return scan_gather(vceqq_u8(vld1q_u8((const uint8_t *)p), vld1q_u8((const uint8_t *)q)));
}

#else

typedef unsigned scan_stops;

#endif

#ifdef SCAN_BITS

static inline bool scan_has_odd(const char *p, const char *end)
{
    for (; end - p >= SCAN_STEP; p += SCAN_STEP) {
        if (scan_odd_stops(p) != 0)
            return true;
    }
    return scan_has_odd_bytes(p, end);
}

static inline const char *scan_first(const char *p, scan_stops stops)
{
    return p + (unsigned)__builtin_ctzll(stops) / SCAN_BITS;
}

/* The stop among the last bytes before `end`, fewer than SCAN_STEP; `stops` are those of SCAN_STEP bytes. */
static inline const char *scan_last(const char *p, const char *end, scan_stops stops)
{
    stops =
        stops >> SCAN_BITS * (SCAN_STEP - 1 - (end - p)) >> SCAN_BITS; /* at once would be 64 bits, of none */
    return stops != 0 ? scan_first(p, stops) : end;
}

static inline const char *scan_word(const char *p, const char *end)
{
    scan_stops stops = 0;
    for (; p <= end - SCAN_STEP; p += SCAN_STEP) {
        if ((stops = scan_word_stops(p)) != 0)
            return scan_first(p, stops);
    }
    return scan_last(p, end, scan_word_stops(end - SCAN_STEP));
}

static inline const char *scan_quoted(const char *p, const char *end, char also)
{
    scan_stops stops = 0;
    for (; p <= end - SCAN_STEP; p += SCAN_STEP) {
        if ((stops = scan_quoted_stops(p, also)) != 0)
            return scan_first(p, stops);
    }
    return scan_last(p, end, scan_quoted_stops(end - SCAN_STEP, also));
}

#else

static inline bool scan_has_odd(const char *p, const char *end)
{
    return scan_has_odd_bytes(p, end);
}

static inline const char *scan_word(const char *p, const char *end)
{
    return scan_word_bytes(p, end);
}

static inline const char *scan_quoted(const char *p, const char *end, char also)
{
    return scan_quoted_bytes(p, end, also);
}

#endif
