#include "ingest/decode/decode.h"

#include "base/snappy.h"
#include "base/suggest.h"
#include "ingest/decode/chain_field.h"
#include "ingest/decode/csv.h"
#include "ingest/decode/json_pointer.h"
#include "ingest/decode/line_regex.h"
#include "ingest/decode/parts.h"
#include "ingest/decode/preset.h"
#include "ingest/decode/w3c.h"

#include <stdio.h>

#define JSON_STRING_PREFIX "json:"
#define TAG_PREFIX         "tag:"
#define APACHE_PREFIX      "apache:"
#define NGINX_PREFIX       "nginx:"
#define HEADER_PREFIX      "header:"

#define BIT(f) ((uint64_t)1 << FIELD_##f)

/* The fields that the last step finds by itself. */
#define COMMON_FIELDS                                                                              \
    (BIT(HOST) | BIT(LOGNAME) | BIT(USER) | BIT(REQUEST) | BIT(METHOD) | BIT(TARGET) | BIT(PATH) | \
     BIT(PROTOCOL) | BIT(STATUS) | BIT(BYTES))
#define COMBINED_FIELDS (COMMON_FIELDS | BIT(REFERRER) | BIT(AGENT))
#define VHOST_FIELDS    (COMBINED_FIELDS | BIT(VHOST) | BIT(PORT))
#define METRIC_FIELDS   (BIT(NAME) | BIT(VALUE) | BIT(TARGET) | DECODE_TAG_FIELDS)
#define TARGET_FIELDS   (BIT(TARGET) | BIT(PATH))
#define REQUEST_FIELDS  (BIT(REQUEST) | BIT(METHOD) | BIT(PROTOCOL) | TARGET_FIELDS)

const char *const decode_step_names[] = {"auto",
                                         "common",
                                         "combined",
                                         "vhost_combined",
                                         "syslog",
                                         "cri",
                                         "msgpack",
                                         "avro",
                                         "avro:FILE",
                                         "protobuf",
                                         "protobuf:FILE",
                                         "json:/POINTER",
                                         "json",
                                         "metric",
                                         "logfmt",
                                         "influx",
                                         "statsd",
                                         "otlp",
                                         "otlp:totals",
                                         "remote_write",
                                         "remote_write:deltas",
                                         "remote_write:totals",
                                         "csv:COLUMNS",
                                         "tsv:COLUMNS",
                                         "regex:EXPRESSION",
                                         "w3c",
                                         "w3c:NAMES",
                                         "apache:FORMAT",
                                         "nginx:FORMAT",
                                         "alb",
                                         "caddy",
                                         "elb",
                                         "haproxy",
                                         "s3",
                                         "traefik",
                                         "traefik_json",
                                         NULL};

/* The names of steps that have nothing but a name. */
static const char *const plain_steps[] = {[STEP_SYSLOG] = "syslog",
                                          [STEP_CRI] = "cri",
                                          [STEP_MSGPACK] = "msgpack",
                                          [STEP_AVRO] = "avro",
                                          [STEP_PROTOBUF] = "protobuf",
                                          [STEP_JSON] = "json",
                                          [STEP_METRIC] = "metric",
                                          [STEP_LOGFMT] = "logfmt",
                                          [STEP_W3C] = "w3c",
                                          [STEP_INFLUX] = "influx",
                                          [STEP_STATSD] = "statsd",
                                          [STEP_OTLP] = "otlp",
                                          [STEP_REMOTE_WRITE] = "remote_write"};

/* The names of steps that a colon and a text of up to the end follow. */
static const char *const named_steps[] = {[STEP_AVRO] = "avro",   [STEP_PROTOBUF] = "protobuf",
                                          [STEP_CSV] = "csv",     [STEP_TSV] = "tsv",
                                          [STEP_REGEX] = "regex", [STEP_W3C] = "w3c",
                                          [STEP_OTLP] = "otlp",   [STEP_REMOTE_WRITE] = "remote_write"};

static const char *const origin_names[] = {"key",         "topic",    "partition", "timestamp",
                                           "header:NAME", "tag:NAME", "/POINTER",  NULL};

