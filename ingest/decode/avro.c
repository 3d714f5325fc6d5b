#include "ingest/decode/avro.h"

#include "base/varint.h"
#include "ingest/float_text.h"

#include <stdio.h>

/* A datum that is read, and JSON that is written. Functions called take_… return false at a datum that cannot
 * be; `result` says why. */
struct reading {
    const struct avro_schema *schema;
    const char *p, *end;
    struct json_out *out;
    unsigned depth;
    enum avro_result result; /* AVRO_IS_BROKEN until a function knows better */
};

static bool take_node(struct reading *r, uint32_t node);

static bool fit(struct reading *r, bool has_room)
{
    if (!has_room)
        r->result = AVRO_IS_LONG;
    return has_room;
}

static bool take_long(struct reading *r, int64_t *value)
{
    uint64_t bits;
    const uint8_t *next = varint_get((const uint8_t *)r->p, (const uint8_t *)r->end, &bits);
    if (next == NULL)
        return false;
    *value = varint_unzigzag(bits);
    r->p = (const char *)next;
    return true;
}

/* Takes so many bytes. */
static bool take_bytes(struct reading *r, uint64_t len, struct slice *bytes)
{
    if (len > (uint64_t)(r->end - r->p))
        return false;
    *bytes = slice_of(r->p, (size_t)len);
    r->p += len;
    return true;
}

/* Takes the bytes of a fixed, or those behind their length. */
static bool take_text(struct reading *r, const struct avro_node *n, struct slice *bytes)
{
    int64_t len = n->count;
    if (n->kind != AVRO_FIXED && !take_long(r, &len))
        return false;
    return len >= 0 && take_bytes(r, (uint64_t)len, bytes);
}

static bool take_string(struct reading *r)
{
    int64_t len;
    struct slice text;
    return take_long(r, &len) && len >= 0 && take_bytes(r, (uint64_t)len, &text) &&
           fit(r, json_out_string(r->out, text));
}

static bool write_uuid(struct json_out *out, struct slice bytes)
{
    char text[40], *p = text;
    *p++ = '"';
    for (size_t i = 0; i < bytes.len; i++)
        p += sprintf(p, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "",
                     (unsigned char)bytes.ptr[i]);
    *p++ = '"';
    return json_out_add(out, text, (size_t)(p - text));
}

static bool take_binary(struct reading *r, const struct avro_node *n)
{
    struct slice bytes;
    const char *from = r->p;
    if (!take_text(r, n, &bytes))
        return false;
    if (n->form == AVRO_UUID)
        return fit(r, write_uuid(r->out, bytes));
    if (n->form != AVRO_DECIMAL)
        return fit(r, json_out_string(r->out, bytes));
    if (bytes.len > JSON_DECIMAL_BYTES) {
        r->p = from;
        return false;
    }
    return fit(r, json_out_decimal(r->out, bytes, n->scale));
}

static bool take_integer(struct reading *r, const struct avro_node *n)
{
    int64_t value;
    const char *from = r->p;
    if (!take_long(r, &value) || (n->kind == AVRO_INT && (value < INT32_MIN || value > INT32_MAX))) {
        r->p = from;
        return false;
    }
    return fit(r, n->form == AVRO_DATE ? json_out_date(r->out, value)
                                       : json_out_scaled(r->out, value, n->scale));
}

/* Takes a number of IEEE 754, little endian. */
static bool take_float(struct reading *r, bool is_float)
{
    struct slice bytes;
    uint64_t bits = 0;
    if (!take_bytes(r, is_float ? sizeof(float) : sizeof(double), &bytes))
        return false;
    for (size_t i = bytes.len; i > 0; i--)
        bits = bits << 8 | (unsigned char)bytes.ptr[i - 1];
    return fit(r, json_out_number(r->out, float_of_bits(bits, is_float), is_float));
}

static bool take_boolean(struct reading *r)
{
    if (r->p == r->end || (unsigned char)*r->p > 1)
        return false;
    bool is_true = *r->p++ == 1;
    return fit(r, is_true ? json_out_add(r->out, "true", 4) : json_out_add(r->out, "false", 5));
}

