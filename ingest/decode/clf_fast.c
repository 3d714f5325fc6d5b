/* The fast path reads a line in windows of 64 bytes. Two loads and a few compares give a word with a bit for
 * each byte that matters; one instruction finds the first of them.
 *
 * A line must end in a quote, so every search for the end of a field ends. If a window would reach beyond the
 * line, the line's last 64 bytes are loaded and shifted instead. So no byte outside of the line is read.
 *
 * Source: classifying bytes by a shuffle, and the walk over bits, are simdjson's (Geoff Langdale and Daniel
 * Lemire, "Parsing Gigabytes of JSON per Second", 2019). */
#include "ingest/decode/clf_fast.h"

#include "base/check.h"

#ifndef __x86_64__

bool clf_fast_can_run(void)
{
    return false;
}

bool clf_fast_decode(struct decoder *d, struct slice line, struct event *ev, struct reject *why)
{
    return clf_decode_any(d, line, ev, why);
}

#else

#include "ingest/decode/clf_request.h"
#include "ingest/decode/window.h"

#define TIME_BYTES     (CLF_NOBODY_BYTES + CLF_TIME_BYTES + 2) /* with the opening quote behind it */
#define LINE_MIN       (32 + TIME_BYTES + 2) /* host of 31 bytes, a space, the time, a byte, "\r" */
#define PROTOCOL_BYTES 9                     /* " HTTP/1.1" */
#define NUMBERS_BYTES  14                    /* "\" 200 12345678" */
#define BIT(f)         (1u << FIELD_##f)
#define FAST_FIELDS                                                                                   \
    (BIT(HOST) | BIT(REQUEST) | BIT(METHOD) | BIT(TARGET) | BIT(PATH) | BIT(PROTOCOL) | BIT(STATUS) | \
     BIT(BYTES) | BIT(REFERRER) | BIT(AGENT))

#define TWICE(...)               \
    {                            \
        __VA_ARGS__, __VA_ARGS__ \
    }
#define ALL(c) TWICE(c, c, c, c, c, c, c, c, c, c, c, c, c, c, c, c)
#define NO     (-1)

const struct window_tables window_tables __attribute__((aligned(32))) = {
    .space = ALL(' '),
    .question = ALL('?'),
    .quoted = TWICE(0, 0, '"', 0, 0, 0, 0, 0, 0, 0, 0, 0, '\\', 0, 0, 0x7F),
    .word = TWICE(' ', 0, '"', 0, 0, 0, 0, 0, 0, 0, ':', 0, '\\', 0, 0, 0x7F),
    .long_word = TWICE(' ', 0, '"', 0, 0, 0, 0, 0, 0, 0, 0, 0, '\\', 0, 0, 0x7F),
    .zero = TWICE('0', '0', '0', '0', '0', '0', '0', '0'),
    .above_9 = TWICE(0x76, 0x76, 0x76, 0x76, 0x76, 0x76, 0x76, 0x76), /* sets the sign of 10 and more */
    .weights_10 = TWICE(10, 1, 10, 1, 10, 1, 10, 1),
    .weights_100 = TWICE(100, 1, 100, 1),
    .weights_10000 = TWICE(10000, 1, 10000, 1),
    .columns = {{NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, 4, 5, 6},
                {NO, NO, NO, NO, NO, NO, NO, 8, NO, NO, NO, NO, NO, 4, 5, 6},
                {NO, NO, NO, NO, NO, NO, 8, 9, NO, NO, NO, NO, NO, 4, 5, 6},
                {NO, NO, NO, NO, NO, 8, 9, 10, NO, NO, NO, NO, NO, 4, 5, 6},
                {NO, NO, NO, NO, 8, 9, 10, 11, NO, NO, NO, NO, NO, 4, 5, 6},
                {NO, NO, NO, 8, 9, 10, 11, 12, NO, NO, NO, NO, NO, 4, 5, 6},
                {NO, NO, 8, 9, 10, 11, 12, 13, NO, NO, NO, NO, NO, 4, 5, 6},
                {NO, 8, 9, 10, 11, 12, 13, 14, NO, NO, NO, NO, NO, 4, 5, 6},
                {8, 9, 10, 11, 12, 13, 14, 15, NO, NO, NO, NO, NO, 4, 5, 6}},
};

/* A line being read. Functions called take_… put fields into the event and return the next byte, or NULL: the
 * line is not usual. */
struct reading {
    const struct clf *clf;
    const char *last; /* start of the line's last window */
    struct event *ev;
    uint32_t present;
    const struct window_tables *tables;
    __m256i space, quoted; /* tables that stay in registers */
};

static HOT __m256i stops(const struct reading *r, const char *p, __m256i marks)
{
    return window_stops(p, marks, r->space);
}

/* A bit for each of the WINDOW bytes at `p`: is it a quote or odd? */
static HOT uint64_t quoted_stops(const struct reading *r, const char *p)
{
    return window_signs(stops(r, p, r->quoted), stops(r, p + 32, r->quoted));
}