static const struct {
    const char *name;
    enum origin_kind kind;
} plain_origins[] = {{"key", ORIGIN_KEY},
                     {"topic", ORIGIN_TOPIC},
                     {"partition", ORIGIN_PARTITION},
                     {"timestamp", ORIGIN_TIMESTAMP}};

void decode_init(struct decode *d)
{
    *d = (struct decode){.metric = {"name", "ts", "value", "tags"}};
}

static bool starts_with(struct slice text, const char *prefix, struct slice *rest)
{
    size_t n = strlen(prefix);
    if (text.len < n || memcmp(text.ptr, prefix, n) != 0)
        return false;
    *rest = slice_of(text.ptr + n, text.len - n);
    return true;
}

static bool refuse(struct err *e, struct slice found, const char *expected, const char *const names[])
{
    char quote[SUGGEST_QUOTE_BYTES], hint[SUGGEST_HINT_BYTES] = "";
    if (names != NULL)
        suggest_hint(found, names, hint);
    return err_set(e, EX_CONFIG, "found %s, expected %s%s", suggest_quote(found, quote), expected, hint);
}

static bool is_good_pointer(struct slice s)
{
    return json_pointer_is_good(s) && s.len < DECODE_ORIGIN_BYTES && memchr(s.ptr, '\0', s.len) == NULL;
}

static bool is_good_name(struct slice s)
{
    return s.len > 0 && s.len < DECODE_ORIGIN_BYTES && memchr(s.ptr, '\0', s.len) == NULL;
}

static bool makes_events(enum decode_step_kind kind)
{
    return kind == STEP_LINE || kind == STEP_JSON || kind == STEP_METRIC || decode_step_has_parts(kind) ||
           decode_step_has_values(kind) || kind == STEP_OTLP || kind == STEP_REMOTE_WRITE;
}

static bool parse_plain_step(struct slice text, struct decode_step *step)
{
    for (size_t i = 0; i < COUNT_OF(plain_steps); i++) {
        if (plain_steps[i] == NULL || !slice_is(text, plain_steps[i]))
            continue;
        step->kind = (enum decode_step_kind)i;
        return true;
    }
    return false;
}

static bool parse_step(struct slice text, struct decode_step *step)
{
    struct slice pointer;
    *step = (struct decode_step){.kind = STEP_LINE};
    if (clf_format_parse(text, &step->format) || parse_plain_step(text, step))
        return true;
    if (!starts_with(text, JSON_STRING_PREFIX, &pointer) || pointer.len == 0 || !is_good_pointer(pointer))
        return false;
    step->kind = STEP_JSON_STRING;
    memcpy(step->pointer, pointer.ptr, pointer.len);
    return true;
}

/* Finds the kind of "csv:…", and what is behind its colon. */
static bool parse_named_step(struct slice text, enum decode_step_kind *kind, struct slice *rest)
{
    for (size_t i = 0; i < COUNT_OF(named_steps); i++) {
        if (named_steps[i] == NULL || !starts_with(text, named_steps[i], rest) || rest->len == 0 ||
            rest->ptr[0] != ':')
            continue;
        *rest = slice_of(rest->ptr + 1, rest->len - 1);
        *kind = (enum decode_step_kind)i;
        return true;
    }
    return false;
}

/* Finds the server of "apache:…" or "nginx:…", and what is behind its colon. */
static bool parse_format_step(struct slice text, enum format_server *server, struct slice *rest)
{
    *server = FORMAT_APACHE;
    if (starts_with(text, APACHE_PREFIX, rest))
        return true;
    *server = FORMAT_NGINX;
    return starts_with(text, NGINX_PREFIX, rest);
}

bool decode_takes_rest(const char *steps)
{
    enum decode_step_kind kind;
    enum format_server server;
    struct slice rest;
    return (parse_named_step(slice_text(steps), &kind, &rest) && !decode_step_has_schema(kind)) ||
           parse_format_step(slice_text(steps), &server, &rest);
}

/* Compiles "apache:…" or "nginx:…"; *is_format: it is that. */
static bool compile_step(struct decode *d, struct slice text, struct decode_step *step, bool *is_format,
                         struct err *e)
{
    enum format_server server;
    struct slice rest;
    *is_format = parse_format_step(text, &server, &rest);
    if (!*is_format)
        return true;
    step->is_compiled = true;
    if (!format_compile(&d->format, server, rest, e))
        return err_prefix(e, "%s", format_server_name(server));
    step->format = d->format.is_builtin ? d->format.builtin : CLF_AUTO;
    return true;
}