/* Takes the index of one of the node's parts. */
static bool take_part(struct reading *r, const struct avro_node *n, const struct avro_part **part)
{
    int64_t index;
    const char *from = r->p;
    if (!take_long(r, &index) || index < 0 || index >= (int64_t)n->count) {
        r->p = from;
        return false;
    }
    *part = &r->schema->parts[n->first + index];
    return true;
}

static bool write_label(struct reading *r, const struct avro_part *part)
{
    return fit(r, json_out_add(r->out, r->schema->labels.ptr + part->label_at, part->label_len));
}

static bool take_record(struct reading *r, const struct avro_node *n)
{
    const struct avro_part *parts = &r->schema->parts[n->first];
    if (!fit(r, json_out_byte(r->out, '{')))
        return false;
    for (uint32_t i = 0; i < n->count; i++) {
        if ((i > 0 && !fit(r, json_out_byte(r->out, ','))) || !write_label(r, &parts[i]) ||
            !take_node(r, parts[i].node))
            return false;
    }
    return fit(r, json_out_byte(r->out, '}'));
}

/* Takes an array or a map: blocks of elements, each behind their number. If that is negative, the number of
 * their bytes follows. */
static bool take_blocks(struct reading *r, const struct avro_node *n)
{
    bool is_map = n->kind == AVRO_MAP, is_first = true;
    int64_t count, bytes;
    if (!fit(r, json_out_byte(r->out, is_map ? '{' : '[')))
        return false;
    while (true) {
        if (!take_long(r, &count) || (count < 0 && !take_long(r, &bytes)))
            return false;
        if (count == 0)
            break;
        for (uint64_t left = count < 0 ? -(uint64_t)count : (uint64_t)count; left > 0; left--) {
            if (!is_first && !fit(r, json_out_byte(r->out, ',')))
                return false;
            is_first = false;
            if ((is_map && (!take_string(r) || !fit(r, json_out_byte(r->out, ':')))) ||
                !take_node(r, n->first))
                return false;
        }
    }
    return fit(r, json_out_byte(r->out, is_map ? '}' : ']'));
}

/* Takes a value that may have others in it. */
static bool take_container(struct reading *r, const struct avro_node *n)
{
    const struct avro_part *branch;
    bool good;
    if (r->depth == AVRO_DEPTH_MAX) {
        r->result = AVRO_IS_DEEP;
        return false;
    }
    r->depth++;
    if (n->kind == AVRO_UNION)
        good = take_part(r, n, &branch) && take_node(r, branch->node);
    else
        good = n->kind == AVRO_RECORD ? take_record(r, n) : take_blocks(r, n);
    r->depth--;
    return good;
}

static bool take_node(struct reading *r, uint32_t node)
{
    const struct avro_node *n = &r->schema->nodes[node];
    const struct avro_part *symbol;
    switch (n->kind) {
    case AVRO_NULL:
        return fit(r, json_out_add(r->out, "null", 4));
    case AVRO_BOOLEAN:
        return take_boolean(r);
    case AVRO_INT:
    case AVRO_LONG:
        return take_integer(r, n);
    case AVRO_FLOAT:
    case AVRO_DOUBLE:
        return take_float(r, n->kind == AVRO_FLOAT);
    case AVRO_STRING:
        return take_string(r);
    case AVRO_BYTES:
    case AVRO_FIXED:
        return take_binary(r, n);
    case AVRO_ENUM:
        return take_part(r, n, &symbol) && write_label(r, symbol);
    case AVRO_ARRAY:
    case AVRO_MAP:
    case AVRO_UNION:
    case AVRO_RECORD:
        break;
    }
    return take_container(r, n);
}

enum avro_result avro_to_json(const struct avro_schema *s, struct slice bytes, struct json_out *out,
                              const char **at)
{
    struct reading r = {s, bytes.ptr, slice_end(bytes), out, 0, AVRO_IS_BROKEN};
    bool good = take_node(&r, s->root) && r.p == r.end;
    *at = r.p;
    return good ? AVRO_IS_GOOD : r.result;
}
