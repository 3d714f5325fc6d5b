/* json_scan.h - finds the byte that ends the plain part of a JSON string, 16 bytes a step by SSE2 or NEON.
 *
 *           json_scan_string   stops at a quote, a backslash or a control byte
 *           json_scan_plain    also stops at 0x7F and above: bytes before a stop are not odd (event.h)
 *
 * Twins   : …_bytes() define the answers.
 * Pre     : start <= p <= end, and all bytes of [start, end) may be read. Both return `end` if nothing stops.
 * Source  : ranges by one signed compare, as in scan.h.
 */
#pragma once

#include "ingest/scan.h"

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

#if defined __SSE2__

/* SCAN_BITS bits for each of the bytes at `p` that stops json_scan_plain(). */
static inline scan_stops json_scan_plain_stops(const char *p)
{
    __m128i v = _mm_loadu_si128((const __m128i *)(const void *)p);
    __m128i stop =
        _mm_or_si128(_mm_cmpeq_epi8(v, _mm_set1_epi8('"')), _mm_cmpeq_epi8(v, _mm_set1_epi8('\\')));
    __m128i above = _mm_cmpgt_epi8(_mm_add_epi8(v, _mm_set1_epi8(1)), _mm_set1_epi8(0x20));
    return SCAN_ALL ^ (unsigned)_mm_movemask_epi8(_mm_andnot_si128(stop, above));
}

static inline scan_stops json_scan_string_stops(const char *p)
{
    __m128i v = _mm_loadu_si128((const __m128i *)(const void *)p);
    __m128i stop =
        _mm_or_si128(_mm_cmpeq_epi8(v, _mm_set1_epi8('"')), _mm_cmpeq_epi8(v, _mm_set1_epi8('\\')));
    __m128i control = _mm_cmpeq_epi8(_mm_min_epu8(v, _mm_set1_epi8(0x1F)), v);
    return (unsigned)_mm_movemask_epi8(_mm_or_si128(stop, control));
}

#elif defined __aarch64__

/* Quotes and backslashes, and bytes + 1 that are at most 0x20 as signed ones. */
static inline scan_stops json_scan_plain_stops(const char *p)
{
    uint8x16_t v = vld1q_u8((const uint8_t *)p);
    uint8x16_t stop = scan_at_most(v, vaddq_u8(v, vdupq_n_u8(1)), 0x20);
    return scan_gather(vorrq_u8(stop, vceqq_u8(v, vdupq_n_u8('"'))));
}

static inline scan_stops json_scan_string_stops(const char *p)
{
    uint8x16_t v = vld1q_u8((const uint8_t *)p);
    uint8x16_t stop = vorrq_u8(vceqq_u8(v, vdupq_n_u8('"')), vceqq_u8(v, vdupq_n_u8('\\')));
    return scan_gather(vorrq_u8(stop, vcltq_u8(v, vdupq_n_u8(0x20))));
}

#endif

#ifdef SCAN_BITS

/* The first stop at `p` or behind it. `stops_at` and `by_bytes` are constants, so that calls are inlined. */
static inline __attribute__((always_inline)) const char *
json_scan(const char *start, const char *p, const char *end, scan_stops (*stops_at)(const char *),
          const char *(*by_bytes)(const char *, const char *))
{
    scan_stops stops;
    for (; end - p >= SCAN_STEP; p += SCAN_STEP) {
        if ((stops = stops_at(p)) != 0)
            return scan_first(p, stops);
    }
    if (end - start < SCAN_STEP)
        return by_bytes(p, end);
    return scan_last(p, end, stops_at(end - SCAN_STEP));
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
