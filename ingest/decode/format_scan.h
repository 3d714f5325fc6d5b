/* format_scan.h - the searches of format_fast.c: by windows of 64 bytes (window.h) on x86 with AVX2, else by
 * steps of 16 bytes (scan.h).
 *
 * Usual   : each search may give up: then format_run.c reads the field. So the two halves may differ in what
 *           they call usual, but not in what they find.
 * Pre     : start <= p <= end, and the line has SCAN_LINE_MIN bytes.
 */
#pragma once

#include "base/check.h"
#include "ingest/decode/clf_number.h"
#include "ingest/decode/clf_time.h"
#include "ingest/scan.h"

#define SCAN_LINE_MIN 64

#ifdef __x86_64__

#include "ingest/decode/clf_fast.h"
#include "ingest/decode/window.h"

#define FAST_TARGET AVX2

struct scan_line {
    const char *end, *last; /* last: start of the line's last window */
    const struct window_tables *tables;
    __m256i space, quoted;
};

static inline bool scan_line_can_run(void)
{
    return clf_fast_can_run();
}

static HOT struct scan_line scan_line_of(const char *end)
{
    const struct window_tables *t = &window_tables;
    __asm__("" : "+r"(t)); /* stops the compiler from computing it at each use */
    return (struct scan_line){end, end - WINDOW, t, load256(t->space), load256(t->quoted)};
}

/* The end of a word of less than 32 bytes: a space, or the line's end; NULL: nothing ends it so. */
static HOT const char *scan_line_word(const struct scan_line *s, const char *p)
{
    const char *at = LIKELY(p <= s->last + 32) ? p : s->last + 32;
    uint32_t found =
        (uint32_t)_mm256_movemask_epi8(window_stops(at, load256(s->tables->long_word), s->space));
    if (UNLIKELY(p == s->end || (found >>= p - at) == 0))
        return at == s->last + 32 ? s->end : NULL;
    const char *q = p + first_bit(found);
    return LIKELY(*q == ' ') ? q : NULL;
}

/* The first colon, before any space; NULL: there is none in the next 32 bytes. */
static HOT const char *scan_line_colon(const struct scan_line *s, const char *p)
{
    if (UNLIKELY(p > s->last + 32))
        return NULL;
    uint32_t found = (uint32_t)_mm256_movemask_epi8(window_stops(p, load256(s->tables->word), s->space));
    const char *q = p + first_bit(found);
    return LIKELY(found != 0 && *q == ':') ? q : NULL;
}

/* A bit for each of the WINDOW bytes at `p`: is it a quote or odd? */
static HOT uint64_t scan_line_quoted_stops(const struct scan_line *s, const char *p)
{
    return window_signs(window_stops(p, s->quoted, s->space), window_stops(p + 32, s->quoted, s->space));
}

/* The quote that ends a text; NULL: none does, or there is an odd byte before it. */
static HOT const char *scan_line_quote(const struct scan_line *s, const char *p)
{
    uint64_t found;
    for (; LIKELY(p <= s->last); p += WINDOW) {
        if (LIKELY((found = scan_line_quoted_stops(s, p)) != 0)) {
            p += first_bit(found);
            return LIKELY(*p == '"') ? p : NULL;
        }
    }
    if (p >= s->end || (found = scan_line_quoted_stops(s, s->last) >> (p - s->last)) == 0)
        return NULL;
    p += first_bit(found);
    return LIKELY(*p == '"') ? p : NULL;
}

/* The first '?' of a target, or its end. */
static HOT const char *scan_line_question(const struct scan_line *s, const char *p, const char *end)
{
    if (LIKELY(p <= s->last && end - p < WINDOW)) {
        uint64_t found = window_questions(s->tables, p) | (uint64_t)1 << (end - p);
        return p + first_bit(found);
    }
    const char *question = memchr(p, '?', (size_t)(end - p));
    return question != NULL ? question : end;
}

/* Is the time at `p` in a cached minute? Pre: its bytes are of the line. */
static HOT bool scan_line_time(const struct clf_minute minutes[2], const char *start, const char *p,
                               int64_t *at_ms)
{
    const uint32_t nobody = (1u << CLF_NOBODY_BYTES) - 1; /* the bytes before the time */
    if (UNLIKELY(p - start < CLF_NOBODY_BYTES))
        return clf_time_cached(minutes, p, at_ms);
    p -= CLF_NOBODY_BYTES;
    return LIKELY(window_is_in_minute(&minutes[0], p, nobody, at_ms)) ||
           window_is_in_minute(&minutes[1], p, nobody, at_ms);
}

/* The same with "- - " before it. */
static HOT bool scan_line_nobody(const struct clf_minute minutes[2], const char *p, int64_t *at_ms)
{
    return LIKELY(window_is_in_minute(&minutes[0], p, 0, at_ms)) ||
           window_is_in_minute(&minutes[1], p, 0, at_ms);
}

/* As window_numbers(). */
static HOT size_t scan_line_numbers(const struct scan_line *s, const char *p, int64_t *status, int64_t *size)
{
    return window_numbers(s->tables, p, status, size);
}

#else

#define FAST_TARGET
#define HOT inline __attribute__((always_inline))

struct scan_line {
    const char *end;
};

static inline bool scan_line_can_run(void)
{
    return true;
}

static HOT struct scan_line scan_line_of(const char *end)
{
    return (struct scan_line){end};
}

static HOT const char *scan_line_word(const struct scan_line *s, const char *p)
{
    const char *q = scan_word(p, s->end);
    return q == s->end || *q == ' ' ? q : NULL;
}

static HOT const char *scan_line_colon(const struct scan_line *s, const char *p)
{
    const char *q = scan_word(p, s->end);
    return q < s->end && *q == ':' ? q : NULL;
}

static HOT const char *scan_line_quote(const struct scan_line *s, const char *p)
{
    const char *q = scan_quoted(p, s->end, '"');
    return q < s->end && *q == '"' ? q : NULL;
}

static HOT const char *scan_line_question(const struct scan_line *s, const char *p, const char *end)
{
    (void)s;
    const char *question = memchr(p, '?', (size_t)(end - p));
    return question != NULL ? question : end;
}

static HOT bool scan_line_time(const struct clf_minute minutes[2], const char *start, const char *p,
                               int64_t *at_ms)
{
    (void)start;
    return clf_time_cached(minutes, p, at_ms);
}

static HOT bool scan_line_nobody(const struct clf_minute minutes[2], const char *p, int64_t *at_ms)
{
    return load32(p) == load32(CLF_NOBODY) && clf_time_cached(minutes, p + CLF_NOBODY_BYTES, at_ms);
}

static HOT size_t scan_line_numbers(const struct scan_line *s, const char *p, int64_t *status, int64_t *size)
{
    (void)s;
    *size = 0;
    if (!clf_number_status(p - 1, status) || p[3] != ' ')
        return SIZE_MAX;
    size_t digits = clf_number_digits(p + 4, size);
    return digits > 0 || p[4] == '-' ? digits : SIZE_MAX;
}

#endif
