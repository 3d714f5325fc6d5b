#include "ingest/decode/otlp_json.h"

#include "base/check.h"
#include "base/mem.h"
#include "base/protobuf.h"
#include "base/units.h"
#include "ingest/decode/json.h"
#include "ingest/decode/json_scan.h"

#include <math.h>
#include <stdlib.h>

#define LENGTH_BYTES 5  /* of a part's length, which is not known yet: a varint may have leading zeros */
#define MORE_BYTES   64 /* of the message */

enum kind { TEXT, HEX, INT, SIGNED, BOOL, FIXED32, FIXED64, DOUBLE, COUNTS, MESSAGE, LIST };

enum message {
    DATA,
    OF_RESOURCE,
    RESOURCE,
    OF_SCOPE,
    SCOPE,
    LOG,
    METRIC,
    POINTS,
    HISTOGRAM,
    EXPONENTIAL,
    SUMMARY,
    NUMBER_POINT,
    HISTOGRAM_POINT,
    EXPONENTIAL_POINT,
    SUMMARY_POINT,
    KEY_VALUE,
    ANY,
    ARRAY,
    MEMBERS,
    BUCKETS,
    MESSAGE_COUNT
};

struct member {
    const char *name;
    unsigned char number, kind, message; /* `message`: of a MESSAGE, or of a LIST's elements */
};

#define MEMBERS_MAX 12

/* Names, numbers and types of the files opentelemetry/proto/{common,resource,logs,metrics}/v1. */
static const struct member members[MESSAGE_COUNT][MEMBERS_MAX] = {
    [DATA] = {{"resourceLogs", 1, LIST, OF_RESOURCE}, {"resourceMetrics", 1, LIST, OF_RESOURCE}},
    [OF_RESOURCE] = {{"resource", 1, MESSAGE, RESOURCE},
                     {"scopeLogs", 2, LIST, OF_SCOPE},
                     {"scopeMetrics", 2, LIST, OF_SCOPE}},
    [RESOURCE] = {{"attributes", 1, LIST, KEY_VALUE}},
    [OF_SCOPE] = {{"scope", 1, MESSAGE, SCOPE}, {"logRecords", 2, LIST, LOG}, {"metrics", 2, LIST, METRIC}},
    [SCOPE] = {{"name", 1, TEXT, 0}, {"attributes", 3, LIST, KEY_VALUE}},
    [LOG] = {{"timeUnixNano", 1, FIXED64, 0},
             {"observedTimeUnixNano", 11, FIXED64, 0},
             {"severityNumber", 2, INT, 0},
             {"severityText", 3, TEXT, 0},
             {"body", 5, MESSAGE, ANY},
             {"attributes", 6, LIST, KEY_VALUE},
             {"flags", 8, FIXED32, 0},
             {"traceId", 9, HEX, 0},
             {"spanId", 10, HEX, 0},
             {"eventName", 12, TEXT, 0}},
    [METRIC] = {{"name", 1, TEXT, 0},
                {"unit", 3, TEXT, 0},
                {"gauge", 5, MESSAGE, POINTS},
                {"sum", 7, MESSAGE, POINTS},
                {"histogram", 9, MESSAGE, HISTOGRAM},
                {"exponentialHistogram", 10, MESSAGE, EXPONENTIAL},
                {"summary", 11, MESSAGE, SUMMARY}},
    [POINTS] = {{"dataPoints", 1, LIST, NUMBER_POINT},
                {"aggregationTemporality", 2, INT, 0},
                {"isMonotonic", 3, BOOL, 0}},
    [HISTOGRAM] = {{"dataPoints", 1, LIST, HISTOGRAM_POINT}, {"aggregationTemporality", 2, INT, 0}},
    [EXPONENTIAL] = {{"dataPoints", 1, LIST, EXPONENTIAL_POINT}, {"aggregationTemporality", 2, INT, 0}},
    [SUMMARY] = {{"dataPoints", 1, LIST, SUMMARY_POINT}},
    [NUMBER_POINT] = {{"attributes", 7, LIST, KEY_VALUE},
                      {"timeUnixNano", 3, FIXED64, 0},
                      {"asDouble", 4, DOUBLE, 0},
                      {"asInt", 6, FIXED64, 0},
                      {"flags", 8, INT, 0}},
    [HISTOGRAM_POINT] = {{"attributes", 9, LIST, KEY_VALUE},
                         {"timeUnixNano", 3, FIXED64, 0},
                         {"count", 4, FIXED64, 0},
                         {"sum", 5, DOUBLE, 0},
                         {"flags", 10, INT, 0},
                         {"min", 11, DOUBLE, 0},
                         {"max", 12, DOUBLE, 0}},
    [EXPONENTIAL_POINT] = {{"attributes", 1, LIST, KEY_VALUE},
                           {"timeUnixNano", 3, FIXED64, 0},
                           {"count", 4, FIXED64, 0},
                           {"sum", 5, DOUBLE, 0},
                           {"scale", 6, SIGNED, 0},
                           {"zeroCount", 7, FIXED64, 0},
                           {"positive", 8, MESSAGE, BUCKETS},
                           {"negative", 9, MESSAGE, BUCKETS},
                           {"flags", 10, INT, 0},
                           {"min", 12, DOUBLE, 0},
                           {"max", 13, DOUBLE, 0}},
    [SUMMARY_POINT] = {{"timeUnixNano", 3, FIXED64, 0}},
    [KEY_VALUE] = {{"key", 1, TEXT, 0}, {"value", 2, MESSAGE, ANY}},
    [ANY] = {{"stringValue", 1, TEXT, 0},
             {"boolValue", 2, BOOL, 0},
             {"intValue", 3, INT, 0},
             {"doubleValue", 4, DOUBLE, 0},
             {"arrayValue", 5, MESSAGE, ARRAY},
             {"kvlistValue", 6, MESSAGE, MEMBERS}},
    [ARRAY] = {{"values", 1, LIST, ANY}},
    [MEMBERS] = {{"values", 1, LIST, KEY_VALUE}},
    [BUCKETS] = {{"offset", 1, SIGNED, 0}, {"bucketCounts", 2, COUNTS, 0}},
};