/* The first quote or odd byte from `p` on. One exists: the quote at the line's end. Pre: p is before it. */
static HOT const char *quoted_end(const struct reading *r, const char *p)
{
    for (;; p += WINDOW) {
        const char *at = p < r->last ? p : r->last;
        uint64_t found = quoted_stops(r, at) >> (p - at);
        if (found != 0)
            return p + first_bit(found);
    }
}

static HOT void put(struct reading *r, enum field f, const char *from, const char *to)
{
    r->ev->field[f] = slice_of(from, (size_t)(to - from));
}

/* Puts the slice even if it is "-", which is cheaper than a branch, and clears the field's bit. The field
 * contains no quote, so "\"-" at its end means that the field is "-". */
static HOT void put_unless_dash(struct reading *r, enum field f, const char *from, const char *to)
{
    put(r, f, from, to);
    r->present ^= (uint32_t)(load16(to - 2) == load16("\"-")) << f;
}

/* Takes a host of up to 63 bytes that ends with a space, and not with another mark. */
static HOT const char *take_long_host(struct reading *r, const char *p, const signed char marks[32])
{
    if (p > r->last)
        return NULL;
    uint64_t found = window_signs(stops(r, p, load256(marks)), stops(r, p + 32, load256(marks)));
    const char *end = p + first_bit(found);
    if (found == 0 || *end != ' ' || end - p < 2 || end >= r->last + WINDOW - 1 - TIME_BYTES)
        return NULL;
    put(r, FIELD_HOST, p, end);
    return end + 1;
}

/* Takes an IPv6 address, or a server with its port and the host behind it. */
static HOT const char *take_host_with_colon(struct reading *r, const char *p, const char *colon)
{
    const char *port = colon + 1, *end = port;
    if (r->clf->format == CLF_COMBINED)
        return take_long_host(r, p, r->tables->long_word);
    while (*end >= '0' && *end <= '9' && end - port < 5)
        end++;
    if (end > port && *end == ' ') {
        if (colon - p < 2 || *p == '[') /* "-", or an address that may go on behind the colon */
            return NULL;
        put(r, FIELD_VHOST, p, colon);
        put(r, FIELD_PORT, port, end);
        r->present |= BIT(VHOST) | BIT(PORT);
        return take_long_host(r, end + 1, r->tables->long_word);
    }
    return r->clf->format == CLF_AUTO && *p != '[' ? take_long_host(r, p, r->tables->long_word) : NULL;
}

static HOT const char *take_host(struct reading *r, const char *p)
{
    uint32_t found = (uint32_t)_mm256_movemask_epi8(stops(r, p, load256(r->tables->word))) | 1u << 31;
    const char *end = p + first_bit(found);
    if (UNLIKELY(*end != ' ')) {
        if (*end == ':')
            return take_host_with_colon(r, p, end);
        return r->clf->format != CLF_VHOST_COMBINED ? take_long_host(r, p, r->tables->word) : NULL;
    }
    if (UNLIKELY(end - p < 2 || r->clf->format == CLF_VHOST_COMBINED)) /* "-" is too short as well */
        return NULL;
    put(r, FIELD_HOST, p, end);
    return end + 1;
}

/* Takes "- frank [05/Jan/2026:00:00:00 +0000] \"". */
static HOT const char *take_user_and_time(struct reading *r, const char *p)
{
    const char *user = p + 2;
    uint32_t found = (uint32_t)_mm256_movemask_epi8(stops(r, user, load256(r->tables->long_word)));
    const char *end = user + first_bit(found), *next = end + 1 + CLF_TIME_BYTES;
    if (load16(p) != load16("- ") || found == 0 || next + 2 >= r->last + WINDOW || *end != ' ' ||
        end - user < 2 || !clf_time_cached(r->clf->minutes, end + 1, &r->ev->at_ms) ||
        load16(next) != load16(" \""))
        return NULL;
    put(r, FIELD_USER, user, end);
    r->present |= BIT(USER);
    return next + 2;
}

static HOT const char *take_time(struct reading *r, const char *p)
{
    const struct clf_minute *m = r->clf->minutes;
    if (UNLIKELY(!window_is_in_minute(&m[0], p, 0, &r->ev->at_ms)) &&
        !window_is_in_minute(&m[1], p, 0, &r->ev->at_ms))
        return take_user_and_time(r, p);
    p += TIME_BYTES;
    return load16(p - 2) == load16(" \"") ? p : NULL;
}

/* The first '?' in a long target; without one, its end. */
static HOT const char *question_or_end(const struct reading *r, const char *p, const char *end)
{
    for (; end - p >= 32; p += 32) {
        __m256i equal = _mm256_cmpeq_epi8(load256(r->tables->question), load256(p));
        uint32_t found = (uint32_t)_mm256_movemask_epi8(equal);
        if (found != 0)
            return p + first_bit(found);
    }
    while (p < end && *p != '?')
        p++;
    return p;
}

