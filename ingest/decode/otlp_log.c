/* The records of logs in OTLP. */
#include "base/civil.h"
#include "base/protobuf.h"
#include "ingest/decode/chain_field.h"
#include "ingest/decode/otlp_internal.h"

#include <inttypes.h>
#include <stdio.h>

enum {
    LOG_TIME = 1,
    LOG_SEVERITY = 2,
    LOG_SEVERITY_TEXT = 3,
    LOG_BODY = 5,
    LOG_ATTRIBUTES = 6,
    LOG_TRACE = 9,
    LOG_SPAN = 10,
    LOG_OBSERVED = 11,
    LOG_EVENT_NAME = 12
};

#define SEVERITY_NUMBERS    24 /* four for each name */
#define SEVERITY_TEXT_BYTES 24

struct log {
    uint64_t time_ns, observed_ns, severity;
    struct slice severity_text, body, trace_id, span_id, event_name;
};

static bool is_bytes(const struct protobuf_field *f)
{
    return f->wire == PROTOBUF_BYTES;
}

/* Notes a field of the record. False: it is of another type, or broken. */
static bool note_field(struct otlp *o, struct log *log, const struct protobuf_field *f)
{
    switch (f->number) {
    case LOG_TIME:
    case LOG_OBSERVED:
        if (f->wire != PROTOBUF_64_BITS)
            return false;
        *(f->number == LOG_TIME ? &log->time_ns : &log->observed_ns) = protobuf_fixed(f);
        return true;
    case LOG_SEVERITY:
        log->severity = f->varint;
        return f->wire == PROTOBUF_VARINT;
    case LOG_SEVERITY_TEXT:
        log->severity_text = f->bytes;
        return is_bytes(f);
    case LOG_BODY:
        log->body = f->bytes;
        return is_bytes(f);
    case LOG_ATTRIBUTES:
        return is_bytes(f) &&
               otlp_take_attribute(&o->names, f->bytes, OTLP_OF_LOG, o->memory, &o->attributes);
    case LOG_TRACE:
        log->trace_id = f->bytes;
        return is_bytes(f);
    case LOG_SPAN:
        log->span_id = f->bytes;
        return is_bytes(f);
    case LOG_EVENT_NAME:
        log->event_name = f->bytes;
        return is_bytes(f);
    default:
        return true;
    }
}

/* "INFO2" of 10; empty: it has no name. */
static struct slice severity_name(uint64_t number)
{
    static const char *const names[SEVERITY_NUMBERS] = {
        "TRACE", "TRACE2", "TRACE3", "TRACE4", "DEBUG", "DEBUG2", "DEBUG3", "DEBUG4",
        "INFO",  "INFO2",  "INFO3",  "INFO4",  "WARN",  "WARN2",  "WARN3",  "WARN4",
        "ERROR", "ERROR2", "ERROR3", "ERROR4", "FATAL", "FATAL2", "FATAL3", "FATAL4"};
    return slice_text(number >= 1 && number <= SEVERITY_NUMBERS ? names[number - 1] : "");
}

static void put_severity(struct otlp *o, const struct log *log, struct event *ev)
{
    struct slice name = log->severity_text.len > 0 ? log->severity_text : severity_name(log->severity);
    otlp_put_own(o, OTLP_SEVERITY, name, ev);
    if (log->severity == 0 || o->own[OTLP_SEVERITY_NUMBER] == (enum field)FIELD_MAX)
        return;
    char *out = arena_add(o->memory, SEVERITY_TEXT_BYTES);
    int len = snprintf(out, SEVERITY_TEXT_BYTES, "%" PRIu64, log->severity);
    otlp_put_own(o, OTLP_SEVERITY_NUMBER, slice_of(out, (size_t)len), ev);
}

static void put_hex(struct otlp *o, enum otlp_own own, struct slice id, struct event *ev)
{
    static const char digits[] = "0123456789abcdef";
    if (id.len == 0 || o->own[own] == (enum field)FIELD_MAX)
        return;
    char *out = arena_add(o->memory, 2 * id.len);
    for (size_t i = 0; i < id.len; i++) {
        out[2 * i] = digits[(unsigned char)id.ptr[i] >> 4];
        out[2 * i + 1] = digits[(unsigned char)id.ptr[i] & 15];
    }
    otlp_put_own(o, own, slice_of(out, 2 * id.len), ev);
}

static bool put_all(struct otlp *o, const struct log *log, struct slice bytes, struct slice body,
                    struct event *ev, struct reject *why)
{
    uint64_t ns = log->time_ns != 0 ? log->time_ns : log->observed_ns;
    if (ns == 0 && !o->needs_no_time) {
        otlp_refuse(o, REJECT_MEMBER, bytes, bytes.ptr, why);
        return false;
    }
    ev->present = ev->odd = ev->literal = ev->numeric = ev->unfit = 0;
    ev->at_ms = (int64_t)(ns / OTLP_NS_PER_MS);
    if (!otlp_put_fields(o, bytes, ev, why))
        return false;
    otlp_put_own(o, OTLP_BODY, body, ev);
    put_severity(o, log, ev);
    otlp_put_own(o, OTLP_EVENT_NAME, log->event_name, ev);
    put_hex(o, OTLP_TRACE_ID, log->trace_id, ev);
    put_hex(o, OTLP_SPAN_ID, log->span_id, ev);
    return true;
}

enum otlp_result otlp_log(struct otlp *o, struct slice bytes, struct event *ev, struct slice *text,
                          struct reject *why)
{
    struct log log = {0};
    struct slice rest = bytes, body;
    struct protobuf_field f;
    otlp_values_clear(&o->attributes);
    otlp_values_clear(&o->body);
    while (rest.len > 0) {
        const char *at = rest.ptr;
        if (!protobuf_take(&rest, &f) || !note_field(o, &log, &f))
            return otlp_refuse(o, REJECT_OTLP, bytes, at, why);
    }
    if (!otlp_take_any(log.body, o->memory, &body) ||
        !otlp_take_members(&o->names, log.body, o->memory, &o->body))
        return otlp_refuse(o, REJECT_OTLP, bytes, log.body.ptr, why);
    if (!o->has_text_step)
        return put_all(o, &log, bytes, body, ev, why) ? OTLP_EVENT : OTLP_REJECT;
    *text = body;
    return body.ptr != NULL ? OTLP_TEXT : otlp_refuse(o, REJECT_MEMBER, bytes, bytes.ptr, why);
}