/* JSON that is read, and the message that is written. Functions called take_… move `p` behind what they take;
 * they return false at a value of another type, where `p` then is. */
struct reading {
    const char *start, *p, *end;
    uint8_t *out;
    struct otlp_json_parts *parts;
};

static void skip_space(struct reading *r)
{
    while (*r->p == ' ' || *r->p == '\t' || *r->p == '\n' || *r->p == '\r')
        r->p++;
}

/* Takes a string; the slice is without its quotes. *is_escaped: it has escapes. */
static struct slice take_string(struct reading *r, bool *is_escaped)
{
    const char *from = ++r->p;
    *is_escaped = false;
    for (;;) {
        r->p = json_scan_string(r->start, r->p, r->end);
        ASSERT(r->p < r->end);
        if (*r->p == '"')
            break;
        *is_escaped = true;
        r->p += 2;
    }
    return slice_of(from, (size_t)(r->p++ - from));
}

static void skip_value(struct reading *r)
{
    bool unused;
    int depth = 0;
    do {
        ASSERT(r->p < r->end);
        char c = *r->p;
        if (c == '"') {
            (void)take_string(r, &unused);
            continue;
        }
        bool opens = c == '{' || c == '[', closes = c == '}' || c == ']';
        if (depth == 0 && !opens) { /* a number or a word */
            while (r->p < r->end && strchr(",]} \t\r\n", *r->p) == NULL)
                r->p++;
            return;
        }
        depth += opens - closes;
        r->p++;
    } while (depth > 0);
}

static void write_varint(struct reading *r, uint64_t value)
{
    r->out = varint_put(r->out, value);
}

static void write_tag(struct reading *r, unsigned number, enum protobuf_wire wire)
{
    write_varint(r, number << 3 | wire);
}

static void write_bits(struct reading *r, uint64_t bits, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++)
        *r->out++ = (uint8_t)(bits >> 8 * i);
}

static uint8_t *begin_part(struct reading *r, unsigned number)
{
    write_tag(r, number, PROTOBUF_BYTES);
    r->out += LENGTH_BYTES;
    return r->out;
}

static void end_part(struct reading *r, uint8_t *begun)
{
    size_t len = (size_t)(r->out - begun);
    for (unsigned i = 0; i < LENGTH_BYTES; i++)
        begun[(int)i - LENGTH_BYTES] = (uint8_t)((len >> 7 * i & 0x7f) | (i + 1 < LENGTH_BYTES ? 0x80 : 0));
}

static bool take_text(struct reading *r, unsigned number)
{
    bool is_escaped;
    if (*r->p != '"')
        return false;
    struct slice text = take_string(r, &is_escaped);
    uint8_t *begun = begin_part(r, number);
    if (is_escaped) {
        r->out += json_unescape(text, (char *)r->out);
    } else {
        memcpy(r->out, text.ptr, text.len);
        r->out += text.len;
    }
    end_part(r, begun);
    return true;
}

