#include "ingest/chain_field.h"

#include "base/check.h"
#include "ingest/clf_request.h"
#include "ingest/decimal.h"
#include "ingest/scan.h"

#define STATUS_DIGITS_MAX 3

static bool has_odd(const char *p, const char *end)
{
#ifdef __SSE2__
    /* a byte from 0x20 to 0x7E, and no backslash: alike in all of the wide steps, the rest by bytes */
    const __m128i space = _mm_set1_epi8(0x1F), delete = _mm_set1_epi8(0x7F), backslash = _mm_set1_epi8('\\');
    for (; end - p >= SCAN_STEP; p += SCAN_STEP) {
        __m128i v = _mm_loadu_si128((const __m128i *)(const void *)p);
        __m128i bad = _mm_or_si128(_mm_cmpeq_epi8(v, delete), _mm_cmpeq_epi8(v, backslash));
        if (_mm_movemask_epi8(_mm_andnot_si128(bad, _mm_cmpgt_epi8(v, space))) != 0xFFFF)
            return true;
    }
#endif
    return scan_has_odd(p, end);
}

static void put(struct event *ev, enum field f, const char *from, const char *to)
{
    uint64_t bit = (uint64_t)1 << f;
    bool odd = has_odd(from, to);
    ev->field[f] = slice_of(from, (size_t)(to - from));
    ev->present |= bit;
    ev->numeric &= ~bit;
    ev->literal |= bit;
    ev->odd = odd ? ev->odd | bit : ev->odd & ~bit;
}

static void put_target(struct event *ev, const char *from, const char *to)
{
    const char *question = from < to ? memchr(from, '?', (size_t)(to - from)) : NULL;
    put(ev, FIELD_TARGET, from, to);
    put(ev, FIELD_PATH, from, question != NULL ? question : to);
}

static void put_request(struct event *ev, const char *from, const char *to)
{
    struct clf_request http;
    put(ev, FIELD_REQUEST, from, to);
    if (from == to || !clf_request_split(from, to, &http))
        return;
    put(ev, FIELD_METHOD, from, http.target - 1);
    put_target(ev, http.target, http.target_end);
    if (http.target_end < to)
        put(ev, FIELD_PROTOCOL, http.target_end + 1, to);
}

static enum reject_reason put_number(struct event *ev, enum field f, struct slice text)
{
    bool good;
    int64_t value;
    if (text.len == 0)
        return REJECT_COUNT;
    switch (f) {
    case FIELD_STATUS:
        good = text.len <= STATUS_DIGITS_MAX && decimal_integer(text, EVENT_NUMBER_MAX, &value);
        break;
    case FIELD_BYTES: /* some write integers as 1e6 */
        good = decimal_integer(text, EVENT_NUMBER_MAX, &value);
        if (!good && decimal_parse(text, &value) == DECIMAL_OK && value >= 0 && value % EVENT_SCALE == 0) {
            value /= EVENT_SCALE;
            good = true;
        }
        break;
    default:
        good = decimal_parse(text, &value) == DECIMAL_OK;
        break;
    }
    if (!good)
        return f == FIELD_STATUS ? REJECT_STATUS : f == FIELD_BYTES ? REJECT_BYTES : REJECT_NUMBER;
    put(ev, f, text.ptr, slice_end(text));
    ev->number[f] = value;
    return REJECT_COUNT;
}

static void put_own(struct event *ev, enum field f, struct slice text)
{
    put(ev, f, text.ptr, slice_end(text));
    if (text.len > 0 && text.ptr[0] <= '9' && decimal_parse(text, &ev->number[f]) == DECIMAL_OK)
        ev->numeric |= (uint64_t)1 << f;
}

enum reject_reason chain_field_put(struct event *ev, enum field f, struct slice text)
{
    const char *from = text.ptr, *to = slice_end(text);
    if (f >= FIELD_COUNT) {
        put_own(ev, f, text);
        return REJECT_COUNT;
    }
    if (text.len == 1 && *from == '-')
        return REJECT_COUNT;
    switch (f) {
    case FIELD_STATUS:
    case FIELD_BYTES:
    case FIELD_VALUE:
        return put_number(ev, f, text);
    case FIELD_REQUEST:
        put_request(ev, from, to);
        break;
    case FIELD_TARGET:
        put_target(ev, from, to);
        break;
    default:
        put(ev, f, from, to);
        break;
    }
    return REJECT_COUNT;
}
