#include "ingest/decode/json_step.h"

#include "base/civil.h"
#include "base/mem.h"
#include "ingest/decimal.h"
#include "ingest/decode/chain_field.h"
#include "ingest/decode/json_paths.h"
#include "ingest/timestamp.h"

#include <stdlib.h>

#define PLAIN_FIELDS (CHAIN_FIELD_TEXTS & ~((uint64_t)1 << FIELD_PATH))

static const char *const default_times[JSON_TIMES_MAX] = {"@timestamp", "timestamp", "time", "ts"};

/* Appends "/name" to a pointer. */
static void add_name(struct text *pointer, const char *name)
{
    text_putc(pointer, '/');
    for (; *name != '\0'; name++) {
        if (*name == '~' || *name == '/')
            text_puts(pointer, *name == '~' ? "~0" : "~1");
        else
            text_putc(pointer, *name);
    }
}

/* Makes it look for the member `name` of the member `parent` (NULL: of the whole value). */
static size_t add_member(struct json_step *js, const char *parent, const char *name)
{
    struct text pointer = {0};
    if (parent != NULL)
        add_name(&pointer, parent);
    add_name(&pointer, name);
    size_t path = json_paths_add(js->paths, text_slice(&pointer));
    text_fini(&pointer);
    return path;
}

/* Adds the fields of `built_in`, and own ones, in the order of enum field, so that explicit fields override
 * derived ones (chain_field_put()). */
static void add_fields(struct json_step *js, const struct decode *d, const char *parent, uint64_t built_in)
{
    int count = field_count();
    for (int i = 0; i < count; i++) {
        enum field f = (enum field)i;
        if ((i < FIELD_COUNT && (built_in >> f & 1) == 0) || decode_is_replaced(d, f))
            continue;
        size_t path = add_member(js, parent, field_name(f));
        ASSERT(path == js->field_count && path < 64);
        js->fields[js->field_count++] = f;
    }
}

static void add_times(struct json_step *js, const struct decode *d)
{
    if (d->time_is_brokers)
        return;
    if (d->time_pointer[0] != '\0') {
        js->time_paths[js->time_count++] = json_paths_add(js->paths, slice_text(d->time_pointer));
        return;
    }
    while (js->time_count < JSON_TIMES_MAX) {
        js->time_paths[js->time_count] = add_member(js, NULL, default_times[js->time_count]);
        js->time_count++;
    }
}

static void add_metric(struct json_step *js, const struct decode *d)
{
    add_fields(js, d, d->metric[METRIC_TAGS], DECODE_TAG_FIELDS);
    js->name_path = add_member(js, NULL, d->metric[METRIC_NAME]);
    js->value_path = add_member(js, NULL, d->metric[METRIC_VALUE]);
    js->tags_path = add_member(js, NULL, d->metric[METRIC_TAGS]);
    if (!d->time_is_brokers)
        js->time_paths[js->time_count++] = add_member(js, NULL, d->metric[METRIC_TIME]);
}

struct json_step *json_step_new(const struct decode *d, size_t step, unsigned depth_max)
{
    struct json_step *js = xcalloc(1, sizeof *js);
    js->kind = d->steps[step].kind;
    js->paths = json_paths_new(depth_max);
    if (js->kind == STEP_JSON_STRING) {
        js->string_path = json_paths_add(js->paths, slice_text(d->steps[step].pointer));
    } else if (js->kind == STEP_JSON) {
        add_fields(js, d, NULL, ~(uint64_t)0);
        add_times(js, d);
    } else if (js->kind == STEP_METRIC) {
        add_metric(js, d);
    } else {
        ASSERT(js->kind == STEP_OTLP); /* which only wants to know that it is JSON */
    }
    return js;
}

void json_step_free(struct json_step *js)
{
    if (js != NULL)
        json_paths_free(js->paths);
    free(js);
}

size_t json_step_add(struct json_step *js, const struct decode *d, const struct origin *o)
{
    if (o->kind == ORIGIN_TAG)
        return add_member(js, d->metric[METRIC_TAGS], o->text);
    ASSERT(o->kind == ORIGIN_POINTER);
    return json_paths_add(js->paths, slice_text(o->text));
}

enum json_result json_step_read(struct json_step *js, struct slice text, const char **at)
{
    js->start = text.ptr;
    return json_read(js->paths, text, &js->found, at);
}

static size_t column_of(const struct json_step *js, const struct json_value *v)
{
    return v == NULL ? 1 : (size_t)(v->text.ptr - js->start) + (!json_type_is_string(v->type));
}

size_t json_step_column(const struct json_step *js, size_t path)
{
    return column_of(js, json_found_get(&js->found, path));
}

static bool refuse(struct reject *why, enum reject_reason reason, size_t column)
{
    *why = (struct reject){reason, column};
    return false;
}

static bool refuse_value(const struct json_step *js, const struct json_value *v, enum reject_reason reason,
                         struct reject *why)
{
    return refuse(why, reason, column_of(js, v));
}

