#include "ingest/decode/w3c.h"

#include "base/mem.h"
#include "base/suggest.h"
#include "base/units.h"
#include "ingest/decode/csv.h"
#include "ingest/decode/format_value.h"

#include <stdlib.h>

enum column_kind {
    COLUMN_SKIP,
    COLUMN_TEXT,
    COLUMN_AGENT,
    COLUMN_TAKEN,
    COLUMN_DATE, /* this and the next ones are needed even if no field has them */
    COLUMN_TIME,
    COLUMN_STEM,
    COLUMN_QUERY
};

struct column {
    enum column_kind kind;
    bool has_field;
    enum field field; /* that the column fills, if it has one */
};

struct w3c {
    struct slice first; /* the names of the configuration */
    bool needs_time;
    uint64_t others;
    struct column columns[W3C_COLUMNS_MAX];
    size_t count;     /* of `columns`; 0: no names hold */
    bool taken_in_ms; /* time-taken is in ms if it has no decimals */
    struct text_time time;
    struct slice texts[W3C_COLUMNS_MAX]; /* of the line, by column */
    struct text names;                   /* that hold; of a #Fields: seen last */
};

/* The names of columns whose field has another name. */
static const struct {
    const char *name, *field;
    enum column_kind kind;
} known[] = {{"date", NULL, COLUMN_DATE},
             {"time", NULL, COLUMN_TIME},
             {"c-ip", "host", COLUMN_TEXT},
             {"cs-username", "user", COLUMN_TEXT},
             {"cs-method", "method", COLUMN_TEXT},
             {"cs-uri-stem", "target", COLUMN_STEM},
             {"cs-uri", "target", COLUMN_TEXT},
             {"cs-uri-query", "query", COLUMN_QUERY},
             {"cs-version", "protocol", COLUMN_TEXT},
             {"cs-protocol-version", "protocol", COLUMN_TEXT},
             {"sc-status", "status", COLUMN_TEXT},
             {"sc-bytes", "bytes", COLUMN_TEXT},
             {"cs-bytes", "bytes_received", COLUMN_TEXT},
             {"x-host-header", "vhost", COLUMN_TEXT},
             {"cs-host", "vhost", COLUMN_TEXT},
             {"s-port", "port", COLUMN_TEXT},
             {"s-ip", "server_addr", COLUMN_TEXT},
             {"cs(User-Agent)", "agent", COLUMN_AGENT},
             {"cs(Referer)", "referrer", COLUMN_TEXT},
             {"cs(Referrer)", "referrer", COLUMN_TEXT},
             {"time-taken", "duration", COLUMN_TAKEN},
             {"time-to-first-byte", "first_byte_duration", COLUMN_TEXT}};

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* Takes the next name; false: there is none. */
static bool take_name(struct slice *names, struct slice *name)
{
    const char *p = names->ptr, *end = slice_end(*names), *from;
    while (p < end && is_blank(*p))
        p++;
    for (from = p; p < end && !is_blank(*p);)
        p++;
    *name = slice_of(from, (size_t)(p - from));
    *names = slice_of(p, (size_t)(end - p));
    return name->len > 0;
}

static bool has_name(struct slice names, const char *name)
{
    struct slice next, wanted = slice_text(name);
    while (take_name(&names, &next)) {
        if (slice_equal(next, wanted))
            return true;
    }
    return false;
}

bool w3c_names_are_good(struct slice names, bool needs_time, struct err *e)
{
    struct slice rest = names, name;
    size_t count = 0;
    while (take_name(&rest, &name))
        count++;
    if (count == 0 || count > W3C_COLUMNS_MAX)
        return err_set(e, EX_CONFIG, "w3c: found %zu names, expected 1 to %d, as date time c-ip", count,
                       W3C_COLUMNS_MAX);
    if (needs_time && (!has_name(names, "date") || !has_name(names, "time")))
        return err_set(e, EX_CONFIG,
                       "w3c: found no date and time among the names, expected both, or time: broker");
    return true;
}

