#include "ingest/decode/protobuf.h"

#include "base/mem.h"
#include "base/protobuf.h"
#include "base/varint.h"
#include "ingest/float_text.h"

#include <stdlib.h>

#define NANOS        9 /* decimals of a second */
#define NANO_SECONDS INT64_C(1000000000)

/* The place of a field in its message. */
struct proto_seen {
    const char *first, *last; /* its first and last tag */
    size_t count;
};

/* A value as it was sent. */
struct value {
    enum protobuf_wire wire;
    uint64_t bits;      /* of a number */
    struct slice bytes; /* of PROTOBUF_BYTES */
};

/* A message that is read, and JSON that is written. Functions called take_… and write_… return false at a
 * message that cannot be; `result` says why. */
struct reading {
    const struct proto_schema *schema;
    struct json_out *out;
    struct proto_scratch *scratch;
    const char *at; /* where a function gave up */
    unsigned depth;
    enum proto_result result; /* PROTO_IS_BROKEN until a function knows better */
};

static bool write_message(struct reading *r, uint32_t message, struct slice bytes);

void proto_scratch_fini(struct proto_scratch *s)
{
    free(s->list);
    *s = (struct proto_scratch){0};
}

static bool broken(struct reading *r, const char *at)
{
    r->at = at;
    return false;
}

static bool fit(struct reading *r, bool has_room)
{
    if (!has_room)
        r->result = PROTO_IS_LONG;
    return has_room;
}

static bool take_varint(const char **p, const char *end, uint64_t *value)
{
    const uint8_t *next = varint_get((const uint8_t *)*p, (const uint8_t *)end, value);
    if (next != NULL)
        *p = (const char *)next;
    return next != NULL;
}

/* Sets what a value says as a number. */
static void note_value(const struct protobuf_field *f, struct value *v)
{
    v->wire = f->wire;
    v->bytes = f->bytes;
    v->bits = f->wire == PROTOBUF_VARINT  ? f->varint
              : f->wire == PROTOBUF_BYTES ? f->bytes.len
                                          : protobuf_fixed(f);
}

/* Takes a value of v->wire. */
static bool take_value(const char **p, const char *end, struct value *v)
{
    struct slice rest = slice_of(*p, (size_t)(end - *p));
    struct protobuf_field f = {.wire = v->wire};
    if (!protobuf_take_value(&rest, &f))
        return false;
    note_value(&f, v);
    *p = rest.ptr;
    return true;
}

/* Takes a tag and its value. */
static bool take_field(const char **p, const char *end, uint64_t *number, struct value *v)
{
    struct slice rest = slice_of(*p, (size_t)(end - *p));
    struct protobuf_field f;
    if (!protobuf_take(&rest, &f) || f.number > INT32_MAX)
        return false;
    note_value(&f, v);
    *number = f.number;
    *p = rest.ptr;
    return true;
}

static enum protobuf_wire wire_of(enum proto_kind kind)
{
    switch (kind) {
    case PROTO_DOUBLE:
    case PROTO_FIXED64:
    case PROTO_SFIXED64:
        return PROTOBUF_64_BITS;
    case PROTO_FLOAT:
    case PROTO_FIXED32:
    case PROTO_SFIXED32:
        return PROTOBUF_32_BITS;
    case PROTO_TEXT:
    case PROTO_BYTES:
    case PROTO_MESSAGE:
        return PROTOBUF_BYTES;
    default:
        return PROTOBUF_VARINT;
    }
}

/* ---- values */

static bool write_unsigned(struct reading *r, uint64_t value)
{
    if (value <= INT64_MAX)
        return fit(r, json_out_integer(r->out, (int64_t)value));
    /* 2^63 and above: the last digit alone */
    return fit(r, json_out_integer(r->out, (int64_t)(value / 10))) &&
           fit(r, json_out_byte(r->out, (char)('0' + value % 10)));
}

static bool write_float(struct reading *r, uint64_t bits, bool is_float)
{
    return fit(r, json_out_number(r->out, float_of_bits(bits, is_float), is_float));
}

static bool write_label(struct reading *r, const struct proto_part *part)
{
    return fit(r, json_out_add(r->out, r->schema->labels.ptr + part->label_at, part->label_len));
}

