#include "ingest/decode/otlp.h"

#include "base/check.h"
#include "base/mem.h"
#include "base/protobuf.h"
#include "ingest/decode/chain_field.h"
#include "ingest/decode/otlp_internal.h"

#include <stdlib.h>

enum { MESSAGE_RESOURCES = 1 };
enum { RESOURCE_RESOURCE = 1, RESOURCE_SCOPES = 2, RESOURCE_SCHEMA = 3 };
enum { SCOPE_SCOPE = 1, SCOPE_RECORDS = 2, SCOPE_SCHEMA = 3 };
enum { ATTRIBUTES_OF_RESOURCE = 1, SCOPE_NAME = 1, ATTRIBUTES_OF_SCOPE = 3 };
enum { POINTS = 1 };

struct otlp *otlp_new(const struct decode *d, size_t line_max, struct arena *memory)
{
    static const char *const own_names[OTLP_OWN_COUNT] = {[OTLP_BODY] = "body",
                                                          [OTLP_SEVERITY] = "severity",
                                                          [OTLP_SEVERITY_NUMBER] = "severity_number",
                                                          [OTLP_EVENT_NAME] = "event_name",
                                                          [OTLP_TRACE_ID] = "trace_id",
                                                          [OTLP_SPAN_ID] = "span_id",
                                                          [OTLP_SCOPE] = "scope",
                                                          [OTLP_TYPE] = "type",
                                                          [OTLP_UNIT] = "unit"};
    struct otlp *o = xcalloc(1, sizeof *o);
    otlp_names_init(&o->names, d);
    o->memory = memory;
    o->line_max = line_max;
    o->has_text_step = d->step_count > 1;
    o->needs_no_time = d->time_is_brokers;
    o->keeps_totals = decode_keeps_totals(d);
    for (size_t i = 0; i < OTLP_OWN_COUNT; i++)
        o->own[i] = decode_own_field(d, own_names[i]);
    return o;
}

void otlp_free(struct otlp *o)
{
    if (o != NULL)
        otlp_json_parts_free(&o->parts);
    free(o);
}

size_t otlp_add_tag(struct otlp *o, const char *name)
{
    return otlp_names_add_tag(&o->names, name);
}

bool otlp_tag(const struct otlp *o, size_t tag, struct slice *text)
{
    const struct otlp_values *places[] = {&o->attributes, &o->body, &o->scope, &o->resource};
    size_t slot = OTLP_SLOT_TAGS + tag;
    for (size_t i = 0; i < OTLP_PLACES; i++) {
        if ((places[i]->has[slot / 64] >> slot % 64 & 1) == 0)
            continue;
        *text = places[i]->text[slot];
        return true;
    }
    return false;
}

void otlp_reset(struct otlp *o)
{
    struct slice none = {NULL, 0};
    o->has_begun = false;
    o->message = o->in_resource = o->in_scope = o->metric.points = none;
    o->next_value = OTLP_VALUES_MAX;
}

bool otlp_has_begun(const struct otlp *o)
{
    return o->has_begun;
}

static void begin(struct otlp *o, struct slice message, const struct record *r, bool is_json)
{
    otlp_reset(o);
    o->has_begun = true;
    o->is_json = is_json;
    o->part = 0;
    o->record = r;
    o->message = message;
}

bool otlp_is_json(struct slice bytes)
{
    static const char begins[] = {'{', '[', ' ', '\t', '\r', '\xEF'}; /* the last one: a byte order mark */
    return bytes.len > 0 && memchr(begins, *bytes.ptr, sizeof begins) != NULL;
}

/* Does a message begin as one of OTLP? */
static bool is_message(struct slice bytes)
{
    struct protobuf_field f;
    return bytes.len > 0 && protobuf_take(&bytes, &f) && protobuf_is(&f, MESSAGE_RESOURCES, PROTOBUF_BYTES);
}

bool otlp_begin(struct otlp *o, struct slice bytes, const struct record *r, struct reject *why)
{
    *why = (struct reject){REJECT_OTLP, 1};
    if (!is_message(bytes))
        return false;
    begin(o, bytes, r, false);
    return true;
}

bool otlp_begin_json(struct otlp *o, struct slice json, const struct record *r, struct reject *why)
{
    struct slice message;
    if (!otlp_json_read(json, o->memory, &message, &o->parts, why))
        return false;
    begin(o, message, r, true);
    return true;
}