/* Makes "any_name" of "cs(Any-Name)", "response_any_name" of "sc(Any-Name)", "x_edge_location" of
 * "x-edge-location". False: it is too long. */
static bool field_of(struct slice name, char field[FIELD_NAME_BYTES])
{
    bool is_header = name.len > 4 && memcmp(name.ptr, "cs(", 3) == 0 && name.ptr[name.len - 1] == ')';
    bool is_response = name.len > 4 && memcmp(name.ptr, "sc(", 3) == 0 && name.ptr[name.len - 1] == ')';
    const char *prefix = is_response ? "response_" : "";
    enum field f;
    if (is_header || is_response)
        name = slice_of(name.ptr + 3, name.len - 4);
    for (;; prefix = "header_") {
        size_t len = strlen(prefix);
        if (name.len + len >= FIELD_NAME_BYTES)
            return false;
        memcpy(field, prefix, len);
        for (size_t i = 0; i < name.len; i++) {
            char c = name.ptr[i], small = (char)(c | 0x20);
            field[len++] = small >= 'a' && small <= 'z' ? small : c >= '0' && c <= '9' ? c : '_';
        }
        field[len] = '\0';
        bool is_built_in = field_parse(slice_text(field), &f) && f < FIELD_COUNT;
        if (!is_header || !is_built_in || prefix[0] != '\0')
            return true;
    }
}

/* Finds the kind and field of a column. A host by a better name makes another one a header. */
static void name_column(const struct w3c *w, struct slice name, bool has_header, bool has_host,
                        struct column *c)
{
    char field[FIELD_NAME_BYTES];
    bool is_known = false;
    *c = (struct column){.kind = COLUMN_TEXT};
    if (slice_is(name, "cs(Host)") && !has_header && !has_host)
        name = slice_text("cs-host");
    else if (slice_is(name, "cs-host") && has_header)
        name = slice_text("cs(Host)");
    for (size_t i = 0; i < COUNT_OF(known) && !is_known; i++) {
        is_known = known[i].name[0] == name.ptr[0] && slice_is(name, known[i].name);
        if (!is_known)
            continue;
        c->kind = known[i].kind;
        if (known[i].field != NULL)
            c->has_field = field_parse(slice_text(known[i].field), &c->field);
    }
    if (!is_known && field_of(name, field))
        c->has_field = field_parse(slice_text(field), &c->field);
    if (c->has_field && (w->others >> c->field & 1) != 0)
        c->has_field = false;
    if (!c->has_field && c->kind < COLUMN_DATE)
        c->kind = COLUMN_SKIP;
}

/* Leaves to each field and kind its first column. */
static void drop_repeated(struct w3c *w)
{
    uint64_t fields = 0;
    unsigned kinds = 0;
    for (size_t i = 0; i < w->count; i++) {
        struct column *c = &w->columns[i];
        uint64_t field = c->has_field ? (uint64_t)1 << c->field : 0;
        unsigned kind = c->kind >= COLUMN_DATE ? 1u << c->kind : 0;
        if ((fields & field) != 0 || (kinds & kind) != 0)
            *c = (struct column){.kind = COLUMN_SKIP};
        fields |= field;
        kinds |= kind;
    }
}

static void take_names(struct w3c *w, struct slice names)
{
    bool has_header = has_name(names, "x-host-header"), has_host = has_name(names, "cs-host");
    struct slice rest = names, name;
    struct err ignored;
    w->count = 0;
    if (!w3c_names_are_good(names, w->needs_time, &ignored))
        return;
    while (take_name(&rest, &name))
        name_column(w, name, has_header, has_host, &w->columns[w->count++]);
    drop_repeated(w);
    w->taken_in_ms = !has_name(names, "x-edge-location");
}

struct w3c *w3c_new(struct slice names, bool needs_time, uint64_t others)
{
    struct w3c *w = xcalloc(1, sizeof *w);
    w->first = names;
    w->needs_time = needs_time;
    w->others = others;
    w3c_reset(w);
    return w;
}