static bool write_enum(struct reading *r, uint32_t type, int32_t number)
{
    const struct proto_enum *en = &r->schema->enums[type];
    for (uint32_t i = 0; i < en->count; i++) {
        const struct proto_part *value = &r->schema->parts[en->first + i];
        if (value->number == number)
            return write_label(r, value);
    }
    return fit(r, json_out_integer(r->out, number));
}

/* Writes a value of the field's type. It was sent as wire_of() says. */
static bool write_value(struct reading *r, const struct proto_part *f, const struct value *v)
{
    switch (f->kind) {
    case PROTO_DOUBLE:
    case PROTO_FLOAT:
        return write_float(r, v->bits, f->kind == PROTO_FLOAT);
    case PROTO_INT64:
    case PROTO_SFIXED64:
        return fit(r, json_out_integer(r->out, (int64_t)v->bits));
    case PROTO_INT32:
    case PROTO_SFIXED32:
        return fit(r, json_out_integer(r->out, (int32_t)v->bits));
    case PROTO_UINT64:
    case PROTO_FIXED64:
        return write_unsigned(r, v->bits);
    case PROTO_UINT32:
    case PROTO_FIXED32:
        return fit(r, json_out_integer(r->out, (uint32_t)v->bits));
    case PROTO_SINT32:
        return fit(r, json_out_integer(r->out, (int32_t)varint_unzigzag((uint32_t)v->bits)));
    case PROTO_SINT64:
        return fit(r, json_out_integer(r->out, varint_unzigzag(v->bits)));
    case PROTO_BOOL:
        return fit(r, v->bits != 0 ? json_out_add(r->out, "true", 4) : json_out_add(r->out, "false", 5));
    case PROTO_TEXT:
    case PROTO_BYTES:
        return fit(r, json_out_string(r->out, v->bytes));
    case PROTO_ENUM:
        return write_enum(r, f->type, (int32_t)v->bits);
    case PROTO_MESSAGE:
        break;
    }
    return write_message(r, f->type, v->bytes);
}

static bool write_default(struct reading *r, const struct proto_part *f)
{
    const struct value zero = {.wire = wire_of(f->kind), .bytes = {"", 0}};
    if (f->kind != PROTO_ENUM)
        return write_value(r, f, &zero);
    return write_label(r, &r->schema->parts[r->schema->enums[f->type].first]);
}

/* ---- fields */