enum otlp_result otlp_refuse(const struct otlp *o, enum reject_reason reason, struct slice bytes,
                             const char *at, struct reject *why)
{
    bool is_inside = !o->is_json && at >= bytes.ptr && at <= slice_end(bytes);
    *why = (struct reject){reason, is_inside ? (size_t)(at - bytes.ptr) + 1 : 1};
    return OTLP_REJECT;
}

void otlp_put_own(const struct otlp *o, enum otlp_own own, struct slice text, struct event *ev)
{
    if ((unsigned)o->own[own] < FIELD_MAX && text.len > 0)
        chain_field_put(ev, o->own[own], text, false);
}

bool otlp_put_fields(struct otlp *o, struct slice bytes, struct event *ev, struct reject *why)
{
    struct otlp_values *const places[] = {&o->attributes, &o->body, &o->scope, &o->resource};
    struct slice text;
    enum reject_reason reason = otlp_put_attributes(places, OTLP_PLACES, o->memory, ev, &text);
    otlp_put_own(o, OTLP_SCOPE, o->scope_name, ev);
    if (reason == REJECT_COUNT)
        return true;
    otlp_refuse(o, reason, bytes, text.ptr, why);
    return false;
}

/* ---- what holds records. Parts that are broken are found again where their records are taken. */

/* Finds the last message of field `number`; empty: there is none. */
static struct slice find_part(struct slice bytes, uint64_t number)
{
    struct slice found = {"", 0};
    struct protobuf_field f;
    while (bytes.len > 0 && protobuf_take(&bytes, &f)) {
        if (protobuf_is(&f, number, PROTOBUF_BYTES))
            found = f.bytes;
    }
    return found;
}

/* Takes the attributes of a resource or scope. False: it is broken. */
static bool take_attributes(struct otlp *o, struct slice bytes, uint64_t number, enum otlp_place place,
                            struct otlp_values *v)
{
    struct protobuf_field f;
    otlp_values_clear(v);
    while (bytes.len > 0) {
        if (!protobuf_take(&bytes, &f) || (protobuf_is(&f, number, PROTOBUF_BYTES) &&
                                           !otlp_take_attribute(&o->names, f.bytes, place, o->memory, v)))
            return false;
    }
    return true;
}

static bool enter_resource(struct otlp *o, struct slice bytes)
{
    o->in_resource = bytes;
    otlp_values_clear(&o->scope);
    return take_attributes(o, find_part(bytes, RESOURCE_RESOURCE), ATTRIBUTES_OF_RESOURCE, OTLP_OF_RESOURCE,
                           &o->resource);
}

static bool enter_scope(struct otlp *o, struct slice bytes)
{
    struct slice scope = find_part(bytes, SCOPE_SCOPE);
    o->in_scope = bytes;
    o->scope_name = find_part(scope, SCOPE_NAME);
    return take_attributes(o, scope, ATTRIBUTES_OF_SCOPE, OTLP_OF_SCOPE, &o->scope);
}

enum kind { KIND_NONE, KIND_LOG, KIND_METRIC };

/* The kind of a record, by its first field that tells. */
static enum kind kind_of(struct slice bytes)
{
    struct protobuf_field f;
    while (bytes.len > 0 && protobuf_take(&bytes, &f)) {
        if (f.number <= 2 && f.wire == PROTOBUF_BYTES)
            return KIND_METRIC;
        if (protobuf_is(&f, 1, PROTOBUF_64_BITS) || protobuf_is(&f, 2, PROTOBUF_VARINT) ||
            protobuf_is(&f, 8, PROTOBUF_32_BITS) || protobuf_is(&f, 11, PROTOBUF_64_BITS))
            return KIND_LOG;
    }
    return bytes.len > 0 ? KIND_LOG : KIND_NONE; /* a broken one says so itself */
}

static enum otlp_result read_record(struct otlp *o, struct slice bytes, struct event *ev, struct slice *text,
                                    struct reject *why)
{
    switch (kind_of(bytes)) {
    case KIND_LOG:
        return otlp_log(o, bytes, ev, text, why);
    case KIND_METRIC:
        return otlp_metric_begin(o, bytes, why);
    default:
        return otlp_refuse(o, REJECT_MEMBER, bytes, bytes.ptr, why);
    }
}

