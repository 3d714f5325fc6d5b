#include "ingest/decode/text_step.h"

#include "base/check.h"
#include "base/mem.h"
#include "ingest/decode/logfmt.h"

#include <stdlib.h>

struct text_step {
    enum decode_step_kind kind;
    struct parts parts;
    struct logfmt *logfmt; /* of a STEP_LOGFMT */
};

/* Adds fields and times. A key may be both. */
static void add_keys(struct text_step *ts, const struct decode *d)
{
    struct slice names[PARTS_TIMES_MAX];
    struct parts *ps = &ts->parts;
    ts->logfmt = logfmt_new();
    ps->unescape = logfmt_unescape;
    for (int i = 0; i < field_count(); i++) {
        if (i < FIELD_COUNT || !decode_has_origin(d, (enum field)i))
            logfmt_add(ts->logfmt, slice_text(field_name((enum field)i)), (unsigned)i);
    }
    ps->time_count = d->time_is_brokers ? 0 : parts_time_names(d->time_pointer, names);
    for (size_t i = 0; i < ps->time_count; i++)
        ps->times[i] = logfmt_add(ts->logfmt, names[i], (unsigned)(PARTS_TIME + i));
}

struct text_step *text_step_new(const struct decode *d)
{
    struct text_step *ts = xcalloc(1, sizeof *ts);
    const struct decode_step *step = &d->steps[d->step_count - 1];
    ASSERT(decode_step_has_parts(step->kind));
    ts->kind = step->kind;
    add_keys(ts, d);
    return ts;
}

void text_step_free(struct text_step *ts)
{
    if (ts != NULL)
        logfmt_free(ts->logfmt);
    free(ts);
}

bool text_step_event(struct text_step *ts, struct slice line, struct arena *memory, struct event *ev,
                     struct reject *why)
{
    enum reject_reason reason;
    struct slice rest = line;
    const char *at;
    if (rest.len > 0 && slice_end(rest)[-1] == '\r')
        rest.len--;
    if (rest.len >= 3 && memcmp(rest.ptr, "\xEF\xBB\xBF", 3) == 0)
        rest = slice_of(rest.ptr + 3, rest.len - 3);
    if (rest.len == 0) {
        *why = (struct reject){REJECT_EMPTY, 1};
        return false;
    }
    parts_clear(&ts->parts);
    if (LIKELY(logfmt_read(ts->logfmt, rest, &ts->parts, &reason, &at)))
        return parts_event(&ts->parts, line, memory, ev, why);
    *why = (struct reject){reason, (size_t)(at - line.ptr) + 1};
    return false;
}
