#include "ingest/decode/text_step.h"

#include "base/check.h"
#include "base/mem.h"
#include "ingest/decode/csv.h"
#include "ingest/decode/line_regex.h"
#include "ingest/decode/logfmt.h"
#include "ingest/decode/w3c.h"

#include <stdlib.h>

struct text_step {
    enum decode_step_kind kind;
    struct parts parts;
    struct logfmt *logfmt;    /* of a STEP_LOGFMT */
    struct csv csv;           /* of a STEP_CSV or STEP_TSV */
    struct line_regex *regex; /* of a STEP_REGEX */
    struct w3c *w3c;          /* of a STEP_W3C */
    bool names_are_idle;      /* no line came behind the last #Fields: */
};

/* Adds fields and times. A key may be both. */
static void add_keys(struct text_step *ts, const struct decode *d)
{
    struct slice times[PARTS_TIMES_MAX];
    struct parts *ps = &ts->parts;
    ts->logfmt = logfmt_new();
    ps->unescape = logfmt_unescape;
    for (int i = 0; i < field_count(); i++) {
        if (!decode_is_replaced(d, (enum field)i))
            logfmt_add(ts->logfmt, slice_text(field_name((enum field)i)), (unsigned)i);
    }
    ps->time_count = d->time_is_brokers ? 0 : parts_time_names(d->time_pointer, times);
    for (size_t i = 0; i < ps->time_count; i++)
        ps->times[i] = logfmt_add(ts->logfmt, times[i], (unsigned)(PARTS_TIME + i));
}

/* The slot of a part with this name: that of a time, or of its field. */
static unsigned slot_of(struct parts *ps, const char *name, const struct slice times[PARTS_TIMES_MAX])
{
    enum field f;
    for (unsigned i = 0; i < ps->time_count; i++) {
        if (slice_is(times[i], name))
            return PARTS_TIME + i;
    }
    bool is_field = field_parse(slice_text(name), &f); /* decode_finish() has made it one */
    ASSERT(is_field);
    return f;
}

static void add_names(struct text_step *ts, const struct decode *d)
{
    struct slice times[PARTS_TIMES_MAX], text = slice_text(d->parts);
    struct part_names names;
    struct parts *ps = &ts->parts;
    struct csv *csv = &ts->csv;
    struct err e;
    bool good = ts->kind == STEP_REGEX ? line_regex_names(text, &names, &e)
                                       : csv_names(text, &names, &csv->count, &e);
    ASSERT(good);
    ts->regex = ts->kind == STEP_REGEX ? line_regex_new(text) : NULL;
    csv->separator = ts->kind == STEP_CSV ? ',' : '\t';
    memset(csv->slots, CSV_SKIP, sizeof csv->slots);
    ps->unescape = csv_unescape;
    ps->time_count = d->time_is_brokers ? 0 : parts_time_names(d->time_pointer, times);
    for (unsigned i = 0; i < ps->time_count; i++)
        ps->times[i] = PARTS_TIME + i;
    for (size_t i = 0; i < names.count; i++) {
        unsigned slot = slot_of(ps, names.list[i].text, times);
        if (ts->kind == STEP_REGEX)
            line_regex_add(ts->regex, names.list[i].number, slot);
        else
            csv->slots[names.list[i].number] = (unsigned char)slot;
    }
}

static void add_columns(struct text_step *ts, const struct decode *d)
{
    uint64_t others = 0;
    for (int i = FIELD_COUNT; i < field_count(); i++)
        others |= (uint64_t)decode_has_origin(d, (enum field)i) << i;
    ts->parts.unescape = csv_unescape;
    ts->w3c = w3c_new(slice_text(d->parts), !d->time_is_brokers, others);
}

struct text_step *text_step_new(const struct decode *d)
{
    struct text_step *ts = xcalloc(1, sizeof *ts);
    const struct decode_step *step = &d->steps[d->step_count - 1];
    ASSERT(decode_step_has_parts(step->kind));
    ts->kind = step->kind;
    ts->parts.is_strict = ts->kind == STEP_REGEX || ts->kind == STEP_W3C;
    if (ts->kind == STEP_W3C) {
        add_columns(ts, d);
    } else if (ts->kind == STEP_LOGFMT) {
        add_keys(ts, d);
    } else {
        add_names(ts, d);
    }
    return ts;
}

void text_step_free(struct text_step *ts)
{
    if (ts == NULL)
        return;
    logfmt_free(ts->logfmt);
    line_regex_free(ts->regex);
    w3c_free(ts->w3c);
    free(ts);
}

void text_step_reset(struct text_step *ts)
{
    ts->names_are_idle = false;
    if (ts->w3c != NULL)
        w3c_reset(ts->w3c);
}

bool text_step_heed(struct text_step *ts, struct slice line, bool too_long)
{
    line = directive_trim(line);
    if (ts->w3c == NULL || line.len == 0 || *line.ptr != '#')
        return false;
    ts->names_are_idle |= slice_begins(line, slice_text(DIRECTIVE_FIELDS));
    if (!too_long)
        w3c_directive(ts->w3c, line);
    else if (slice_begins(line, slice_text(DIRECTIVE_FIELDS)))
        w3c_lose(ts->w3c);
    return true;
}

bool text_step_has_idle_names(const struct text_step *ts)
{
    return ts->w3c != NULL && ts->names_are_idle && w3c_has_others(ts->w3c);
}

static bool read_line(struct text_step *ts, struct slice line, struct arena *memory, struct event *ev,
                      enum reject_reason *reason, const char **at)
{
    switch (ts->kind) {
    case STEP_LOGFMT:
        return logfmt_read(ts->logfmt, line, &ts->parts, reason, at);
    case STEP_REGEX:
        return line_regex_read(ts->regex, line, &ts->parts, reason, at);
    case STEP_W3C:
        return w3c_read(ts->w3c, line, &ts->parts, memory, &ev->at_ms, reason, at);
    default:
        return csv_read(&ts->csv, line, &ts->parts, reason, at);
    }
}

bool text_step_event(struct text_step *ts, struct slice line, struct arena *memory, struct event *ev,
                     struct reject *why)
{
    enum reject_reason reason;
    struct slice rest = directive_trim(line);
    const char *at;
    if (rest.len == 0) {
        *why = (struct reject){REJECT_EMPTY, 1};
        return false;
    }
    parts_clear(&ts->parts);
    ts->names_are_idle = false;
    if (LIKELY(read_line(ts, rest, memory, ev, &reason, &at)))
        return parts_event(&ts->parts, line, memory, ev, why);
    *why = (struct reject){reason, (size_t)(at - line.ptr) + 1};
    return false;
}
