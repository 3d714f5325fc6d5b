#include "ingest/schema/proto_descriptor.h"

#include "base/base64.h"
#include "base/mem.h"
#include "base/protobuf.h"

#include <inttypes.h>
#include <stdlib.h>

#define DEPTH_MAX 64

/* Numbers of fields in descriptor.proto. */
enum { FILE_PACKAGE = 2, FILE_MESSAGE = 4, FILE_ENUM = 5, FILE_SYNTAX = 12 };
enum { MESSAGE_NAME = 1, MESSAGE_FIELD = 2, MESSAGE_NESTED = 3, MESSAGE_ENUM = 4, MESSAGE_OPTIONS = 7 };
enum { OPTIONS_MAP_ENTRY = 7 };
enum {
    FIELD_NAME = 1,
    FIELD_NUMBER = 3,
    FIELD_LABEL = 4,
    FIELD_TYPE = 5,
    FIELD_TYPE_NAME = 6,
    FIELD_ONEOF = 9,
    FIELD_IS_OPTIONAL = 17
};
enum { ENUM_NAME = 1, ENUM_VALUE = 2, VALUE_NAME = 1, VALUE_NUMBER = 2 };
enum { LABEL_REQUIRED = 2, LABEL_REPEATED = 3, TYPE_MESSAGE = 11, TYPE_ENUM = 14 };

static const char *const types[] = {NULL,      "double",   "float",    "int64",  "uint64", "int32", "fixed64",
                                    "fixed32", "bool",     "string",   NULL,     NULL,     "bytes", "uint32",
                                    NULL,      "sfixed32", "sfixed64", "sint32", "sint64"};

struct field {
    struct slice name, type_name;
    uint64_t number, label, type, oneof;
    bool has_oneof, is_optional;
};

static struct slice without_padding(struct slice text)
{
    while (text.len > 0 && text.ptr[text.len - 1] == '=')
        text.len--;
    return text;
}

bool proto_is_descriptor(struct slice text)
{
    struct slice digits = without_padding(text);
    bool is = digits.len > 0;
    for (size_t i = 0; i < digits.len && is; i++)
        is = base64_sextet(digits.ptr[i]) >= 0;
    return is;
}

/* Takes the next field. False: there is none, or *broken. */
static bool take_entry(struct slice *s, struct protobuf_field *e, bool *broken)
{
    if (s->len == 0)
        return false;
    *broken = !protobuf_take(s, e) || (e->wire != PROTOBUF_VARINT && e->wire != PROTOBUF_BYTES);
    return !*broken; /* descriptors have no others */
}

/* The first text or message with this number; empty: there is none. */
static struct slice find_bytes(struct slice of, uint64_t number)
{
    struct protobuf_field e;
    bool broken = false;
    while (take_entry(&of, &e, &broken)) {
        if (protobuf_is(&e, number, PROTOBUF_BYTES))
            return e.bytes;
    }
    return slice_of("", 0);
}

static bool is_map_entry(struct slice message)
{
    struct slice options = find_bytes(message, MESSAGE_OPTIONS);
    struct protobuf_field e;
    bool broken = false;
    while (take_entry(&options, &e, &broken)) {
        if (e.number == OPTIONS_MAP_ENTRY)
            return e.varint != 0;
    }
    return false;
}

static bool read_field(struct slice of, struct field *f)
{
    struct protobuf_field e;
    bool broken = false;
    *f = (struct field){.name = {"", 0}, .type_name = {"", 0}};
    while (take_entry(&of, &e, &broken)) {
        switch (e.number) {
        case FIELD_NAME:
            f->name = e.bytes;
            break;
        case FIELD_TYPE_NAME:
            f->type_name = e.bytes;
            break;
        case FIELD_NUMBER:
            f->number = e.varint;
            break;
        case FIELD_LABEL:
            f->label = e.varint;
            break;
        case FIELD_TYPE:
            f->type = e.varint;
            break;
        case FIELD_ONEOF:
            f->oneof = e.varint;
            f->has_oneof = true;
            break;
        case FIELD_IS_OPTIONAL:
            f->is_optional = e.varint != 0;
            break;
        default:
            break;
        }
    }
    bool is_named = f->type == TYPE_MESSAGE || f->type == TYPE_ENUM;
    return !broken && f->name.len > 0 &&
           (is_named ? f->type_name.len > 0
                     : f->type < sizeof types / sizeof *types && types[f->type] != NULL);
}

static void write_type(const struct field *f, struct text *out)
{
    if (f->type_name.len > 0)
        text_add(out, f->type_name.ptr, f->type_name.len);
    else
        text_puts(out, types[f->type]);
}

static void write_end(const struct field *f, struct text *out)
{
    text_printf(out, " %.*s = %" PRIu64 ";\n", SLICE_ARGS(f->name), f->number);
}

static bool write_enum(struct slice of, struct text *out)
{
    struct protobuf_field e;
    bool broken = false;
    struct slice name = find_bytes(of, ENUM_NAME);
    text_printf(out, "enum %.*s {\n", SLICE_ARGS(name));
    while (take_entry(&of, &e, &broken)) {
        struct slice value = e.bytes;
        struct protobuf_field of_value;
        int64_t number = 0;
        if (e.number != ENUM_VALUE)
            continue;
        name = find_bytes(value, VALUE_NAME);
        while (take_entry(&value, &of_value, &broken))
            number = of_value.number == VALUE_NUMBER ? (int64_t)of_value.varint : number;
        text_printf(out, "%.*s = %" PRId64 ";\n", SLICE_ARGS(name), number);
    }
    text_puts(out, "}\n");
    return !broken;
}

