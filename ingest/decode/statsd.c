/* Lines of StatsD, and what DogStatsD and InfluxDB added. Source: the documentation of StatsD's metric types
 * and of DogStatsD's datagrams. */
#include "ingest/decimal.h"
#include "ingest/decode/chain_field.h"
#include "ingest/decode/format_value.h"
#include "ingest/decode/metric_line_internal.h"
#include "ingest/timestamp.h"

static const struct {
    const char *type, *name;
} types[] = {{"c", "counter"},   {"g", "gauge"},        {"ms", "timer"},
             {"h", "histogram"}, {"d", "distribution"}, {"s", "set"}};

static const char *find(const char *p, const char *end, char stop)
{
    const char *found = p < end ? memchr(p, stop, (size_t)(end - p)) : NULL;
    return found != NULL ? found : end;
}

/* "counter" of "c"; NULL: there is no such type. */
static const char *type_name(struct slice type)
{
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        if (slice_is(type, types[i].type))
            return types[i].name;
    }
    return NULL;
}

/* Takes tags: KEY, `between`, TEXT, with commas between them. */
static void take_tags(struct metric_line *m, const char *p, const char *end, char between)
{
    for (const char *comma; p < end; p = comma + 1) {
        comma = find(p, end, ',');
        const char *mark = find(p, comma, between);
        if (mark < comma)
            metric_line_tag(m, slice_of(p, (size_t)(mark - p)),
                            slice_of(mark + 1, (size_t)(comma - mark - 1)));
        if (comma == end)
            break;
    }
}

/* Takes @RATE, #TAGS, TTIME or another extension between two bars. */
static bool take_extension(struct metric_line *m, const char *p, const char *end, struct reject *why)
{
    enum reject_reason reason;
    struct slice text = slice_of(p + 1, (size_t)(end - p) - (p < end));
    if (p == end)
        return metric_line_refuse(m, REJECT_STATSD, p, why);
    if (*p == '@')
        m->rate = text;
    else if (*p == '#')
        take_tags(m, p + 1, end, ':');
    else if (*p == 'T')
        return timestamp_parse_number(text, &m->at_ms, &reason) || metric_line_refuse(m, reason, p + 1, why);
    return true;
}

bool statsd_begin(struct metric_line *m, struct arena *memory, struct reject *why)
{
    const char *colon = find(m->p, m->end, ':'), *bar = find(colon, m->end, '|');
    const char *comma = find(m->p, colon, ','),
               *type_end = bar < m->end ? find(bar + 1, m->end, '|') : m->end;
    (void)memory;
    m->name = slice_of(m->p, (size_t)(comma - m->p));
    m->rate = slice_of(NULL, 0);
    if (m->name.len == 0 || colon == m->end || bar == m->end)
        return metric_line_refuse(m, REJECT_STATSD, m->name.len == 0 ? m->p : m->end, why);
    m->type = slice_of(bar + 1, (size_t)(type_end - bar - 1));
    if (type_name(m->type) == NULL)
        return metric_line_refuse(m, REJECT_STATSD, bar + 1, why);
    if (comma < colon)
        take_tags(m, comma + 1, colon, '=');
    for (const char *p = type_end, *next; p < m->end; p = next) {
        next = find(p + 1, m->end, '|');
        if (!take_extension(m, p + 1, next, why))
            return false;
    }
    m->p = colon + 1;
    m->values_end = bar;
    return true;
}

/* The number of a value, in units of 1/EVENT_SCALE. False: *reason says why there is none. */
static bool number_of(const struct metric_line *m, struct slice text, int64_t *value,
                      enum reject_reason *reason)
{
    int64_t rate = EVENT_SCALE;
    bool is_counter = slice_is(m->type, "c"), is_gauge = slice_is(m->type, "g");
    bool is_signed = text.len > 0 && (*text.ptr == '+' || *text.ptr == '-');
    *reason = REJECT_NUMBER;
    if (is_gauge && is_signed) {
        *reason = REJECT_INEXACT;
        return false;
    }
    if (decimal_parse(text, value) != DECIMAL_OK)
        return false;
    if (m->rate.ptr == NULL)
        return true;
    if (decimal_parse(m->rate, &rate) != DECIMAL_OK || rate <= 0 || rate > EVENT_SCALE) {
        *reason = REJECT_STATSD;
        return false;
    }
    if (rate == EVENT_SCALE || is_gauge) /* a gauge that is sent less often is as large */
        return true;
    __int128 scaled = (__int128)*value * EVENT_SCALE;
    if (!is_counter || scaled % rate != 0) {
        *reason = REJECT_INEXACT;
        return false;
    }
    scaled /= rate;
    if (scaled > EVENT_DECIMAL_MAX || scaled < -EVENT_DECIMAL_MAX)
        return false;
    *value = (int64_t)scaled;
    return true;
}

static void put_own(struct event *ev, enum field f, struct slice text)
{
    if ((unsigned)f < FIELD_MAX)
        chain_field_put(ev, f, text, false);
}

bool statsd_next(struct metric_line *m, struct arena *memory, struct event *ev, struct reject *why)
{
    bool is_set = slice_is(m->type, "s");
    const char *bar = m->values_end, *from = m->p, *to = is_set ? bar : find(from, bar, ':');
    struct slice text = slice_of(from, (size_t)(to - from));
    enum reject_reason reason = REJECT_STATSD;
    int64_t value;
    m->p = to < bar ? to + 1 : NULL;
    chain_field_put(ev, FIELD_NAME, m->name, false);
    put_own(ev, m->type_field, slice_text(type_name(m->type)));
    if (is_set && text.len > 0) {
        put_own(ev, m->member_field, text);
        return true;
    }
    if (!is_set && number_of(m, text, &value, &reason)) {
        if (m->rate.ptr != NULL)
            text = format_value_print(memory, value);
        reason = chain_field_put(ev, FIELD_VALUE, text, true);
        if (reason == REJECT_COUNT)
            return true;
    }
    *why = (struct reject){reason, (size_t)(from - m->line.ptr) + 1};
    return false;
}
