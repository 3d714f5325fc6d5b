/* The line protocol of InfluxDB. A backslash escapes only a byte with a meaning where it stands. Source: the
 * reference of the line protocol in InfluxDB's documentation. */
#include "ingest/decimal.h"
#include "ingest/decode/chain_field.h"
#include "ingest/decode/metric_line_internal.h"
#include "ingest/timestamp.h"

#define NAME_SPECIALS ", "
#define TAG_SPECIALS  ",= "

enum value_kind { VALUE_BAD, VALUE_NUMBER, VALUE_OTHER };

/* The first of `stops` that has no backslash before it, or the end. */
static const char *find_stop(const char *p, const char *end, const char *stops)
{
    for (; p < end; p++) {
        bool is_escape = *p == '\\' && end - p > 1 && p[1] != '\0' && strchr(TAG_SPECIALS, p[1]) != NULL;
        if (!is_escape && *p != '\0' && strchr(stops, *p) != NULL)
            return p;
        p += is_escape;
    }
    return end;
}

/* Takes KEY=; NULL: there is none. */
static const char *take_key(const char *p, const char *end, struct slice *key)
{
    const char *q = find_stop(p, end, ",= ");
    *key = slice_of(p, (size_t)(q - p));
    return q > p && q < end && *q == '=' ? q + 1 : NULL;
}

static bool is_boolean(struct slice text)
{
    static const char *const names[] = {"t", "T", "true",  "True",  "TRUE",
                                        "f", "F", "false", "False", "FALSE"};
    bool is = false;
    for (size_t i = 0; i < sizeof names / sizeof *names && !is; i++)
        is = slice_is(text, names[i]);
    return is;
}

/* The byte behind the quote that ends the text; NULL: there is none. */
static const char *skip_text(const char *p, const char *end)
{
    for (p++; p < end && *p != '"'; p++)
        p += *p == '\\' && end - p > 1 && (p[1] == '"' || p[1] == '\\');
    return p < end ? p + 1 : NULL;
}

/* Takes the value of a field. *number is its text, without the i or u of an integer. */
static enum value_kind take_value(const char **p, const char *end, struct slice *number)
{
    int64_t value;
    if (*p < end && **p == '"') {
        const char *q = skip_text(*p, end);
        if (q == NULL)
            return VALUE_BAD;
        *p = q;
        return VALUE_OTHER;
    }
    const char *q = *p;
    while (q < end && *q != ',' && *q != ' ')
        q++;
    struct slice text = slice_of(*p, (size_t)(q - *p));
    bool is_integer = text.len > 1 && (q[-1] == 'i' || q[-1] == 'u');
    *number = slice_of(text.ptr, text.len - is_integer);
    enum decimal_result result = decimal_parse(*number, &value);
    bool is_number =
        result != DECIMAL_NONE && (!is_integer || (memchr(number->ptr, '.', number->len) == NULL &&
                                                   memchr(number->ptr, 'e', number->len) == NULL));
    if (!is_number && !is_boolean(text))
        return VALUE_BAD;
    *p = q;
    return is_number ? VALUE_NUMBER : VALUE_OTHER;
}

static const char *skip_blanks(const char *p, const char *end)
{
    while (p < end && *p == ' ')
        p++;
    return p;
}

/* Checks all fields, so that a line makes all its events or none; m->p becomes the first. Returns the byte
 * behind them; NULL: the reject is written. */
static const char *check_fields(struct metric_line *m, const char *p, struct reject *why)
{
    size_t numbers = 0;
    struct slice key, number;
    m->p = p;
    for (;; p++) {
        const char *value = take_key(p, m->end, &key);
        if (value == NULL) {
            metric_line_refuse(m, REJECT_INFLUX, find_stop(p, m->end, ",= "), why);
            return NULL;
        }
        p = value;
        enum value_kind kind = take_value(&p, m->end, &number);
        if (kind == VALUE_BAD || (p < m->end && *p != ',' && *p != ' ')) {
            metric_line_refuse(m, REJECT_INFLUX, kind == VALUE_BAD ? value : p, why);
            return NULL;
        }
        numbers += kind == VALUE_NUMBER;
        if (p == m->end || *p == ' ')
            break;
    }
    if (numbers > 0)
        return p;
    metric_line_refuse(m, REJECT_MEMBER, m->p, why);
    return NULL;
}

bool influx_begin(struct metric_line *m, struct arena *memory, struct reject *why)
{
    const char *p = find_stop(m->p, m->end, NAME_SPECIALS);
    const char *equals = p < m->end && *p == ',' ? NULL : memchr(m->p, '=', (size_t)(p - m->p));
    if (p == m->p || *m->p == '#' || equals != NULL) /* without tags, it may be logfmt */
        return metric_line_refuse(m, REJECT_INFLUX, *m->p == '#' ? m->p : equals != NULL ? equals : p, why);
    m->name = metric_line_unescape(slice_of(m->p, (size_t)(p - m->p)), NAME_SPECIALS, memory);
    while (p < m->end && *p == ',') {
        struct slice key;
        const char *from = take_key(p + 1, m->end, &key);
        if (from == NULL)
            return metric_line_refuse(m, REJECT_INFLUX, p + 1, why);
        p = find_stop(from, m->end, ", ");
        metric_line_tag(m, metric_line_unescape(key, TAG_SPECIALS, memory),
                        metric_line_unescape(slice_of(from, (size_t)(p - from)), TAG_SPECIALS, memory));
    }
    p = check_fields(m, skip_blanks(p, m->end), why);
    if (p == NULL)
        return false;
    const char *time = skip_blanks(p, m->end), *end = m->end;
    while (end > time && end[-1] == ' ')
        end--;
    enum reject_reason reason;
    return time == end || timestamp_parse_number(slice_of(time, (size_t)(end - time)), &m->at_ms, &reason) ||
           metric_line_refuse(m, reason, time, why);
}

/* Moves to the next field that is a number. */
static void skip_others(struct metric_line *m)
{
    struct slice key, number;
    while (m->p != NULL) {
        const char *p = take_key(m->p, m->end, &key);
        if (take_value(&p, m->end, &number) == VALUE_NUMBER)
            return;
        m->p = p < m->end && *p == ',' ? p + 1 : NULL;
    }
}

/* "measurement.field" */
static struct slice name_of(const struct metric_line *m, struct slice key, struct arena *memory)
{
    key = metric_line_unescape(key, TAG_SPECIALS, memory);
    return arena_join(memory, m->name, ".", key);
}

bool influx_next(struct metric_line *m, struct arena *memory, struct event *ev, struct reject *why)
{
    struct slice key, number;
    skip_others(m);
    const char *value = take_key(m->p, m->end, &key), *p = value;
    (void)take_value(&p, m->end, &number);
    m->p = p < m->end && *p == ',' ? p + 1 : NULL;
    skip_others(m);
    chain_field_put(ev, FIELD_NAME, name_of(m, key, memory), false);
    enum reject_reason reason = chain_field_put(ev, FIELD_VALUE, number, true);
    if (reason == REJECT_COUNT)
        return true;
    *why = (struct reject){reason, (size_t)(value - m->line.ptr) + 1};
    return false;
}