static bool take_hex(struct reading *r, unsigned number)
{
    bool is_escaped;
    const char *from = r->p;
    if (*r->p != '"')
        return false;
    struct slice text = take_string(r, &is_escaped);
    uint8_t *begun = begin_part(r, number);
    for (size_t i = 0; i + 1 < text.len; i += 2) {
        int high = units_hex_digit(text.ptr[i]), low = units_hex_digit(text.ptr[i + 1]);
        if (high < 0 || low < 0)
            break;
        *r->out++ = (uint8_t)(high << 4 | low);
    }
    bool good = 2 * (size_t)(r->out - begun) == text.len;
    end_part(r, begun);
    r->p = good ? r->p : from;
    return good;
}

/* The number at `p`, in quotes or not. */
static struct slice take_number_text(struct reading *r)
{
    bool is_escaped;
    const char *from = r->p;
    if (*r->p == '"')
        return take_string(r, &is_escaped);
    skip_value(r);
    return slice_of(from, (size_t)(r->p - from));
}

/* Parses a whole number of int64 or uint64. */
static bool parse_whole(struct slice text, uint64_t *value)
{
    bool is_negative = text.len > 0 && *text.ptr == '-';
    *value = 0;
    for (size_t i = is_negative; i < text.len; i++) {
        unsigned digit = (unsigned)(unsigned char)text.ptr[i] - '0';
        if (digit > 9 || __builtin_mul_overflow(*value, UINT64_C(10), value) ||
            __builtin_add_overflow(*value, (uint64_t)digit, value))
            return false;
    }
    if (text.len == is_negative || (is_negative && *value > (uint64_t)1 << 63))
        return false;
    *value = is_negative ? -*value : *value;
    return true;
}

static bool take_whole(struct reading *r, uint64_t *value)
{
    const char *from = r->p;
    if (parse_whole(take_number_text(r), value))
        return true;
    r->p = from;
    return false;
}

/* A quote or the byte behind a number ends what strtod() reads. */
static bool take_double(struct reading *r, uint64_t *bits)
{
    const char *from = r->p;
    struct slice text = take_number_text(r);
    char *end = NULL;
    double value = slice_is(text, "NaN")         ? (double)NAN
                   : slice_is(text, "Infinity")  ? HUGE_VAL
                   : slice_is(text, "-Infinity") ? -HUGE_VAL
                                                 : 0;
    bool is_word = isnan(value) || isinf(value);
    bool is_number = text.len > 0 && (*text.ptr == '-' || (*text.ptr >= '0' && *text.ptr <= '9')) &&
                     memchr(text.ptr, 'x', text.len) == NULL && memchr(text.ptr, 'X', text.len) == NULL;
    if (!is_word && is_number)
        value = strtod(text.ptr, &end);
    memcpy(bits, &value, sizeof *bits);
    if (is_word || (is_number && end == slice_end(text)))
        return true;
    r->p = from;
    return false;
}

static bool take_bool(struct reading *r, uint64_t *value)
{
    *value = *r->p == 't';
    if (*r->p != 't' && *r->p != 'f')
        return false;
    skip_value(r);
    return true;
}

static bool take_message(struct reading *r, enum message message);

static void note_part(struct reading *r, const uint8_t *message)
{
    struct otlp_json_parts *parts = r->parts;
    if (parts->count == parts->capacity) {
        parts->capacity = parts->capacity > 0 ? 2 * parts->capacity : 64;
        parts->list = xrealloc(parts->list, parts->capacity * sizeof *parts->list);
    }
    parts->list[parts->count++] = (struct otlp_json_part){(const char *)message, {r->p, 0}};
}

static bool take_part(struct reading *r, const struct member *m)
{
    bool is_noted = m->message >= LOG && m->message <= SUMMARY_POINT;
    size_t noted = r->parts->count;
    uint8_t *begun = begin_part(r, m->number);
    if (is_noted)
        note_part(r, begun);
    if (!take_message(r, (enum message)m->message))
        return false;
    if (is_noted)
        r->parts->list[noted].json.len = (size_t)(r->p - r->parts->list[noted].json.ptr);
    end_part(r, begun);
    return true;
}