/* Takes "GET /a?b HTTP/1.1"; returns its closing quote. */
static HOT const char *take_request(struct reading *r, const char *p)
{
    const char *q, *end, *path_end, *method = p + 3;
    uint64_t found = LIKELY(p <= r->last) ? quoted_stops(r, p) : 0;
    if (LIKELY(found != 0)) { /* its lowest bit, moved to the target's end, ends the search for '?', too */
        q = p + first_bit(found);
        end = q - PROTOCOL_BYTES;
        path_end = p + first_bit(window_questions(r->tables, p) | (found & -found) >> PROTOCOL_BYTES);
    } else {
        if (UNLIKELY(p > r->last + WINDOW - 4)) /* the line ends too soon to look at a method */
            return NULL;
        q = quoted_end(r, p);
        end = q - PROTOCOL_BYTES;
        path_end = question_or_end(r, p, end);
    }
    if (UNLIKELY(load32(p) != load32("GET "))) {
        for (method = p; *method >= 'A' && *method <= 'Z';)
            method++;
        if (method == p || *method != ' ')
            return NULL;
    }
    /* The time precedes the request, so reading before a short request stays inside the line. A target that
     * begins with a slash is not empty, and its path begins there. */
    if (UNLIKELY((load64(end) | load64("\0\0\0\0\0\0\3")) != load64(" HTTP/3.") || q[-1] == ' ' ||
                 method[1] != '/'))
        return NULL;
    put(r, FIELD_REQUEST, p, q);
    put(r, FIELD_METHOD, p, method);
    put(r, FIELD_TARGET, method + 1, end);
    put(r, FIELD_PATH, method + 1, path_end);
    put(r, FIELD_PROTOCOL, end + 1, q);
    return q;
}

/* Takes "\" 200 2326 \"" at the request's closing quote. The load begins two bytes early, so that it can end
 * with the longest size, or with a short line. */
static HOT const char *take_numbers(struct reading *r, const char *p)
{
    if (UNLIKELY(p > r->last + WINDOW - NUMBERS_BYTES))
        return NULL;
    int64_t status, size;
    size_t digits = window_numbers(r->tables, p + 2, &status, &size);
    if (digits > 8 || load16(p) != load16("\" "))
        return NULL;
    const char *end = p + 6 + digits;
    if (end > r->last + WINDOW - 4)
        return NULL;
    put(r, FIELD_STATUS, p + 2, p + 5);
    put(r, FIELD_BYTES, p + 6, end);
    r->ev->number[FIELD_STATUS] = status;
    r->ev->number[FIELD_BYTES] = size;
    if (UNLIKELY(digits == 0)) {
        if (*end++ != '-')
            return NULL;
        r->present ^= BIT(BYTES);
    }
    return load16(end) == load16(" \"") ? end + 2 : NULL;
}

static HOT const char *take_referrer(struct reading *r, const char *p)
{
    if (UNLIKELY(*p == '"')) /* an empty text is absent */
        return NULL;
    const char *q = quoted_end(r, p);
    put_unless_dash(r, FIELD_REFERRER, p, q);
    return q <= r->last + WINDOW - 4 && (load32(q) & 0xFFFFFF) == load32("\" \"") ? q + 3 : NULL;
}

/* Takes the agent, up to the quote that ends the line. False: a byte before it is a quote or odd. */
static HOT bool take_agent(struct reading *r, const char *p)
{
    uint64_t tail = quoted_stops(r, r->last) ^ UINT64_C(1) << (WINDOW - 1);
    put_unless_dash(r, FIELD_AGENT, p, r->last + WINDOW - 1);
    if (p >= r->last)
        return tail >> (p - r->last) == 0;
    for (; p < r->last; p += WINDOW) {
        __m256i low = stops(r, p, r->quoted), high = stops(r, p + 32, r->quoted);
        if (_mm256_movemask_epi8(_mm256_or_si256(low, high)) != 0)
            return false;
    }
    return tail == 0;
}

bool clf_fast_can_run(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
}

static HOT bool read_fast(const struct clf *c, struct slice line, struct event *ev)
{
    const char *p = line.ptr, *end = p + line.len;
    if (UNLIKELY(line.len < LINE_MIN))
        return false;
    if (UNLIKELY(end[-1] != '"') && (*--end != '\r' || end[-1] != '"'))
        return false;
    if (UNLIKELY(end[-2] == '"')) /* so is the agent */
        return false;
    const char *last = end - WINDOW;
    const struct window_tables *t = &window_tables;
    __asm__("" : "+r"(last), "+r"(t)); /* stops the compiler from recomputing both at each use */
    struct reading r = {c, last, ev, FAST_FIELDS, t, load256(t->space), load256(t->quoted)};
    if ((p = take_host(&r, p)) == NULL || (p = take_time(&r, p)) == NULL)
        return false;
    if ((p = take_request(&r, p)) == NULL || (p = take_numbers(&r, p)) == NULL)
        return false;
    if ((p = take_referrer(&r, p)) == NULL || !take_agent(&r, p))
        return false;
    ev->present = r.present;
    ev->odd = 0;
    return true;
}

AVX2 bool clf_fast_decode(struct decoder *d, struct slice line, struct event *ev, struct reject *why)
{
    struct clf *c = (struct clf *)d;
    if (LIKELY(read_fast(c, line, ev)))
        return true;
    c->slow_count++;
    return clf_decode_any(d, line, ev, why);
}

#endif