static const struct proto_part *find_field(const struct proto_schema *s, const struct proto_message *m,
                                           uint64_t number, uint32_t near)
{
    const struct proto_part *fields = &s->parts[m->first];
    if (near < m->count && (uint64_t)fields[near].number == number)
        return &fields[near];
    for (uint32_t low = 0, high = m->count; low < high;) {
        uint32_t middle = low + (high - low) / 2;
        if ((uint64_t)fields[middle].number == number)
            return &fields[middle];
        if ((uint64_t)fields[middle].number < number)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

static bool is_packed(const struct proto_part *f, const struct value *v)
{
    return f->is_repeated && v->wire == PROTOBUF_BYTES && wire_of(f->kind) != PROTOBUF_BYTES;
}

/* Another field of the same oneof that was seen does not count any more. */
static void drop_others(const struct proto_schema *s, const struct proto_message *m,
                        const struct proto_part *f, struct proto_seen *seen)
{
    const struct proto_part *fields = &s->parts[m->first];
    for (uint32_t i = 0; i < m->count; i++) {
        if (fields[i].oneof == f->oneof && &fields[i] != f)
            seen[i].count = 0;
    }
}

/* Finds where each field stands. Unknown ones are skipped. */
static bool look_at_fields(struct reading *r, const struct proto_message *m, struct slice bytes,
                           struct proto_seen *seen)
{
    uint32_t next = 0;
    for (const char *p = bytes.ptr, *end = slice_end(bytes), *from = p; p < end; from = p) {
        uint64_t number;
        struct value v;
        if (!take_field(&p, end, &number, &v))
            return broken(r, from);
        const struct proto_part *f = find_field(r->schema, m, number, next);
        if (f == NULL)
            continue;
        uint32_t i = (uint32_t)(f - &r->schema->parts[m->first]);
        next = i + 1;
        if (v.wire != wire_of(f->kind) && !is_packed(f, &v))
            return broken(r, from);
        if (f->oneof != 0)
            drop_others(r->schema, m, f, seen);
        if (seen[i].count++ == 0)
            seen[i].first = from;
        else if (f->kind == PROTO_MESSAGE && !f->is_repeated)
            return broken(r, from);
        seen[i].last = from;
    }
    return true;
}

/* Writes the values of a packed field. */
static bool write_packed(struct reading *r, const struct proto_part *f, struct slice bytes, bool *is_first)
{
    struct value v = {.wire = wire_of(f->kind)};
    for (const char *p = bytes.ptr, *end = slice_end(bytes), *from = p; p < end; from = p) {
        if (!take_value(&p, end, &v))
            return broken(r, from);
        if ((!*is_first && !fit(r, json_out_byte(r->out, ','))) || !write_value(r, f, &v))
            return false;
        *is_first = false;
    }
    return true;
}

/* Writes an entry of a map: "KEY": VALUE. */
static bool write_entry(struct reading *r, uint32_t entry, struct slice bytes)
{
    const struct proto_message *m = &r->schema->messages[entry];
    const struct proto_part *key = &r->schema->parts[m->first], *value = key + 1;
    struct value k = {.wire = wire_of(key->kind), .bytes = {"", 0}}, v = {.bytes = {"", 0}};
    bool has_value = false;
    for (const char *p = bytes.ptr, *end = slice_end(bytes), *from = p; p < end; from = p) {
        uint64_t number;
        struct value got;
        if (!take_field(&p, end, &number, &got) || (number == 1 && got.wire != wire_of(key->kind)) ||
            (number == 2 && got.wire != wire_of(value->kind)))
            return broken(r, from);
        if (number == 1)
            k = got;
        if (number == 2)
            v = got;
        has_value |= number == 2;
    }
    bool is_text = key->kind == PROTO_TEXT;
    if ((!is_text && !fit(r, json_out_byte(r->out, '"'))) || !write_value(r, key, &k) ||
        (!is_text && !fit(r, json_out_byte(r->out, '"'))) || !fit(r, json_out_byte(r->out, ':')))
        return false;
    return has_value ? write_value(r, value, &v) : write_default(r, value);
}

/* Writes all values of a repeated field, other fields may stand between them. */
static bool write_repeated(struct reading *r, const struct proto_part *f, const struct proto_seen *seen,
                           const char *end)
{
    bool is_first = true, good = true;
    if (!fit(r, json_out_byte(r->out, f->is_map ? '{' : '[')))
        return false;
    for (const char *p = seen->first; p <= seen->last && p < end && good;) {
        uint64_t number = 0;
        struct value v;
        good = take_field(&p, end, &number, &v);
        if (!good || number != (uint64_t)f->number)
            continue;
        if (is_packed(f, &v)) {
            good = write_packed(r, f, v.bytes, &is_first);
            continue;
        }
        good = (is_first || fit(r, json_out_byte(r->out, ','))) &&
               (f->is_map ? write_entry(r, f->type, v.bytes) : write_value(r, f, &v));
        is_first = false;
    }
    return good && fit(r, json_out_byte(r->out, f->is_map ? '}' : ']'));
}

static bool write_last(struct reading *r, const struct proto_part *f, const struct proto_seen *seen,
                       const char *end)
{
    uint64_t number;
    struct value v;
    const char *p = seen->last;
    return take_field(&p, end, &number, &v) && write_value(r, f, &v);
}

static bool write_field(struct reading *r, const struct proto_part *f, const struct proto_seen *seen,
                        const char *end)
{
    if (seen->count == 0)
        return write_default(r, f);
    return f->is_repeated ? write_repeated(r, f, seen, end) : write_last(r, f, seen, end);
}

/* ---- messages */

/* The number of a field of a known message; 0: it is not there. */
static int64_t number_of(const struct proto_seen *seen, const char *end)
{
    uint64_t number;
    struct value v = {0};
    const char *p = seen->last;
    return seen->count > 0 && take_field(&p, end, &number, &v) ? (int64_t)v.bits : 0;
}

/* Writes {seconds, nanos} as a number. */
static bool write_seconds(struct reading *r, const struct proto_seen *seen, const char *end)
{
    int64_t seconds = number_of(&seen[0], end), nanos = (int32_t)number_of(&seen[1], end), all;
    if (nanos == 0 || __builtin_mul_overflow(seconds, NANO_SECONDS, &all) ||
        __builtin_add_overflow(all, nanos, &all))
        return fit(r, json_out_integer(r->out, seconds));
    return fit(r, json_out_scaled(r->out, all, NANOS));
}

static bool write_object(struct reading *r, const struct proto_message *m, size_t base, const char *end)
{
    bool is_first = true;
    if (!fit(r, json_out_byte(r->out, '{')))
        return false;
    for (uint32_t i = 0; i < m->count; i++) {
        const struct proto_part *f = &r->schema->parts[m->first + i];
        const struct proto_seen seen = r->scratch->list[base + i]; /* the list may move */
        if (seen.count == 0 && !f->has_default)
            continue;
        if ((!is_first && !fit(r, json_out_byte(r->out, ','))) || !write_label(r, f) ||
            !write_field(r, f, &seen, end))
            return false;
        is_first = false;
    }
    return fit(r, json_out_byte(r->out, '}'));
}

static bool write_wrapped(struct reading *r, const struct proto_message *m, size_t base, const char *end)
{
    const struct proto_seen seen = r->scratch->list[base]; /* the list may move */
    return write_field(r, &r->schema->parts[m->first], &seen, end);
}

static bool write_message(struct reading *r, uint32_t message, struct slice bytes)
{
    const struct proto_message *m = &r->schema->messages[message];
    struct proto_scratch *s = r->scratch;
    size_t base = s->count;
    bool good;
    if (r->depth == PROTO_DEPTH_MAX) {
        r->result = PROTO_IS_DEEP;
        return broken(r, bytes.ptr);
    }
    s->list = xgrow(s->list, &s->capacity, base + m->count + 1, sizeof *s->list);
    memset(&s->list[base], 0, m->count * sizeof *s->list);
    s->count += m->count;
    r->depth++;
    good = look_at_fields(r, m, bytes, &s->list[base]);
    if (good && m->form == PROTO_SECONDS)
        good = write_seconds(r, &s->list[base], slice_end(bytes));
    else if (good && m->form == PROTO_WRAPPED)
        good = write_wrapped(r, m, base, slice_end(bytes));
    else if (good)
        good = write_object(r, m, base, slice_end(bytes));
    r->depth--;
    s->count = base;
    return good;
}

const char *proto_take_index(const struct proto_schema *s, struct slice bytes, uint32_t *message)
{
    const char *p = bytes.ptr, *end = slice_end(bytes);
    uint64_t count, index;
    *message = PROTO_NONE;
    if (!take_varint(&p, end, &count) || varint_unzigzag(count) < 0 ||
        varint_unzigzag(count) > PROTO_DEPTH_MAX)
        return NULL;
    count = (uint64_t)varint_unzigzag(count);
    if (count == 0) /* short for the first message */
        *message = proto_schema_find(s, PROTO_NONE, 0);
    for (; count > 0; count--) {
        if (!take_varint(&p, end, &index) || varint_unzigzag(index) < 0 ||
            varint_unzigzag(index) > PROTO_TYPES_MAX)
            return NULL;
        *message = proto_schema_find(s, *message, (uint32_t)varint_unzigzag(index));
        if (*message == PROTO_NONE)
            return NULL;
    }
    return *message != PROTO_NONE ? p : NULL;
}

enum proto_result proto_to_json(const struct proto_schema *s, uint32_t message, struct slice bytes,
                                struct proto_scratch *scratch, struct json_out *out, const char **at)
{
    struct reading r = {s, out, scratch, bytes.ptr, 0, PROTO_IS_BROKEN};
    scratch->count = 0;
    bool good = write_message(&r, message, bytes);
    *at = r.at;
    return good ? PROTO_IS_GOOD : r.result;
}