void w3c_free(struct w3c *w)
{
    if (w != NULL)
        text_fini(&w->names);
    free(w);
}

/* A file's threads give the same names at each of their blocks. */
static void set_names(struct w3c *w, struct slice names)
{
    if (w->names.ptr != NULL && slice_equal(text_slice(&w->names), names))
        return;
    text_clear(&w->names);
    text_add(&w->names, names.ptr, names.len);
    take_names(w, names);
}

void w3c_directive(struct w3c *w, struct slice line)
{
    if (slice_begins(line, slice_text(DIRECTIVE_FIELDS)))
        set_names(w,
                  slice_of(line.ptr + sizeof DIRECTIVE_FIELDS - 1, line.len - (sizeof DIRECTIVE_FIELDS - 1)));
}

void w3c_reset(struct w3c *w)
{
    set_names(w, w->first);
}

bool w3c_has_others(const struct w3c *w)
{
    struct slice first = w->first, now = text_slice(&w->names), a, b;
    bool has_first, has_now;
    do {
        has_first = take_name(&first, &a);
        has_now = take_name(&now, &b);
        if (has_first != has_now || (has_first && !slice_equal(a, b)))
            return true;
    } while (has_first);
    return false;
}

void w3c_lose(struct w3c *w)
{
    set_names(w, slice_of("", 0));
}

/* ---- lines */

/* The end of the column at `p`, and its text. */
static const char *take_column(const char *p, const char *end, char separator, bool with_quotes,
                               struct slice *text)
{
    const char *q = p;
    if (with_quotes && p < end && *p == '"') {
        for (q = p + 1; q < end && (*q != '"' || (q + 1 < end && q[1] == '"'));)
            q += *q == '"' ? 2 : 1;
        q += q < end;
        if (q == end || *q == separator) {
            *text = slice_of(p, (size_t)(q - p));
            return q;
        }
    }
    q = memchr(p, separator, (size_t)(end - p));
    q = q != NULL ? q : end;
    *text = slice_of(p, (size_t)(q - p));
    return q;
}

/* Finds the columns' texts. True: there are as many as names. *at is where the count goes wrong. */
static bool split(struct w3c *w, struct slice line, char separator, bool with_quotes, const char **at)
{
    const char *p = line.ptr, *end = slice_end(line);
    for (size_t i = 0;; i++, p++) {
        *at = p;
        if (i == w->count)
            return false;
        p = take_column(p, end, separator, with_quotes, &w->texts[i]);
        *at = p;
        if (p == end)
            return i + 1 == w->count;
    }
}

/* IIS writes no blanks, so its lines have as many columns as names, whatever quotes clients send. Only a line
 * with more columns is read with quotes. */
static bool find_columns(struct w3c *w, struct slice line, enum reject_reason *reason, const char **at)
{
    while (line.len > 0 && line.ptr[line.len - 1] == ' ')
        line.len--;
    char separator = memchr(line.ptr, '\t', line.len) != NULL ? '\t' : ' ';
    bool has_quotes = memchr(line.ptr, '"', line.len) != NULL;
    const char *ignored;
    *reason = REJECT_COLUMNS;
    return split(w, line, separator, false, at) || (has_quotes && split(w, line, separator, true, &ignored));
}

/* Removes the quotes around a column; *is_escaped: others are doubled in it. */
static struct slice without_quotes(struct slice text, bool *is_escaped)
{
    *is_escaped = false;
    if (text.len < 2 || text.ptr[0] != '"' || text.ptr[text.len - 1] != '"')
        return text;
    text = slice_of(text.ptr + 1, text.len - 2);
    *is_escaped = memchr(text.ptr, '"', text.len) != NULL;
    return text;
}

