#include "ingest/decode/metric_line.h"

#include "base/check.h"
#include "base/mem.h"
#include "ingest/decode/chain_field.h"
#include "ingest/decode/metric_line_internal.h"

#include <stdlib.h>

struct metric_line *metric_line_new(const struct decode *d)
{
    struct metric_line *m = xcalloc(1, sizeof *m);
    m->kind = d->steps[d->step_count - 1].kind;
    m->tag_fields = decode_tag_fields(d);
    m->type_field = decode_own_field(d, "type");
    m->member_field = decode_own_field(d, "member");
    return m;
}

void metric_line_free(struct metric_line *m)
{
    free(m);
}

void metric_line_tag(struct metric_line *m, struct slice key, struct slice text)
{
    enum field f;
    size_t i = 0;
    if (!field_parse(key, &f) || (m->tag_fields >> f & 1) == 0)
        return;
    while (i < m->tag_count && m->tags[i].field != f)
        i++;
    m->tag_count += i == m->tag_count;
    m->tags[i] = (struct metric_tag){f, text};
}

bool metric_line_refuse(struct metric_line *m, enum reject_reason reason, const char *at, struct reject *why)
{
    *why = (struct reject){reason, (size_t)(at - m->line.ptr) + 1};
    m->p = NULL;
    return false;
}

struct slice metric_line_unescape(struct slice text, const char *specials, struct arena *memory)
{
    if (memchr(text.ptr, '\\', text.len) == NULL)
        return text;
    char *out = arena_add(memory, text.len);
    size_t len = 0;
    for (size_t i = 0; i < text.len; i++) {
        bool is_escape = text.ptr[i] == '\\' && i + 1 < text.len && text.ptr[i + 1] != '\0' &&
                         strchr(specials, text.ptr[i + 1]) != NULL;
        i += is_escape;
        out[len++] = text.ptr[i];
    }
    return slice_of(out, len);
}

bool metric_line_begin(struct metric_line *m, struct slice line, const struct record *r, struct arena *memory,
                       struct reject *why)
{
    m->line = line;
    m->end = slice_end(line);
    m->end -= line.len > 0 && m->end[-1] == '\r';
    m->p = line.ptr;
    m->tag_count = 0;
    m->at_ms = r->timestamp_ms;
    if (m->p == m->end)
        return metric_line_refuse(m, REJECT_EMPTY, line.ptr, why);
    if (!(m->kind == STEP_INFLUX ? influx_begin : statsd_begin)(m, memory, why))
        return false;
    if (m->at_ms < 0)
        return metric_line_refuse(m, REJECT_MEMBER, line.ptr, why);
    return m->at_ms < CIVIL_END_MS || metric_line_refuse(m, REJECT_TIME_RANGE, line.ptr, why);
}

void metric_line_reset(struct metric_line *m)
{
    m->p = NULL;
}

bool metric_line_has_more(const struct metric_line *m)
{
    return m->p != NULL;
}

bool metric_line_next(struct metric_line *m, struct arena *memory, struct event *ev, struct reject *why)
{
    ASSERT(m->p != NULL);
    ev->present = ev->odd = ev->literal = ev->numeric = ev->unfit = 0;
    ev->at_ms = m->at_ms;
    for (size_t i = 0; i < m->tag_count; i++)
        chain_field_put(ev, m->tags[i].field, m->tags[i].text, false);
    return (m->kind == STEP_INFLUX ? influx_next : statsd_next)(m, memory, ev, why);
}
