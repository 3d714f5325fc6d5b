#include "ingest/decode/syslog.h"

#include "ingest/timestamp.h"

#define PRIORITY_MAX 191
#define TIME_BYTES   15 /* "Oct 11 22:14:15" */

/* Functions called take_… return the next byte; NULL: `at` is the byte that does not fit. */
struct reading {
    const char *end;
    const char *at;
};

static const char *fail(struct reading *r, const char *at)
{
    r->at = at;
    return NULL;
}

static bool is_digit(const struct reading *r, const char *p)
{
    return p < r->end && *p >= '0' && *p <= '9';
}

/* Takes "<34>", or nothing. */
static const char *take_priority(struct reading *r, const char *p)
{
    if (p == r->end || *p != '<')
        return p;
    int value = 0;
    const char *from = ++p;
    for (; is_digit(r, p) && value <= PRIORITY_MAX; p++)
        value = value * 10 + (*p - '0');
    return p > from && value <= PRIORITY_MAX && p < r->end && *p == '>' ? p + 1 : fail(r, p);
}

static const char *word_end(const struct reading *r, const char *p)
{
    const char *space = p < r->end ? memchr(p, ' ', (size_t)(r->end - p)) : NULL;
    return space != NULL ? space : r->end;
}

/* Takes a word and the space behind it. */
static const char *take_word(struct reading *r, const char *p)
{
    const char *end = word_end(r, p);
    return end > p && end < r->end ? end + 1 : fail(r, end);
}

/* Takes `[id name="a \"quoted\" value" …]`, one or several, or "-". */
static const char *take_structured_data(struct reading *r, const char *p)
{
    if (p < r->end && *p == '-')
        return p + 1;
    if (p == r->end || *p != '[')
        return fail(r, p);
    bool in_quotes = false, in_element = false;
    for (; p < r->end; p++) {
        if (!in_element && *p != '[')
            break;
        in_element = true;
        if (in_quotes && *p == '\\' && r->end - p >= 2)
            p++;
        else if (*p == '"')
            in_quotes = !in_quotes;
        else if (*p == ']' && !in_quotes)
            in_element = false;
    }
    return in_element ? fail(r, r->end) : p;
}

/* Takes a header of RFC 5424 from behind "<34>1 " on. */
static const char *take_rfc5424(struct reading *r, const char *p)
{
    int64_t at_ms;
    enum reject_reason reason;
    const char *end = word_end(r, p);
    size_t len = (size_t)(end - p);
    if ((len != 1 || *p != '-') && timestamp_take(slice_of(p, len), &at_ms, &reason) != len)
        return fail(r, p);
    for (int i = 0; i < 5; i++) { /* time, host, app, process, message id */
        if ((p = take_word(r, p)) == NULL)
            return NULL;
    }
    if ((p = take_structured_data(r, p)) == NULL || p == r->end)
        return p;
    return *p == ' ' ? p + 1 : fail(r, p);
}

/* Is it "Mmm dd hh:mm:ss"? A space or a zero may fill the day. */
static bool is_old_time(const char *p)
{
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec", shape[] = "MMM 00 00:00:00";
    bool known = false;
    for (size_t i = 0; i < sizeof months - 1; i += 3)
        known |= memcmp(months + i, p, 3) == 0;
    for (size_t i = 3; i < TIME_BYTES && known; i++) {
        bool is_digit_there = p[i] >= '0' && p[i] <= '9';
        known = shape[i] == '0' ? is_digit_there || (i == 4 && p[i] == ' ') : p[i] == shape[i];
    }
    return known;
}

/* Takes "host app[123]: "; either part may be missing. */
static const char *take_host_and_tag(struct reading *r, const char *p)
{
    for (int i = 0; i < 2; i++) {
        const char *end = word_end(r, p);
        bool is_tag = end - p >= 2 && end[-1] == ':';
        if (i == 1 && !is_tag)
            return p;
        if (end == p || (end == r->end && !is_tag))
            return fail(r, end);
        p = end + (end < r->end);
        if (is_tag)
            return p;
    }
    return p;
}

static const char *take_rfc3164(struct reading *r, const char *p)
{
    int64_t at_ms;
    enum reject_reason reason;
    const char *end = word_end(r, p);
    if (r->end - p > TIME_BYTES && p[TIME_BYTES] == ' ' && is_old_time(p))
        end = p + TIME_BYTES;
    else if (end == p || timestamp_take(slice_of(p, (size_t)(end - p)), &at_ms, &reason) != (size_t)(end - p))
        return fail(r, p);
    return end < r->end ? take_host_and_tag(r, end + 1) : fail(r, end);
}

bool syslog_parse(struct slice line, struct slice *text, const char **at)
{
    struct reading r = {.end = slice_end(line)};
    if (line.len > 0 && r.end[-1] == '\r')
        r.end--;
    const char *p = take_priority(&r, line.ptr);
    if (p != NULL) {
        bool is_new = r.end - p >= 2 && *p >= '1' && *p <= '9' && p[1] == ' ';
        p = is_new ? take_rfc5424(&r, p + 2) : take_rfc3164(&r, p);
    }
    *at = r.at;
    if (p == NULL)
        return false;
    if (r.end - p >= 3 && memcmp(p, "\xEF\xBB\xBF", 3) == 0)
        p += 3;
    *text = slice_of(p, (size_t)(r.end - p));
    return true;
}
