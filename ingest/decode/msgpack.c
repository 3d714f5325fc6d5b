#include "ingest/decode/msgpack.h"

#include "ingest/decode/json_write.h"
#include "ingest/float_text.h"

#include <inttypes.h>
#include <stdio.h>

#define MORE_BYTES 64 /* of the JSON: for "@timestamp" and brackets */
#define EVENT_TIME 0
#define TIMESTAMP  (-1)

/* MessagePack that is read, and JSON that is written. Functions called take_… return false at a broken
 * value. */
struct reading {
    const char *p, *end;
    char *out;
    unsigned depth;
};

enum kind {
    KIND_NIL,
    KIND_FALSE,
    KIND_TRUE,
    KIND_UINT,
    KIND_INT,
    KIND_FLOAT,
    KIND_TEXT,
    KIND_EXT,
    KIND_ARRAY,
    KIND_MAP
};

/* The beginning of a value: a whole number, or the length of what comes. */
struct head {
    enum kind kind;
    uint64_t value; /* a KIND_INT's as int64, a KIND_FLOAT's bits */
    int ext;        /* the type of a KIND_EXT, the size of a KIND_FLOAT */
};

static void write_bytes(struct reading *r, const char *bytes, size_t len)
{
    memcpy(r->out, bytes, len);
    r->out += len;
}

static bool take_big_endian(struct reading *r, unsigned bytes, uint64_t *value)
{
    if ((size_t)(r->end - r->p) < bytes)
        return false;
    *value = 0;
    for (unsigned i = 0; i < bytes; i++)
        *value = *value << 8 | (unsigned char)*r->p++;
    return true;
}

static bool take_int(struct reading *r, unsigned bytes, struct head *h)
{
    h->kind = KIND_INT;
    if (!take_big_endian(r, bytes, &h->value))
        return false;
    unsigned unused = 64 - 8 * bytes;
    h->value = (uint64_t)((int64_t)(h->value << unused) >> unused);
    return true;
}

static bool take_float(struct reading *r, unsigned bytes, struct head *h)
{
    h->kind = KIND_FLOAT;
    h->ext = (int)bytes;
    return take_big_endian(r, bytes, &h->value);
}

/* An extension's type stands behind its length. */
static bool take_ext(struct reading *r, struct head *h)
{
    uint64_t type;
    h->kind = KIND_EXT;
    if (!take_big_endian(r, 1, &type))
        return false;
    h->ext = (int)(int8_t)type;
    return true;
}

/* Takes the beginning of a value whose first byte is at least 0xC0 and below 0xE0. */
static bool take_long_head(struct reading *r, unsigned first, struct head *h)
{
    static const struct {
        unsigned char kind, bytes; /* of the number behind the first byte */
    } heads[32] = {{KIND_NIL, 0},   {KIND_NIL, 0},   {KIND_FALSE, 0}, {KIND_TRUE, 0},  {KIND_TEXT, 1},
                   {KIND_TEXT, 2},  {KIND_TEXT, 4},  {KIND_EXT, 1},   {KIND_EXT, 2},   {KIND_EXT, 4},
                   {KIND_FLOAT, 4}, {KIND_FLOAT, 8}, {KIND_UINT, 1},  {KIND_UINT, 2},  {KIND_UINT, 4},
                   {KIND_UINT, 8},  {KIND_INT, 1},   {KIND_INT, 2},   {KIND_INT, 4},   {KIND_INT, 8},
                   {KIND_EXT, 0},   {KIND_EXT, 0},   {KIND_EXT, 0},   {KIND_EXT, 0},   {KIND_EXT, 0},
                   {KIND_TEXT, 1},  {KIND_TEXT, 2},  {KIND_TEXT, 4},  {KIND_ARRAY, 2}, {KIND_ARRAY, 4},
                   {KIND_MAP, 2},   {KIND_MAP, 4}};
    unsigned row = first - 0xC0, bytes = heads[row].bytes;
    h->kind = (enum kind)heads[row].kind;
    if (first == 0xC1) /* is never used */
        return false;
    if (h->kind == KIND_INT)
        return take_int(r, bytes, h);
    if (h->kind == KIND_FLOAT)
        return take_float(r, bytes, h);
    h->value = first >= 0xD4 && first <= 0xD8 ? UINT64_C(1) << (first - 0xD4) : 0;
    if (bytes > 0 && !take_big_endian(r, bytes, &h->value))
        return false;
    return h->kind != KIND_EXT || take_ext(r, h);
}

static bool take_head(struct reading *r, struct head *h)
{
    uint64_t first;
    if (!take_big_endian(r, 1, &first))
        return false;
    if (first < 0x80)
        *h = (struct head){KIND_UINT, first, 0};
    else if (first < 0x90)
        *h = (struct head){KIND_MAP, first & 0x0F, 0};
    else if (first < 0xA0)
        *h = (struct head){KIND_ARRAY, first & 0x0F, 0};
    else if (first < 0xC0)
        *h = (struct head){KIND_TEXT, first & 0x1F, 0};
    else if (first >= 0xE0)
        *h = (struct head){KIND_INT, first - 0x100, 0};
    else
        return take_long_head(r, (unsigned)first, h);
    return true;
}

static bool take_text(struct reading *r, uint64_t len)
{
    if ((uint64_t)(r->end - r->p) < len)
        return false;
    r->out += json_write_string(slice_of(r->p, (size_t)len), r->out);
    r->p += len;
    return true;
}