static bool is_good_path(struct slice path, struct err *e)
{
    return (path.len > 0 && path.len < REGISTRY_PATH_BYTES && memchr(path.ptr, '\0', path.len) == NULL) ||
           refuse(e, path, "the path of a file with a schema", NULL);
}

static bool part_names_of(enum decode_step_kind kind, struct slice parts, struct part_names *names,
                          struct err *e)
{
    size_t count;
    if (decode_step_has_schema(kind))
        return is_good_path(parts, e);
    if (kind == STEP_W3C)
        return w3c_names_are_good(parts, false, e);
    if (kind == STEP_REMOTE_WRITE)
        return slice_is(parts, DECODE_DELTAS) || slice_is(parts, DECODE_TOTALS) ||
               refuse(e, parts, "[remote_write], [{remote_write: deltas}] or [{remote_write: totals}]", NULL);
    if (kind == STEP_OTLP)
        return slice_is(parts, DECODE_TOTALS) || refuse(e, parts, "[otlp], or [{otlp: totals}]", NULL);
    bool good = kind == STEP_REGEX ? line_regex_names(parts, names, e) : csv_names(parts, names, &count, e);
    return good || err_prefix(e, "%s", named_steps[kind]);
}

static bool add_step(struct decode *d, struct slice text, struct err *e)
{
    struct decode_step step = {.kind = STEP_LINE};
    struct slice parts = {"", 0};
    struct part_names names;
    bool is_format, is_named = parse_named_step(text, &step.kind, &parts);
    if (!compile_step(d, text, &step, &is_format, e))
        return false;
    if (is_named && !part_names_of(step.kind, parts, &names, e))
        return false;
    if (parts.len >= DECODE_PARTS_BYTES || memchr(parts.ptr, '\0', parts.len) != NULL)
        return err_set(e, EX_CONFIG, "found %zu bytes behind %s, expected a text of at most %d", parts.len,
                       named_steps[step.kind], DECODE_PARTS_BYTES - 1);
    const bool is_step = is_named || is_format || parse_step(text, &step);
    if (!is_step && starts_with(text, JSON_STRING_PREFIX, &parts))
        return refuse(e, text, "json:/POINTER, whose pointer begins with /: json:/message", NULL);
    if (!is_step)
        return refuse(
            e, text,
            "auto, common, combined, vhost_combined, syslog, cri, msgpack, avro, avro:FILE, protobuf, "
            "protobuf:FILE, json:/POINTER, json, metric, logfmt, "
            "influx, statsd, otlp, otlp:totals, remote_write, remote_write:deltas, remote_write:totals, "
            "csv:COLUMNS, tsv:COLUMNS, regex:EXPRESSION, w3c, w3c:NAMES, apache:FORMAT, "
            "nginx:FORMAT, alb, caddy, "
            "elb, haproxy, s3, traefik or traefik_json",
            decode_step_names);
    enum decode_step_kind last = d->step_count > 0 ? d->steps[d->step_count - 1].kind : STEP_SYSLOG;
    if (makes_events(last) && (last != STEP_OTLP || decode_keeps_totals(d)))
        return refuse(e, text, "nothing behind the step that makes events", NULL);
    if (d->step_count == DECODE_STEPS_MAX)
        return err_set(e, EX_CONFIG, "found more steps than %d, expected at most so many", DECODE_STEPS_MAX);
    d->steps[d->step_count++] = step;
    bool has_schema = decode_step_has_schema(step.kind);
    char *to = has_schema ? d->schema_path : d->parts;
    memset(to, 0, has_schema ? sizeof d->schema_path : sizeof d->parts);
    memcpy(to, parts.ptr, parts.len);
    return true;
}

bool decode_add_step(struct decode *d, struct slice text, struct err *e)
{
    const struct preset *preset = preset_find(text);
    if (!add_step(d, preset != NULL ? slice_text(preset->step) : text, e))
        return false;
    d->preset = preset;
    return true;
}

