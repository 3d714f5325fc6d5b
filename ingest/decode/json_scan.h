/* json_scan.h - finds the byte that ends the plain part of a JSON string, 16 bytes a step if there is SSE2.
 *
 *           json_scan_string   stops at a quote, a backslash or a control byte
 *           json_scan_plain    also stops at 0x7F and above: bytes before a stop are not odd (event.h)
 *
 * Twins   : …_bytes() define the answers.
 * Pre     : start <= p <= end, and all bytes of [start, end) may be read. Both return `end` if nothing stops.
 * Source  : ranges by one signed compare, as in scan.h.
 */
#pragma once

#include <stdbool.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#define JSON_SCAN_STEP 16

static inline const char *json_scan_string_bytes(const char *p, const char *end)
{
    while (p < end && *p != '"' && *p != '\\' && (unsigned char)*p >= 0x20)
        p++;
    return p;
}

static inline const char *json_scan_plain_bytes(const char *p, const char *end)
{
    while (p < end && *p != '"' && *p != '\\' && (unsigned char)*p >= 0x20 && (unsigned char)*p < 0x7F)
        p++;
    return p;
}

#ifdef __SSE2__

/* A bit for each of the bytes at `p` that stops json_scan_plain(). */
static inline unsigned json_scan_plain_stops(const char *p)
{
    __m128i v = _mm_loadu_si128((const __m128i *)(const void *)p);
    __m128i stop =
        _mm_or_si128(_mm_cmpeq_epi8(v, _mm_set1_epi8('"')), _mm_cmpeq_epi8(v, _mm_set1_epi8('\\')));
    __m128i above = _mm_cmpgt_epi8(_mm_add_epi8(v, _mm_set1_epi8(1)), _mm_set1_epi8(0x20));
    return 0xFFFFu ^ (unsigned)_mm_movemask_epi8(_mm_andnot_si128(stop, above));
}

static inline unsigned json_scan_string_stops(const char *p)
{
    __m128i v = _mm_loadu_si128((const __m128i *)(const void *)p);
    __m128i stop =
        _mm_or_si128(_mm_cmpeq_epi8(v, _mm_set1_epi8('"')), _mm_cmpeq_epi8(v, _mm_set1_epi8('\\')));
    __m128i control = _mm_cmpeq_epi8(_mm_min_epu8(v, _mm_set1_epi8(0x1F)), v);
    return (unsigned)_mm_movemask_epi8(_mm_or_si128(stop, control));
}

/* The first stop at `p` or behind it. `stops_at` and `by_bytes` are constants, so that calls are inlined. */
static inline __attribute__((always_inline)) const char *
json_scan(const char *start, const char *p, const char *end, unsigned (*stops_at)(const char *),
          const char *(*by_bytes)(const char *, const char *))
{
    unsigned stops;
    for (; end - p >= JSON_SCAN_STEP; p += JSON_SCAN_STEP) {
        if ((stops = stops_at(p)) != 0)
            return p + (unsigned)__builtin_ctz(stops);
    }
    if (end - start < JSON_SCAN_STEP)
        return by_bytes(p, end);
    /* Fewer than a step is left: use those stops of the last step before `end` that are not before `p`. */
    stops = stops_at(end - JSON_SCAN_STEP) >> (JSON_SCAN_STEP - (end - p));
    return stops != 0 ? p + (unsigned)__builtin_ctz(stops) : end;
}

static inline const char *json_scan_plain(const char *start, const char *p, const char *end)
{
    return json_scan(start, p, end, json_scan_plain_stops, json_scan_plain_bytes);
}

static inline const char *json_scan_string(const char *start, const char *p, const char *end)
{
    return json_scan(start, p, end, json_scan_string_stops, json_scan_string_bytes);
}

#else

static inline const char *json_scan_plain(const char *start, const char *p, const char *end)
{
    (void)start;
    return json_scan_plain_bytes(p, end);
}

static inline const char *json_scan_string(const char *start, const char *p, const char *end)
{
    (void)start;
    return json_scan_string_bytes(p, end);
}

#endif
