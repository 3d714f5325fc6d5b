#include "ingest/decode/chain_field.h"

#include "base/check.h"
#include "ingest/decimal.h"
#include "ingest/decode/clf_request.h"
#include "ingest/decode/format_value.h"
#include "ingest/scan.h"

#define STATUS_DIGITS_MAX 3

static void put_odd(struct event *ev, enum field f)
{
    uint64_t bit = (uint64_t)1 << f;
    if (!scan_has_odd(ev->field[f].ptr, slice_end(ev->field[f])))
        return;
    ev->odd |= bit;
    ev->literal |= bit;
}

static inline void put(struct event *ev, enum field f, const char *from, const char *to, bool is_plain)
{
    chain_field_put_plain(ev, f, slice_of(from, (size_t)(to - from)));
    if (UNLIKELY(!is_plain))
        put_odd(ev, f);
}

static void put_target(struct event *ev, const char *from, const char *to, bool is_plain)
{
    put(ev, FIELD_TARGET, from, to, is_plain);
    struct slice path = clf_request_path(from, to);
    put(ev, FIELD_PATH, path.ptr, slice_end(path), is_plain);
}

/* Many call the target a path. */
static void put_path(struct event *ev, const char *from, const char *to, bool is_plain)
{
    struct slice path = clf_request_path(from, to);
    if (!event_has(ev, FIELD_TARGET) && path.len < (size_t)(to - from))
        put(ev, FIELD_TARGET, from, to, is_plain);
    put(ev, FIELD_PATH, path.ptr, slice_end(path), is_plain);
}

static void put_request(struct event *ev, const char *from, const char *to, bool is_plain)
{
    struct clf_request http;
    put(ev, FIELD_REQUEST, from, to, is_plain);
    if (from == to || !clf_request_split(from, to, &http))
        return;
    put(ev, FIELD_METHOD, from, http.target - 1, is_plain);
    put_target(ev, http.target, http.target_end, is_plain);
    if (http.target_end < to)
        put(ev, FIELD_PROTOCOL, http.target_end + 1, to, is_plain);
}

/* Takes the zeros off: some programs write each number as a fraction, 200.0. */
static struct slice take_integer(struct slice text)
{
    const char *dot = text.len > 0 ? memchr(text.ptr, '.', text.len) : NULL;
    const char *end = slice_end(text);
    while (dot != NULL && end > dot + 1 && end[-1] == '0')
        end--;
    bool is_integer = dot != NULL && end == dot + 1 && dot > text.ptr && slice_end(text) > end;
    return is_integer ? slice_of(text.ptr, (size_t)(dot - text.ptr)) : text;
}

static void set_unfit(struct event *ev, enum field f, struct slice text)
{
    if (event_has(ev, f)) /* of the line itself */
        return;
    ev->unfit |= (uint64_t)1 << f;
    ev->field[f] = text;
}

static enum reject_reason put_number(struct event *ev, enum field f, struct slice text)
{
    bool good;
    int64_t value;
    switch (f) {
    case FIELD_STATUS:
        text = take_integer(text);
        good = text.len <= STATUS_DIGITS_MAX && decimal_integer(text, EVENT_NUMBER_MAX, &value);
        break;
    case FIELD_BYTES: /* a number, since some write integers as 1e6 */
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
    if (!good && f == FIELD_VALUE)
        return REJECT_NUMBER;
    if (!good) {
        set_unfit(ev, f, text);
        return REJECT_COUNT;
    }
    put(ev, f, text.ptr, slice_end(text), true); /* a number has no odd bytes */
    ev->number[f] = value;
    ev->numeric &= ~((uint64_t)1 << f); /* it is one number */
    return REJECT_COUNT;
}

/* A list of numbers, as nginx writes those of several upstreams: its sum. */
static bool parse_list(struct slice text, int64_t *value)
{
    struct format_sum sum;
    const char *p = text.ptr, *end = slice_end(text);
    if (!format_value_add_up(&p, end, &sum) || p < end || sum.count == 0)
        return false;
    *value = sum.value;
    return true;
}

static void put_own(struct event *ev, enum field f, struct slice text, bool is_plain)
{
    put(ev, f, text.ptr, slice_end(text), is_plain);
    bool is_number = text.len > 0 && text.ptr[0] <= '9' &&
                     (decimal_parse(text, &ev->number[f]) == DECIMAL_OK || parse_list(text, &ev->number[f]));
    uint64_t bit = (uint64_t)1 << f;
    ev->numeric = is_number ? ev->numeric | bit : ev->numeric & ~bit;
}

enum reject_reason chain_field_put(struct event *ev, enum field f, struct slice text, bool is_plain)
{
    const char *from = text.ptr, *to = slice_end(text);
    if (f >= FIELD_COUNT) {
        put_own(ev, f, text, is_plain);
        return REJECT_COUNT;
    }
    if (event_is_absent(from, to))
        return REJECT_COUNT;
    switch (f) {
    case FIELD_STATUS:
    case FIELD_BYTES:
    case FIELD_VALUE:
        return put_number(ev, f, text);
    case FIELD_REQUEST:
        put_request(ev, from, to, is_plain);
        break;
    case FIELD_TARGET:
        put_target(ev, from, to, is_plain);
        break;
    case FIELD_PATH:
        put_path(ev, from, to, is_plain);
        break;
    default:
        put(ev, f, from, to, is_plain);
        break;
    }
    return REJECT_COUNT;
}