static struct slice text_of(const struct json_value *v, struct arena *memory)
{
    if (LIKELY(v->type != JSON_ESCAPED_STRING))
        return v->text;
    char *out = arena_add(memory, v->text.len);
    return slice_of(out, json_unescape(v->text, out));
}

/* The value at a path; NULL: it is absent or null. */
static const struct json_value *get(const struct json_step *js, size_t path)
{
    const struct json_value *v = json_found_get(&js->found, path);
    return v != NULL && v->type != JSON_NULL ? v : NULL;
}

bool json_step_text(const struct json_step *js, size_t path, struct arena *memory, struct slice *text,
                    bool *is_plain)
{
    const struct json_value *v = get(js, path);
    if (v == NULL || !json_type_is_text(v->type))
        return false;
    *text = text_of(v, memory);
    *is_plain = v->type <= JSON_PLAIN_STRING;
    return true;
}

bool json_step_unwrap(const struct json_step *js, struct arena *memory, struct slice *text,
                      struct reject *why)
{
    const struct json_value *v = get(js, js->string_path);
    if (v == NULL && *js->start == '{')
        return refuse(why, REJECT_MEMBER, 1);
    if (v == NULL || !json_type_is_string(v->type))
        return refuse_value(js, v, REJECT_TYPE, why);
    *text = text_of(v, memory);
    return true;
}

static bool take_fields(const struct json_step *js, struct arena *memory, struct event *ev,
                        struct reject *why)
{
    uint64_t bits = js->found.bits[0] & (((uint64_t)1 << js->field_count) - 1);
    for (; bits != 0; bits &= bits - 1) {
        size_t path = (size_t)__builtin_ctzll(bits);
        const struct json_value *v = &js->found.values[path];
        enum field f = js->fields[path];
        if (LIKELY(v->type == JSON_PLAIN_STRING && v->text.len > 1 && ((PLAIN_FIELDS >> f) & 1))) {
            chain_field_put_plain(ev, f, v->text);
            continue;
        }
        if (!json_type_is_text(v->type))
            continue;
        bool is_plain = v->type <= JSON_PLAIN_STRING;
        enum reject_reason reason = chain_field_put(ev, f, text_of(v, memory), is_plain);
        if (UNLIKELY(reason != REJECT_COUNT))
            return refuse_value(js, v, reason, why);
    }
    return true;
}

/* 1: the time is taken; 0: there is none; -1: it does not fit. */
static int take_time(struct json_step *js, struct arena *memory, struct event *ev, struct reject *why)
{
    const struct json_value *v = NULL;
    for (size_t i = 0; i < js->time_count && v == NULL; i++)
        v = get(js, js->time_paths[i]);
    if (v == NULL)
        return 0;
    enum reject_reason reason = REJECT_TYPE;
    bool good = v->type == JSON_NUMBER ? timestamp_parse_number(v->text, &ev->at_ms, &reason)
                : json_type_is_string(v->type)
                    ? text_time_parse(&js->time, text_of(v, memory), &ev->at_ms, &reason)
                    : false;
    return good || refuse_value(js, v, reason, why) ? 1 : -1;
}

static bool take_metric(const struct json_step *js, struct arena *memory, struct event *ev,
                        struct reject *why)
{
    const struct json_value *name = get(js, js->name_path), *value = get(js, js->value_path);
    const struct json_value *tags = get(js, js->tags_path);
    if (name == NULL || value == NULL)
        return refuse(why, REJECT_MEMBER, 1);
    if (!json_type_is_string(name->type))
        return refuse_value(js, name, REJECT_TYPE, why);
    if (value->type != JSON_NUMBER)
        return refuse_value(js, value, REJECT_TYPE, why);
    if (tags != NULL && tags->type != JSON_OBJECT)
        return refuse_value(js, tags, REJECT_TYPE, why);
    chain_field_put(ev, FIELD_NAME, text_of(name, memory), name->type == JSON_PLAIN_STRING);
    enum reject_reason reason = chain_field_put(ev, FIELD_VALUE, value->text, true);
    return reason == REJECT_COUNT || refuse_value(js, value, reason, why);
}

bool json_step_event(struct json_step *js, const struct record *r, struct arena *memory, struct event *ev,
                     struct reject *why)
{
    ev->present = ev->odd = ev->literal = ev->numeric = ev->unfit = 0;
    if (*js->start != '{')
        return refuse(why, REJECT_TYPE, 1);
    if (js->kind == STEP_METRIC && !take_metric(js, memory, ev, why))
        return false;
    int taken = take_time(js, memory, ev, why);
    if (taken < 0)
        return false;
    if (taken == 0 && js->time_count > 0) {
        if (js->kind != STEP_METRIC)
            return refuse(why, REJECT_NO_TIME, 1);
        if (r->timestamp_ms < 0)
            return refuse(why, REJECT_MEMBER, 1);
        if (r->timestamp_ms >= CIVIL_END_MS)
            return refuse(why, REJECT_TIME_RANGE, 1);
        ev->at_ms = r->timestamp_ms;
    }
    return take_fields(js, memory, ev, why);
}