static bool parse_origin(struct slice text, struct origin *o)
{
    struct slice rest = {"", 0};
    bool found = true;
    *o = (struct origin){.kind = ORIGIN_POINTER};
    if (text.len > 0 && text.ptr[0] == '/') {
        rest = text;
        found = is_good_pointer(text);
    } else if (starts_with(text, TAG_PREFIX, &rest) || starts_with(text, HEADER_PREFIX, &rest)) {
        o->kind = text.ptr[0] == 't' ? ORIGIN_TAG : ORIGIN_HEADER;
        found = is_good_name(rest);
    } else {
        found = false;
        for (size_t i = 0; i < COUNT_OF(plain_origins) && !found; i++) {
            o->kind = plain_origins[i].kind;
            found = slice_is(text, plain_origins[i].name);
        }
    }
    if (found)
        memcpy(o->text, rest.ptr, rest.len);
    return found;
}

bool decode_has_origin(const struct decode *d, enum field f)
{
    for (size_t i = 0; i < d->origin_count; i++) {
        if (d->origins[i].field == f)
            return true;
    }
    return false;
}

bool decode_is_replaced(const struct decode *d, enum field f)
{
    size_t i = 0;
    while (i < d->origin_count && d->origins[i].field != f)
        i++;
    return i < d->origin_count &&
           (f >= FIELD_COUNT || d->origins[i].kind == ORIGIN_POINTER || d->origins[i].kind == ORIGIN_TAG);
}

enum field decode_own_field(const struct decode *d, const char *name)
{
    enum field f;
    return field_parse(slice_text(name), &f) && !decode_has_origin(d, f) ? f : (enum field)FIELD_MAX;
}

uint64_t decode_tag_fields(const struct decode *d)
{
    uint64_t fields = DECODE_TAG_FIELDS;
    for (int i = FIELD_COUNT; i < FIELD_MAX; i++)
        fields |= (uint64_t)!decode_has_origin(d, (enum field)i) << i;
    return fields;
}

bool decode_add_field(struct decode *d, struct slice name, struct slice origin, struct err *e)
{
    struct origin o;
    if (!parse_origin(origin, &o))
        return refuse(
            e, origin,
            "a JSON pointer as /request/uri, tag:NAME, header:NAME, key, topic, partition or timestamp",
            origin_names);
    if (!field_intern(name, &o.field))
        return refuse(e, name, "a name of small letters, digits and _ (one of at most 48 of your own)", NULL);
    if (decode_has_origin(d, o.field))
        return refuse(e, name, "each field once", NULL);
    ASSERT(d->origin_count < DECODE_FIELDS_MAX);
    d->origins[d->origin_count++] = o;
    return true;
}

bool decode_add_constant(struct decode *d, struct slice name, struct err *e)
{
    enum field f;
    if (!field_intern(name, &f))
        return refuse(e, name, "a name of small letters, digits and _ (one of at most 48 of your own)", NULL);
    if (f < FIELD_COUNT && (CHAIN_FIELD_TEXTS >> f & 1) == 0)
        return refuse(e, name, "a field that is just a text, such as vhost, or a name of your own", NULL);
    d->constants |= (uint64_t)1 << f;
    return true;
}

bool decode_set_time(struct decode *d, struct slice text, struct err *e)
{
    bool brokers = slice_is(text, "broker");
    if (!brokers && (text.len == 0 || !is_good_pointer(text)))
        return refuse(e, text, "broker, or a JSON pointer as /@timestamp", NULL);
    d->time_is_brokers = brokers;
    memset(d->time_pointer, 0, sizeof d->time_pointer);
    if (!brokers)
        memcpy(d->time_pointer, text.ptr, text.len);
    return true;
}

bool decode_set_metric(struct decode *d, enum metric_member member, struct slice text, struct err *e)
{
    ASSERT((unsigned)member < METRIC_MEMBER_COUNT);
    if (!is_good_name(text) || text.len >= FIELD_NAME_BYTES)
        return refuse(e, text, "a member's name of 1 to 31 bytes", NULL);
    memset(d->metric[member], 0, FIELD_NAME_BYTES);
    memcpy(d->metric[member], text.ptr, text.len);
    return true;
}

