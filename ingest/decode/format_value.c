#include "ingest/decode/format_value.h"

#include "ingest/decimal.h"
#include "ingest/decode/json.h"
#include "ingest/event.h"
#include "ingest/scan.h"

#define NUMBER_TEXT_BYTES 32
#define DECIMALS          6 /* of EVENT_SCALE */

bool format_value_undo_json(struct arena *memory, const char **from, const char **to)
{
    const char *at;
    for (const char *p = *from, *escape; (escape = memchr(p, '\\', (size_t)(*to - p))) != NULL;) {
        if ((p = json_escape_end(escape, *to, &at)) == NULL) {
            *from = escape;
            return false;
        }
    }
    char *out = arena_add(memory, (size_t)(*to - *from));
    *to = out + json_unescape(slice_of(*from, (size_t)(*to - *from)), out);
    *from = out;
    return true;
}

struct slice format_value_print(struct arena *memory, int64_t value)
{
    char *buf = arena_add(memory, NUMBER_TEXT_BYTES), *end = buf + NUMBER_TEXT_BYTES, *p = end;
    uint64_t magnitude = value < 0 ? -(uint64_t)value : (uint64_t)value;
    uint64_t whole = magnitude / EVENT_SCALE;
    uint32_t decimals = (uint32_t)(magnitude % EVENT_SCALE);
    unsigned digits = DECIMALS;
    for (; digits > 0 && decimals % 10 == 0; decimals /= 10)
        digits--;
    for (unsigned i = 0; i < digits; i++, decimals /= 10)
        *--p = (char)('0' + decimals % 10);
    if (digits > 0)
        *--p = '.';
    do
        *--p = (char)('0' + whole % 10);
    while ((whole /= 10) > 0);
    if (value < 0)
        *--p = '-';
    return slice_of(p, (size_t)(end - p));
}

const char *format_value_number_end(const char *p, const char *end)
{
    p += p < end && (*p == '-' || *p == '+');
    while (p < end && (format_value_is_digit(*p) || *p == '.'))
        p++;
    return p;
}

bool format_value_parse(struct slice text, int scale, int64_t *value)
{
    if (scale == EVENT_SCALE)
        return decimal_parse(text, value) == DECIMAL_OK;
    bool is_negative = text.len > 0 && text.ptr[0] == '-';
    if (!decimal_integer(slice_of(text.ptr + is_negative, text.len - is_negative), (int64_t)1 << 56, value) ||
        *value > EVENT_DECIMAL_MAX / scale)
        return false;
    *value *= is_negative ? -scale : scale;
    return true;
}

bool format_value_add_up(const char **p, const char *end, struct format_sum *sum)
{
    *sum = (struct format_sum){0};
    do {
        int64_t value;
        const char *q = format_value_number_end(*p, end);
        struct slice text = slice_of(*p, (size_t)(q - *p));
        if (text.len > 0 && !slice_is(text, "-")) {
            if (decimal_parse(text, &value) != DECIMAL_OK || value < 0 ||
                (sum->value += value) > EVENT_DECIMAL_MAX)
                return false;
            sum->last = text;
            sum->count++;
        }
        *p = q;
    } while (format_value_skip_separator(p, end));
    return true;
}

bool format_value_skip_separator(const char **p, const char *end)
{
    size_t len = end - *p >= 2 && memcmp(*p, ", ", 2) == 0    ? 2
                 : end - *p >= 3 && memcmp(*p, " : ", 3) == 0 ? 3
                                                              : 0;
    *p += len;
    return len > 0;
}

const char *format_value_find(const char *p, const char *end, char stop, bool escapes, bool *odd)
{
    for (; p < end && *p != stop; p++) {
        *odd |= scan_is_odd(*p);
        if (*p == '\\' && end - p >= 2 && escapes)
            p++;
    }
    return p;
}