/* Does the type's name end with "Message.Entry"? */
static bool names_entry(struct slice type_name, struct slice entry)
{
    return type_name.len > entry.len && type_name.ptr[type_name.len - entry.len - 1] == '.' &&
           memcmp(slice_end(type_name) - entry.len, entry.ptr, entry.len) == 0;
}

/* Writes the map field of a message whose entries are `entry`. */
static bool write_map(struct slice message, struct slice entry, struct text *out)
{
    struct slice name = find_bytes(entry, MESSAGE_NAME);
    struct field f, part[2] = {{.number = 0}};
    struct protobuf_field e;
    bool broken = false;
    size_t parts = 0;
    while (parts < 2 && take_entry(&entry, &e, &broken)) {
        if (e.number == MESSAGE_FIELD && !read_field(e.bytes, &part[parts++]))
            return false;
    }
    if (parts < 2 || part[0].number != 1 || part[1].number != 2)
        return false;
    while (take_entry(&message, &e, &broken)) {
        if (e.number != MESSAGE_FIELD || !read_field(e.bytes, &f) || f.type != TYPE_MESSAGE ||
            !names_entry(f.type_name, name))
            continue;
        text_puts(out, "map<");
        write_type(&part[0], out);
        text_puts(out, ", ");
        write_type(&part[1], out);
        text_puts(out, ">");
        write_end(&f, out);
        return true;
    }
    return false;
}

/* Is the field's type a map's entry of this message? */
static bool is_map(struct slice message, const struct field *f)
{
    struct protobuf_field e;
    bool broken = false;
    while (f->type == TYPE_MESSAGE && take_entry(&message, &e, &broken)) {
        if (e.number == MESSAGE_NESTED && is_map_entry(e.bytes) &&
            names_entry(f->type_name, find_bytes(e.bytes, MESSAGE_NAME)))
            return true;
    }
    return false;
}

/* Writes all fields of a oneof. */
static bool write_oneof(struct slice message, uint64_t oneof, struct text *out)
{
    struct protobuf_field e;
    struct field f;
    bool broken = false;
    text_printf(out, "oneof o%" PRIu64 " {\n", oneof);
    while (take_entry(&message, &e, &broken)) {
        if (e.number != MESSAGE_FIELD || !read_field(e.bytes, &f) || !f.has_oneof || f.is_optional ||
            f.oneof != oneof)
            continue;
        write_type(&f, out);
        write_end(&f, out);
    }
    text_puts(out, "}\n");
    return !broken;
}

/* Is the field the first one of its oneof? */
static bool is_first_of_oneof(struct slice message, struct slice of, uint64_t oneof)
{
    struct protobuf_field e;
    struct field f;
    bool broken = false;
    while (take_entry(&message, &e, &broken) && e.bytes.ptr != of.ptr) {
        if (e.number == MESSAGE_FIELD && read_field(e.bytes, &f) && f.has_oneof && f.oneof == oneof)
            return false;
    }
    return true;
}

static bool write_field(struct slice message, struct slice of, struct text *out)
{
    struct field f;
    if (!read_field(of, &f))
        return false;
    if (is_map(message, &f))
        return true; /* it is written with its entry */
    if (f.has_oneof && !f.is_optional)
        return !is_first_of_oneof(message, of, f.oneof) || write_oneof(message, f.oneof, out);
    text_puts(out, f.label == LABEL_REPEATED   ? "repeated "
                   : f.label == LABEL_REQUIRED ? "required "
                   : f.is_optional             ? "optional "
                                               : "");
    write_type(&f, out);
    write_end(&f, out);
    return true;
}

static bool write_message(struct slice of, unsigned depth, struct text *out)
{
    struct protobuf_field e;
    bool broken = false, good = depth < DEPTH_MAX;
    struct slice name = find_bytes(of, MESSAGE_NAME), rest = of;
    text_printf(out, "message %.*s {\n", SLICE_ARGS(name));
    while (good && take_entry(&rest, &e, &broken)) {
        if (e.number == MESSAGE_FIELD)
            good = write_field(of, e.bytes, out);
        else if (e.number == MESSAGE_NESTED)
            good =
                is_map_entry(e.bytes) ? write_map(of, e.bytes, out) : write_message(e.bytes, depth + 1, out);
        else if (e.number == MESSAGE_ENUM)
            good = write_enum(e.bytes, out);
    }
    text_puts(out, "}\n");
    return good && !broken;
}

static bool write_file(struct slice of, struct text *out)
{
    struct slice package = find_bytes(of, FILE_PACKAGE), syntax = find_bytes(of, FILE_SYNTAX);
    struct protobuf_field e;
    bool broken = false, good = true;
    text_printf(out, "syntax = \"%s\";\n", slice_is(syntax, "proto3") ? "proto3" : "proto2");
    if (package.len > 0)
        text_printf(out, "package %.*s;\n", SLICE_ARGS(package));
    while (good && take_entry(&of, &e, &broken)) {
        if (e.number == FILE_MESSAGE)
            good = write_message(e.bytes, 0, out);
        else if (e.number == FILE_ENUM)
            good = write_enum(e.bytes, out);
    }
    return good && !broken;
}

bool proto_descriptor_text(struct slice base64, struct text *out)
{
    char *bytes = xmalloc(base64.len);
    bool good = write_file(slice_of(bytes, base64_decode(base64, bytes, base64.len)), out);
    free(bytes);
    return good;
}
