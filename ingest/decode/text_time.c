#include "ingest/decode/text_time.h"

#include "ingest/decimal.h"

#define SLASHED_BYTES  19 /* "2000/10/10 13:55:36" */
#define FRACTION_BYTES 24 /* "10/Oct/2000:13:55:36.123" */
#define FRACTION_POINT 20

/* Parses "[10/Oct/2000:13:55:36 -0700]". */
static bool parse_clf(struct text_time *tt, const char *p, int64_t *at_ms, enum reject_reason *reason)
{
    const char *at;
    return clf_time_cached(tt->clf_minutes, p, at_ms) ||
           clf_time_parse(tt->clf_minutes, p, p + CLF_TIME_BYTES, at_ms, reason, &at);
}

/* Parses "10/Oct/2000:13:55:36.123" (UTC). */
static bool parse_fraction(struct text_time *tt, struct slice text, int64_t *at_ms,
                           enum reject_reason *reason)
{
    int64_t ms;
    char copy[CLF_TIME_BYTES + 1] = "[10/Oct/2000:13:55:36 +0000]";
    memcpy(copy + 1, text.ptr, FRACTION_POINT);
    *reason = REJECT_TIME;
    if (!decimal_integer(slice_of(text.ptr + FRACTION_POINT + 1, 3), 999, &ms) ||
        !parse_clf(tt, copy, at_ms, reason))
        return false;
    *at_ms += ms;
    return true;
}

bool text_time_parse(struct text_time *tt, struct slice text, int64_t *at_ms, enum reject_reason *reason)
{
    char copy[CLF_TIME_BYTES];
    if (text.len == CLF_TIME_BYTES && text.ptr[0] == '[')
        return parse_clf(tt, text.ptr, at_ms, reason);
    if (text.len == CLF_TIME_BYTES - 2 && text.ptr[2] == '/') {
        copy[0] = '[';
        memcpy(copy + 1, text.ptr, text.len);
        copy[CLF_TIME_BYTES - 1] = ']';
        return parse_clf(tt, copy, at_ms, reason);
    }
    if (text.len == FRACTION_BYTES && text.ptr[2] == '/' && text.ptr[FRACTION_POINT] == '.')
        return parse_fraction(tt, text, at_ms, reason);
    if (text.len == SLASHED_BYTES && text.ptr[4] == '/' && text.ptr[7] == '/') {
        memcpy(copy, text.ptr, SLASHED_BYTES);
        copy[4] = copy[7] = '-';
        text.ptr = copy;
    }
    return timestamp_parse_near(&tt->minute, text, at_ms, reason);
}