static uint64_t with_derived(enum field f)
{
    bool is_target = f == FIELD_TARGET || f == FIELD_PATH; /* a path with a query is one, too */
    return f == FIELD_REQUEST ? REQUEST_FIELDS : is_target ? TARGET_FIELDS : (uint64_t)1 << f;
}

static bool is_in(const char *name, const struct slice names[], size_t count)
{
    bool found = false;
    for (size_t i = 0; i < count && !found; i++)
        found = slice_is(names[i], name);
    return found;
}

/* Makes fields of the names of the last step's parts. */
static bool finish_parts(struct decode *d, enum decode_step_kind last, struct err *e)
{
    struct slice times[PARTS_TIMES_MAX];
    struct part_names names;
    size_t time_count = d->time_is_brokers ? 0 : parts_time_names(d->time_pointer, times);
    bool has_time = d->time_is_brokers;
    if (!part_names_of(last, slice_text(d->parts), &names, e))
        return false;
    d->part_fields = 0;
    for (size_t i = 0; i < names.count; i++) {
        enum field f;
        if (is_in(names.list[i].text, times, time_count)) {
            has_time = true;
            continue;
        }
        if (!field_intern(slice_text(names.list[i].text), &f))
            return err_set(e, EX_CONFIG, "found %s, expected at most %d names of your own",
                           names.list[i].text, FIELD_OWN_MAX);
        d->part_fields |= with_derived(f);
    }
    return has_time ||
           err_set(e, EX_CONFIG, "found no %s in %s, expected a time: name it, or say time: /NAME or broker",
                   d->time_pointer[0] != '\0' ? d->time_pointer + 1 : "time", named_steps[last]);
}

/* Adds the preset's fields that the configuration does not say otherwise. */
static bool finish_preset(struct decode *d, struct err *e)
{
    for (size_t i = 0; d->preset != NULL && i < PRESET_FIELDS_MAX && d->preset->fields[i].name != NULL; i++) {
        struct slice name = slice_text(d->preset->fields[i].name);
        enum field f;
        bool is_said = field_parse(name, &f) && (decode_has_origin(d, f) || (d->constants >> f & 1) != 0);
        if (!is_said && !decode_add_field(d, name, slice_text(d->preset->fields[i].origin), e))
            return false;
    }
    return true;
}

bool decode_finish(struct decode *d, struct err *e)
{
    enum decode_step_kind last = d->step_count > 0 ? d->steps[d->step_count - 1].kind : STEP_LINE;
    if (!makes_events(last)) {
        struct text steps = {0};
        decode_print_steps(d, &steps);
        err_set(e, EX_CONFIG, "found %s, expected a last step that makes events, as combined", steps.ptr);
        text_fini(&steps);
        return false;
    }
    if (d->step_count > 0 && d->steps[d->step_count - 1].is_compiled && !d->format.has_time &&
        !d->time_is_brokers)
        return err_set(
            e, EX_CONFIG,
            "found a format without a time, expected one such as %%t or $time_local, or time: broker");
    if (!finish_preset(d, e) || !decode_check(d, last, e) ||
        (decode_step_names_parts(last) && !finish_parts(d, last, e)))
        return false;
    if (d->step_count == 0)
        d->steps[d->step_count++] = (struct decode_step){.kind = STEP_LINE, .format = CLF_AUTO};
    return true;
}

static uint64_t fields_of_last_step(const struct decode *d)
{
    static const uint64_t of_format[CLF_FORMAT_COUNT] = {[CLF_AUTO] = VHOST_FIELDS,
                                                         [CLF_COMMON] = COMMON_FIELDS,
                                                         [CLF_COMBINED] = COMBINED_FIELDS,
                                                         [CLF_VHOST_COMBINED] = VHOST_FIELDS};
    const struct decode_step *step = &d->steps[d->step_count - 1];
    if (step->is_compiled)
        return d->format.fields;
    if (step->kind == STEP_LINE)
        return of_format[step->format];
    if (decode_step_names_parts(step->kind))
        return d->part_fields;
    return step->kind == STEP_METRIC || decode_step_has_values(step->kind) ? METRIC_FIELDS
                                                                           : ~(~(uint64_t)0 << FIELD_COUNT);
}