static void write_float(struct reading *r, const struct head *h)
{
    const bool is_small = h->ext == sizeof(float);
    r->out += json_write_number(float_of_bits(h->value, is_small), is_small, r->out);
}

/* Takes the content of an extension. */
static bool take_ext_content(struct reading *r, const struct head *h)
{
    uint64_t seconds = 0, nanoseconds = 0;
    const char *end = r->p + h->value;
    if ((uint64_t)(r->end - r->p) < h->value)
        return false;
    bool is_time = true;
    if (h->ext == EVENT_TIME && h->value == 8) {
        is_time = take_big_endian(r, 4, &seconds) && take_big_endian(r, 4, &nanoseconds);
    } else if (h->ext == TIMESTAMP && h->value == 4) {
        is_time = take_big_endian(r, 4, &seconds);
    } else if (h->ext == TIMESTAMP && h->value == 8) {
        is_time = take_big_endian(r, 8, &seconds);
        nanoseconds = seconds >> 34;
        seconds &= (UINT64_C(1) << 34) - 1;
    } else if (h->ext == TIMESTAMP && h->value == 12) {
        is_time = take_big_endian(r, 4, &nanoseconds) && take_big_endian(r, 8, &seconds);
    } else {
        is_time = false;
    }
    if (is_time && nanoseconds < 1000000000 && seconds <= INT64_MAX)
        r->out += sprintf(r->out, "%" PRIu64 ".%09" PRIu64, seconds, nanoseconds);
    else
        write_bytes(r, "null", 4);
    r->p = end;
    return true;
}

static bool take_value(struct reading *r);

static bool take_members(struct reading *r, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        struct head key;
        const char *from = r->p;
        if (i > 0)
            *r->out++ = ',';
        if (!take_head(r, &key) || key.kind != KIND_TEXT) {
            r->p = from;
            return false;
        }
        if (!take_text(r, key.value))
            return false;
        *r->out++ = ':';
        if (!take_value(r))
            return false;
    }
    return true;
}

static bool take_elements(struct reading *r, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        if (i > 0)
            *r->out++ = ',';
        if (!take_value(r))
            return false;
    }
    return true;
}

static bool take_content(struct reading *r, const struct head *h)
{
    static const char *const words[] = {[KIND_NIL] = "null", [KIND_FALSE] = "false", [KIND_TRUE] = "true"};
    switch (h->kind) {
    case KIND_NIL:
    case KIND_FALSE:
    case KIND_TRUE:
        write_bytes(r, words[h->kind], strlen(words[h->kind]));
        return true;
    case KIND_UINT:
        r->out += sprintf(r->out, "%" PRIu64, h->value);
        return true;
    case KIND_INT:
        r->out += sprintf(r->out, "%" PRId64, (int64_t)h->value);
        return true;
    case KIND_FLOAT:
        write_float(r, h);
        return true;
    case KIND_TEXT:
        return take_text(r, h->value);
    case KIND_EXT:
        return take_ext_content(r, h);
    default:
        break;
    }
    bool is_map = h->kind == KIND_MAP;
    if (r->depth == MSGPACK_DEPTH_MAX)
        return false;
    r->depth++;
    *r->out++ = is_map ? '{' : '[';
    if (!(is_map ? take_members : take_elements)(r, h->value))
        return false;
    *r->out++ = is_map ? '}' : ']';
    r->depth--;
    return true;
}

static bool take_value(struct reading *r)
{
    struct head h;
    const char *from = r->p;
    if (take_head(r, &h))
        return take_content(r, &h);
    r->p = from;
    return false;
}

/* Takes the time of an event: a number or an extension, or that with metadata in an array. */
static bool take_event_time(struct reading *r)
{
    struct head h;
    if (!take_head(r, &h))
        return false;
    if (h.kind != KIND_ARRAY)
        return (h.kind == KIND_UINT || h.kind == KIND_FLOAT || h.kind == KIND_EXT) && take_content(r, &h);
    if (h.value != 2 || !take_head(r, &h) || h.kind != KIND_EXT || !take_content(r, &h))
        return false;
    char *time_end = r->out;
    bool good = take_value(r);
    r->out = time_end; /* the metadata are left out */
    return good;
}

/* Takes [time, {record}]. False: the value is something else. */
static bool take_event(struct reading *r)
{
    struct head h;
    if (!take_head(r, &h) || h.kind != KIND_ARRAY || h.value != 2)
        return false;
    write_bytes(r, "{\"@timestamp\":", strlen("{\"@timestamp\":"));
    if (!take_event_time(r) || !take_head(r, &h) || h.kind != KIND_MAP)
        return false;
    if (h.value > 0)
        *r->out++ = ',';
    r->depth = 1;
    if (!take_members(r, h.value))
        return false;
    *r->out++ = '}';
    return true;
}

const char *msgpack_to_json(struct slice bytes, struct arena *memory, struct slice *json, const char **at)
{
    char *out = arena_add(memory, MSGPACK_GROWTH * bytes.len + MORE_BYTES);
    struct reading r = {bytes.ptr, slice_end(bytes), out, 0};
    bool good = take_event(&r);
    if (!good) {
        r = (struct reading){bytes.ptr, slice_end(bytes), out, 0};
        good = take_value(&r);
    }
    *at = r.p;
    *json = slice_of(out, (size_t)(r.out - out));
    return good ? r.p : NULL;
}