/* Writes a count of a packed list. Its varint is no longer than its text: so a negative number is none. */
static bool take_count(struct reading *r)
{
    const char *begun = r->p;
    uint64_t count;
    if (!take_whole(r, &count))
        return false;
    if (count > INT64_MAX) {
        r->p = begun;
        return false;
    }
    write_varint(r, count);
    return true;
}

static bool take_list(struct reading *r, const struct member *m)
{
    if (*r->p != '[')
        return false;
    r->p++;
    for (;;) {
        skip_space(r);
        if (*r->p == ']')
            break;
        if (m->kind == COUNTS ? !take_count(r) : !take_part(r, m))
            return false;
        skip_space(r);
        r->p += *r->p == ',';
    }
    r->p++;
    return true;
}

static bool take_counts(struct reading *r, const struct member *m)
{
    uint8_t *begun = begin_part(r, m->number);
    bool good = take_list(r, m);
    end_part(r, begun);
    return good;
}

static bool take_value(struct reading *r, const struct member *m)
{
    uint64_t value;
    bool good = false;
    if (*r->p == 'n') {
        skip_value(r);
        return true;
    }
    switch ((enum kind)m->kind) {
    case TEXT:
        return take_text(r, m->number);
    case HEX:
        return take_hex(r, m->number);
    case MESSAGE:
        return take_part(r, m);
    case COUNTS:
        return take_counts(r, m);
    case LIST:
        return take_list(r, m);
    case INT:
    case SIGNED:
    case BOOL:
        good = m->kind == BOOL ? take_bool(r, &value) : take_whole(r, &value);
        if (good) {
            write_tag(r, m->number, PROTOBUF_VARINT);
            write_varint(r, m->kind == SIGNED ? varint_zigzag((int64_t)value) : value);
        }
        break;
    case FIXED32:
    case FIXED64:
    case DOUBLE:
        good = m->kind == DOUBLE ? take_double(r, &value) : take_whole(r, &value);
        if (good) {
            write_tag(r, m->number, m->kind == FIXED32 ? PROTOBUF_32_BITS : PROTOBUF_64_BITS);
            write_bits(r, value, m->kind == FIXED32 ? sizeof(uint32_t) : sizeof(uint64_t));
        }
        break;
    }
    return good;
}

static const struct member *find_member(enum message message, struct slice name)
{
    for (size_t i = 0; i < MEMBERS_MAX && members[message][i].name != NULL; i++) {
        if (slice_is(name, members[message][i].name))
            return &members[message][i];
    }
    return NULL;
}

static bool take_message(struct reading *r, enum message message)
{
    bool is_escaped;
    if (*r->p != '{')
        return false;
    r->p++;
    for (;;) {
        skip_space(r);
        if (*r->p == '}')
            break;
        struct slice name = take_string(r, &is_escaped);
        skip_space(r);
        r->p++; /* the colon */
        skip_space(r);
        const struct member *m = find_member(message, name);
        if (m == NULL)
            skip_value(r);
        else if (!take_value(r, m))
            return false;
        skip_space(r);
        r->p += *r->p == ',';
    }
    r->p++;
    return true;
}

/* Has the object one of the members of DATA? */
static bool is_data(struct slice json)
{
    struct reading r = {.start = json.ptr, .p = json.ptr + 1, .end = slice_end(json)};
    bool is_escaped;
    for (;;) {
        skip_space(&r);
        if (*r.p == '}')
            return false;
        if (find_member(DATA, take_string(&r, &is_escaped)) != NULL)
            return true;
        skip_space(&r);
        r.p++;
        skip_space(&r);
        skip_value(&r);
        skip_space(&r);
        r.p += *r.p == ',';
    }
}

void otlp_json_parts_free(struct otlp_json_parts *parts)
{
    free(parts->list);
}

bool otlp_json_read(struct slice json, struct arena *memory, struct slice *message,
                    struct otlp_json_parts *parts, struct reject *why)
{
    parts->count = 0;
    *why = (struct reject){REJECT_OTLP, 1};
    if (*json.ptr != '{' || !is_data(json))
        return false;
    size_t most = OTLP_JSON_GROWTH * json.len + MORE_BYTES;
    uint8_t *out = arena_add(memory, most);
    struct reading r = {.start = json.ptr, .p = json.ptr, .end = slice_end(json), .out = out, .parts = parts};
    if (!take_message(&r, DATA)) {
        *why = (struct reject){REJECT_TYPE, (size_t)(r.p - json.ptr) + 1};
        return false;
    }
    *message = slice_of((const char *)out, (size_t)(r.out - out));
    ASSERT(message->len <= most);
    return true;
}
