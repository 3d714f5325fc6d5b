#include "aggregate/keep.h"

#include "base/suggest.h"
#include "base/units.h"

#include <inttypes.h>
#include <stdio.h>

#define KEEP_MAX_MS ((int64_t)100000 * DAY_MS)
#define UNITS       (&units_durations[1]) /* seconds or more */

/* The shortest time that makes sense: one time bucket. */
static const int64_t shortest_ms[SPAN_COUNT] = {SECOND_MS, MINUTE_MS, HOUR_MS, DAY_MS, 31 * (int64_t)DAY_MS};

/* False: no duration, or out of range. *ms 0: for ever. */
static bool parse(struct slice text, int64_t *ms)
{
    *ms = 0;
    if (slice_is(text, "forever"))
        return true;
    return units_parse(UNITS, text, ms) && *ms > 0 && *ms <= KEEP_MAX_MS;
}

bool keep_set(struct report *r, struct slice span, struct slice text, struct err *e)
{
    static const char *const spans[] = {"second", "minute", "hour", "day", "month", NULL};
    char quote[SUGGEST_QUOTE_BYTES], hint[SUGGEST_HINT_BYTES], least[KEEP_BYTES];
    enum span found;
    int64_t ms;
    if (!span_parse(span, &found))
        return err_set(e, EX_CONFIG, "found %s, expected second, minute, hour, day or month%s",
                       suggest_quote(span, quote), suggest_hint(span, spans, hint));
    if (!parse(text, &ms) || (ms > 0 && ms < shortest_ms[found]))
        return err_set(e, EX_CONFIG,
                       "found %s, expected how long each %s is kept: from %s to 100000d, such as 36h, or "
                       "forever",
                       suggest_quote(text, quote), span_name(found), keep_text(shortest_ms[found], least));
    r->keep_ms[found] = ms;
    return true;
}

bool keep_check(const struct report *r, struct err *e)
{
    char shorter[KEEP_BYTES], longer[KEEP_BYTES];
    if (report_cell(r) > SPAN_SECOND && r->keep_ms[SPAN_SECOND] > 0)
        return err_set(
            e, EX_CONFIG,
            "found keep of seconds, expected it with `layout: minute` only: other layouts count no seconds");
    for (int s = (int)report_cell(r); s + 1 < SPAN_COUNT; s++) {
        int64_t ms = r->keep_ms[s], next_ms = r->keep_ms[s + 1];
        if (next_ms == 0 || (ms > 0 && ms <= next_ms))
            continue;
        const char *name = span_name((enum span)s), *next = span_name((enum span)(s + 1));
        return err_set(e, EX_CONFIG,
                       "found keep of %ss %s and of %ss %s, expected %ss at least as long as %ss: queries "
                       "for expired buckets read longer ones",
                       name, keep_text(ms, shorter), next, keep_text(next_ms, longer), next, name);
    }
    return true;
}

const char *keep_text(int64_t keep_ms, char buf[KEEP_BYTES])
{
    if (keep_ms == 0)
        return "forever";
    const struct unit *u = units_of(UNITS, keep_ms);
    snprintf(buf, KEEP_BYTES, "%" PRId64 "%s", keep_ms / u->factor, u->name);
    return buf;
}

bool keep_is_limited(const struct report *r)
{
    bool limited = false;
    for (int s = 0; s < SPAN_COUNT; s++)
        limited |= r->keep_ms[s] > 0;
    return limited;
}

int64_t keep_edge(int64_t keep_ms, enum span span, int64_t now_ms)
{
    int64_t from_ms = now_ms - keep_ms;
    if (keep_ms == 0 || from_ms <= 0 || now_ms >= CIVIL_END_MS)
        return 0;
    return span_floor((enum span)(span + 1), from_ms);
}

int64_t keep_from(const struct report *r, enum span span, int64_t now_ms)
{
    return keep_edge(r->keep_ms[span], span, now_ms);
}
