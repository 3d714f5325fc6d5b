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
 * Twins   : …_bytes() define the answers; the others give the same answers, faster if there is SSE2.
 * Pre     : p <= end; for scan_word and scan_quoted, which return `end` if nothing stops, also: the SCAN_STEP
 *           bytes before `end` may be read.
 * Source  : one signed compare tests a range, after an addition that makes 0x7F negative: v + 1 <= 0x21 is a
 *           space or an odd byte; (v ^ 2) + 3 <= 0x23 is a quote, '|', '}' or an odd byte. The backslash is
 *           compared apart.
 */
#pragma once

#include <stdbool.h>
#ifdef __SSE2__
#include <emmintrin.h>
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

#ifdef __SSE2__

static inline bool scan_has_odd(const char *p, const char *end)
{
    for (; end - p >= SCAN_STEP; p += SCAN_STEP) {
        __m128i v = _mm_loadu_si128((const __m128i *)(const void *)p);
        __m128i above = _mm_cmpgt_epi8(_mm_add_epi8(v, _mm_set1_epi8(1)), _mm_set1_epi8(0x20));
        if (_mm_movemask_epi8(_mm_andnot_si128(_mm_cmpeq_epi8(v, _mm_set1_epi8('\\')), above)) != 0xFFFF)
            return true;
    }
    return scan_has_odd_bytes(p, end);
}

/* A bit for each of the SCAN_STEP bytes at `p` at which scan_word() stops. */
static inline unsigned scan_word_stops(const char *p)
{
    __m128i v = _mm_loadu_si128((const __m128i *)(const void *)p);
    __m128i stop =
        _mm_or_si128(_mm_cmpeq_epi8(v, _mm_set1_epi8('\\')), _mm_cmpeq_epi8(v, _mm_set1_epi8(':')));
    __m128i above = _mm_cmpgt_epi8(_mm_add_epi8(v, _mm_set1_epi8(1)), _mm_set1_epi8(0x21));
    return 0xFFFFu ^ (unsigned)_mm_movemask_epi8(_mm_andnot_si128(stop, above));
}

static inline unsigned scan_quoted_stops(const char *p, char also)
{
    __m128i v = _mm_loadu_si128((const __m128i *)(const void *)p);
    __m128i stop = _mm_cmpeq_epi8(v, _mm_set1_epi8('\\'));
    if (also != '"')
        stop = _mm_or_si128(stop, _mm_cmpeq_epi8(v, _mm_set1_epi8(also)));
    __m128i folded = _mm_add_epi8(_mm_xor_si128(v, _mm_set1_epi8(2)), _mm_set1_epi8(3));
    __m128i above = _mm_cmpgt_epi8(folded, _mm_set1_epi8(0x23));
    return 0xFFFFu ^ (unsigned)_mm_movemask_epi8(_mm_andnot_si128(stop, above));
}

static inline const char *scan_word(const char *p, const char *end)
{
    unsigned stops = 0;
    for (; p <= end - SCAN_STEP; p += SCAN_STEP) {
        if ((stops = scan_word_stops(p)) != 0)
            return p + (unsigned)__builtin_ctz(stops);
    }
    stops = scan_word_stops(end - SCAN_STEP) >> (SCAN_STEP - (end - p));
    return stops != 0 ? p + (unsigned)__builtin_ctz(stops) : end;
}

static inline const char *scan_quoted(const char *p, const char *end, char also)
{
    unsigned stops = 0;
    for (; p <= end - SCAN_STEP; p += SCAN_STEP) {
        if ((stops = scan_quoted_stops(p, also)) != 0)
            return p + (unsigned)__builtin_ctz(stops);
    }
    stops = scan_quoted_stops(end - SCAN_STEP, also) >> (SCAN_STEP - (end - p));
    return stops != 0 ? p + (unsigned)__builtin_ctz(stops) : end;
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
