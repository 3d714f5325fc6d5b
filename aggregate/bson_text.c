#include "aggregate/bson_text.h"

#include <endian.h>
#include <inttypes.h>
#include <math.h>

#define DEPTH_MAX 8

/* https://bsonspec.org */
enum {
    OF_DOUBLE = 0x01,
    OF_TEXT = 0x02,
    OF_DOCUMENT = 0x03,
    OF_ARRAY = 0x04,
    OF_BOOL = 0x08,
    OF_DATE = 0x09,
    OF_NULL = 0x0A,
    OF_INT = 0x10,
    OF_LONG = 0x12
};

static uint32_t int_at(const char *p)
{
    uint32_t value;
    memcpy(&value, p, sizeof value);
    return le32toh(value);
}

static int64_t long_at(const char *p)
{
    uint64_t value;
    memcpy(&value, p, sizeof value);
    return (int64_t)le64toh(value);
}

struct slice bson_members(struct slice document)
{
    return document.len > sizeof(uint32_t) && int_at(document.ptr) == document.len
               ? slice_of(document.ptr + sizeof(uint32_t), document.len - sizeof(uint32_t) - 1)
               : slice_of("", 0);
}

/* The bytes that a value takes; 0: it is of another type, or is cut off. */
static size_t value_bytes(unsigned char type, struct slice rest)
{
    uint64_t len = 0;
    switch (type) {
    case OF_BOOL:
        len = 1;
        break;
    case OF_INT:
        len = sizeof(uint32_t);
        break;
    case OF_DOUBLE:
    case OF_DATE:
    case OF_LONG:
        len = sizeof(uint64_t);
        break;
    case OF_TEXT:
        len = rest.len > sizeof(uint32_t) ? sizeof(uint32_t) + (uint64_t)int_at(rest.ptr) : 0;
        len = len > sizeof(uint32_t) ? len : 0;
        break;
    case OF_DOCUMENT:
    case OF_ARRAY:
        len = rest.len > sizeof(uint32_t) ? int_at(rest.ptr) : 0;
        break;
    default:
        break;
    }
    return len <= rest.len ? (size_t)len : 0;
}

bool bson_member_next(struct slice *members, struct bson_member *m)
{
    const char *end = members->len > 1 ? memchr(members->ptr + 1, '\0', members->len - 1) : NULL;
    if (end == NULL)
        return false;
    m->type = (unsigned char)members->ptr[0];
    m->name = slice_of(members->ptr + 1, (size_t)(end - members->ptr) - 1);
    struct slice rest = slice_of(end + 1, (size_t)(slice_end(*members) - end) - 1);
    const size_t len = value_bytes(m->type, rest);
    if (len == 0 && m->type != OF_NULL)
        return false;
    m->value = m->type == OF_TEXT ? slice_of(rest.ptr + sizeof(uint32_t), len - sizeof(uint32_t) - 1)
                                  : slice_of(rest.ptr, len);
    *members = slice_of(rest.ptr + len, rest.len - len);
    return true;
}

bool bson_member_is_text(const struct bson_member *m)
{
    return m->type == OF_TEXT;
}

static bool is_whole(struct slice document, int depth)
{
    struct slice members = bson_members(document);
    struct bson_member m;
    if (depth > DEPTH_MAX || document.len <= sizeof(uint32_t) || int_at(document.ptr) != document.len ||
        slice_end(document)[-1] != '\0')
        return false;
    while (bson_member_next(&members, &m)) {
        if (m.type == OF_TEXT
                ? *slice_end(m.value) != '\0'
                : (m.type == OF_DOCUMENT || m.type == OF_ARRAY) && !is_whole(m.value, depth + 1))
            return false;
    }
    return members.len == 0;
}

bool bson_is_whole(struct slice document)
{
    return is_whole(document, 0);
}

static void add_double(const char *p, struct text *out)
{
    const uint64_t bits = (uint64_t)long_at(p);
    double value;
    memcpy(&value, &bits, sizeof value);
    if (isfinite(value))
        text_printf(out, "%.15g", value);
    else
        text_puts(out, "null");
}

static void add_value(const struct bson_member *m, int depth, struct text *out);

static void add_members(const struct bson_member *m, int depth, struct text *out)
{
    struct slice members = bson_members(m->value);
    struct bson_member one;
    const bool is_array = m->type == OF_ARRAY;
    text_putc(out, is_array ? '[' : '{');
    for (bool is_first = true; depth < DEPTH_MAX && bson_member_next(&members, &one); is_first = false) {
        text_puts(out, is_first ? "" : ",");
        if (!is_array) {
            text_json(out, one.name);
            text_putc(out, ':');
        }
        add_value(&one, depth + 1, out);
    }
    text_putc(out, is_array ? ']' : '}');
}

static void add_value(const struct bson_member *m, int depth, struct text *out)
{
    switch (m->type) {
    case OF_DOUBLE:
        add_double(m->value.ptr, out);
        break;
    case OF_TEXT:
        text_json(out, m->value);
        break;
    case OF_DOCUMENT:
    case OF_ARRAY:
        add_members(m, depth, out);
        break;
    case OF_BOOL:
        text_puts(out, m->value.ptr[0] != 0 ? "true" : "false");
        break;
    case OF_INT:
        text_printf(out, "%" PRId32, (int32_t)int_at(m->value.ptr));
        break;
    case OF_DATE:
    case OF_LONG:
        text_printf(out, "%" PRId64, long_at(m->value.ptr));
        break;
    default:
        text_puts(out, "null");
    }
}

void bson_member_json(const struct bson_member *m, struct text *out)
{
    add_value(m, 0, out);
}