/* Undoes the + of IIS, or the %XX of CloudFront. */
static struct slice agent_of(const struct w3c *w, struct slice text, struct arena *memory)
{
    char escape = w->taken_in_ms ? '+' : '%';
    if (memchr(text.ptr, escape, text.len) == NULL)
        return text;
    char *out = arena_add(memory, text.len);
    size_t len = 0;
    for (size_t i = 0; i < text.len; i++) {
        int high = i + 2 < text.len ? units_hex_digit(text.ptr[i + 1]) : -1;
        int low = high >= 0 ? units_hex_digit(text.ptr[i + 2]) : -1;
        bool is_hex = escape == '%' && text.ptr[i] == '%' && low >= 0;
        out[len++] = is_hex                                   ? (char)(high << 4 | low)
                     : escape == '+' && text.ptr[i] == escape ? ' '
                                                              : text.ptr[i];
        i += is_hex ? 2 : 0;
    }
    return slice_of(out, len);
}

/* In seconds. A text that is no number stays as it is. */
static struct slice taken_of(const struct w3c *w, struct slice text, struct arena *memory)
{
    int64_t value;
    if (!w->taken_in_ms || memchr(text.ptr, '.', text.len) != NULL ||
        !format_value_parse(text, EVENT_SCALE / 1000, &value))
        return text;
    return format_value_print(memory, value);
}

/* The time of "2024-01-02" and "03:04:05", in UTC. */
static bool time_of(struct w3c *w, struct slice date, struct slice time, int64_t *at_ms,
                    enum reject_reason *reason)
{
    char text[48];
    if (date.len + 1 + time.len > sizeof text) {
        *reason = REJECT_TIME;
        return false;
    }
    memcpy(text, date.ptr, date.len);
    text[date.len] = ' ';
    memcpy(text + date.len + 1, time.ptr, time.len);
    return text_time_parse(&w->time, slice_of(text, date.len + 1 + time.len), at_ms, reason);
}

/* Takes the text of a column, and puts it into its field. An agent in quotes has no escapes but these. */
static struct slice take_text(struct w3c *w, size_t i, struct parts *ps, struct arena *memory)
{
    const struct column *c = &w->columns[i];
    bool is_escaped;
    struct slice text = without_quotes(w->texts[i], &is_escaped);
    if (text.ptr == w->texts[i].ptr && c->kind == COLUMN_AGENT)
        text = agent_of(w, text, memory);
    if (c->kind == COLUMN_TAKEN)
        text = taken_of(w, text, memory);
    if (is_escaped && c->kind >= COLUMN_STEM) {
        char *out = arena_add(memory, text.len);
        text = slice_of(out, csv_unescape(text, out));
        is_escaped = false;
    }
    if (c->has_field)
        parts_put(ps, c->field, text, is_escaped);
    return text;
}

bool w3c_read(struct w3c *w, struct slice line, struct parts *ps, struct arena *memory, int64_t *at_ms,
              enum reject_reason *reason, const char **at)
{
    struct slice found[COLUMN_QUERY + 1] = {{NULL, 0}};
    *at = line.ptr;
    *reason = REJECT_FIELDS;
    if (w->count == 0 || !find_columns(w, line, reason, at))
        return false;
    for (size_t i = 0; i < w->count; i++) {
        enum column_kind kind = w->columns[i].kind;
        if (kind != COLUMN_SKIP && !event_is_absent(w->texts[i].ptr, slice_end(w->texts[i])))
            found[kind] = take_text(w, i, ps, memory);
    }
    if (found[COLUMN_STEM].len > 0 && found[COLUMN_QUERY].len > 0)
        parts_put(ps, FIELD_TARGET, arena_join(memory, found[COLUMN_STEM], "?", found[COLUMN_QUERY]), false);
    if (!w->needs_time)
        return true;
    *reason = REJECT_MEMBER;
    *at = found[COLUMN_DATE].len > 0 ? found[COLUMN_DATE].ptr : line.ptr;
    return found[COLUMN_DATE].len > 0 && found[COLUMN_TIME].len > 0 &&
           time_of(w, found[COLUMN_DATE], found[COLUMN_TIME], at_ms, reason);
}