/* The JSON of a part of the message. Parts are asked for in the order of the message. */
static struct slice json_of(struct otlp *o, struct slice bytes)
{
    while (o->part < o->parts.count && o->parts.list[o->part].message < bytes.ptr)
        o->part++;
    ASSERT(o->part < o->parts.count && o->parts.list[o->part].message == bytes.ptr);
    return o->parts.list[o->part].json;
}

/* Takes the next field of what is left of a part. *found: it has this number, which holds messages. False:
 * the rest is broken, and is a reject. */
static bool take_part(struct otlp *o, struct slice *rest, uint64_t number, uint64_t last_known, bool *found,
                      struct protobuf_field *f, struct slice *bytes, struct reject *why)
{
    *bytes = *rest;
    bool good = protobuf_take(rest, f) && (f->number > last_known || f->wire == PROTOBUF_BYTES);
    *found = good && f->number == number;
    if (good)
        return true;
    ASSERT(!o->is_json);
    *rest = slice_of(NULL, 0);
    otlp_refuse(o, REJECT_OTLP, *bytes, bytes->ptr, why);
    return false;
}

static enum otlp_result refuse_too_long(const struct otlp *o, struct reject *why)
{
    *why = (struct reject){REJECT_TOO_LONG, o->line_max + 1};
    return OTLP_REJECT;
}

/* Makes one step: into a part, or to the next record. OTLP_END: neither an event nor a reject yet. */
static enum otlp_result step(struct otlp *o, struct event *ev, struct slice *text, struct reject *why,
                             struct slice *bytes)
{
    const struct slice none = {NULL, 0};
    struct protobuf_field f;
    bool found;
    if (o->metric.points.len > 0) {
        if (!take_part(o, &o->metric.points, POINTS, POINTS, &found, &f, bytes, why))
            return OTLP_REJECT;
        if (!found)
            return OTLP_END;
        *bytes = o->point = o->is_json ? json_of(o, f.bytes) : f.bytes;
        return bytes->len > o->line_max ? refuse_too_long(o, why) : otlp_point_begin(o, f.bytes, why);
    }
    if (o->in_scope.len > 0) {
        if (!take_part(o, &o->in_scope, SCOPE_RECORDS, SCOPE_SCHEMA, &found, &f, bytes, why))
            return OTLP_REJECT;
        if (!found)
            return OTLP_END;
        *bytes = o->is_json ? json_of(o, f.bytes) : f.bytes;
        bool is_too_long = bytes->len > o->line_max && kind_of(f.bytes) != KIND_METRIC;
        return is_too_long ? refuse_too_long(o, why) : read_record(o, f.bytes, ev, text, why);
    }
    if (o->in_resource.len > 0) {
        if (!take_part(o, &o->in_resource, RESOURCE_SCOPES, RESOURCE_SCHEMA, &found, &f, bytes, why))
            return OTLP_REJECT;
        *bytes = f.bytes;
        if (!found || enter_scope(o, f.bytes))
            return OTLP_END;
        o->in_scope = none;
        return otlp_refuse(o, REJECT_OTLP, *bytes, bytes->ptr, why);
    }
    if (!take_part(o, &o->message, MESSAGE_RESOURCES, MESSAGE_RESOURCES, &found, &f, bytes, why))
        return OTLP_REJECT;
    *bytes = f.bytes;
    if (!found || enter_resource(o, f.bytes))
        return OTLP_END;
    o->in_resource = none;
    return otlp_refuse(o, REJECT_OTLP, *bytes, bytes->ptr, why);
}

enum otlp_result otlp_next(struct otlp *o, struct event *ev, struct slice *text, struct reject *why,
                           struct slice *bytes)
{
    enum otlp_result result = OTLP_END;
    ASSERT(o->has_begun);
    while (result == OTLP_END) {
        if (otlp_has_value(o)) {
            *bytes = o->point;
            return otlp_value(o, ev, why);
        }
        if (o->metric.points.len == 0 && o->in_scope.len == 0 && o->in_resource.len == 0 &&
            o->message.len == 0) {
            o->has_begun = false;
            return OTLP_END;
        }
        result = step(o, ev, text, why, bytes);
    }
    return result;
}