uint64_t decode_fields(const struct decode *d)
{
    ASSERT(d->step_count > 0);
    uint64_t fields = fields_of_last_step(d) | d->constants;
    for (size_t i = 0; i < d->origin_count; i++)
        fields |= with_derived(d->origins[i].field);
    return fields;
}

bool decode_provides(const struct decode *d, enum field f)
{
    return (decode_fields(d) >> f & 1) != 0 ||
           (f >= FIELD_COUNT && (decode_is_open(d) || (d->derive != NULL && derive_has(d->derive, f))));
}

bool decode_is_open(const struct decode *d)
{
    ASSERT(d->step_count > 0);
    enum decode_step_kind last = d->steps[d->step_count - 1].kind;
    return last == STEP_JSON || last == STEP_METRIC || last == STEP_LOGFMT || last == STEP_W3C ||
           last == STEP_OTLP || last == STEP_REMOTE_WRITE || decode_step_has_values(last);
}

bool decode_keeps_totals(const struct decode *d)
{
    const enum decode_step_kind last = d->step_count > 0 ? d->steps[d->step_count - 1].kind : STEP_SYSLOG;
    return (last == STEP_OTLP || last == STEP_REMOTE_WRITE) && slice_is(slice_text(d->parts), DECODE_TOTALS);
}

bool decode_needs_schema(const struct decode *d)
{
    return d->step_count > 0 && decode_step_has_schema(d->steps[0].kind);
}

enum schema_kind decode_schema_kind(const struct decode *d)
{
    ASSERT(decode_needs_schema(d));
    return d->steps[0].kind == STEP_AVRO ? SCHEMA_AVRO : SCHEMA_PROTOBUF;
}

const char *decode_binary_name(const struct decode *d)
{
    bool is_binary = d->step_count > 0 && decode_step_reads_bytes(d->steps[0].kind);
    return is_binary ? plain_steps[d->steps[0].kind] : NULL;
}

bool decode_heeds_directives(const struct decode *d)
{
    return d->step_count == 1 && d->steps[0].kind == STEP_W3C;
}

bool decode_ends_with_agent(const struct decode *d)
{
    const struct decode_step *s = &d->steps[0];
    return d->step_count == 1 && s->kind == STEP_LINE && !s->is_compiled && s->format != CLF_COMMON;
}

static bool is_preset(const struct decode *d, size_t i)
{
    return d->preset != NULL && i + 1 == d->step_count;
}

const char *decode_named_step(const struct decode *d, size_t i, struct slice *text)
{
    size_t kind = d->steps[i].kind;
    if (is_preset(d, i))
        return NULL;
    if (d->steps[i].is_compiled) {
        *text = slice_of(d->format.text, d->format.text_len);
        return format_server_name(d->format.server);
    }
    *text = slice_text(decode_step_has_schema(d->steps[i].kind) ? d->schema_path : d->parts);
    bool is_others = kind == STEP_OTLP && i + 1 < d->step_count; /* the text is of the step behind */
    return kind < COUNT_OF(named_steps) && text->len > 0 && !is_others ? named_steps[kind] : NULL;
}

void decode_print_step(const struct decode *d, size_t i, struct text *out)
{
    const struct decode_step *step = &d->steps[i];
    struct slice text;
    const char *name = decode_named_step(d, i, &text);
    if (is_preset(d, i))
        text_puts(out, d->preset->name);
    else if (name != NULL)
        text_printf(out, "%s:%s", name, text.ptr);
    else if (step->kind == STEP_JSON_STRING)
        text_printf(out, JSON_STRING_PREFIX "%s", step->pointer);
    else if (step->kind == STEP_LINE)
        text_puts(out, clf_format_name(step->format));
    else
        text_puts(out, plain_steps[step->kind]);
}

void decode_print_origin(const struct origin *o, struct text *out)
{
    if (o->kind == ORIGIN_TAG)
        text_puts(out, TAG_PREFIX);
    if (o->kind == ORIGIN_HEADER)
        text_puts(out, HEADER_PREFIX);
    text_puts(out, o->text);
    for (size_t i = 0; i < COUNT_OF(plain_origins); i++) {
        if (o->kind == plain_origins[i].kind)
            text_puts(out, plain_origins[i].name);
    }
}
