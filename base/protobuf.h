/* protobuf.h - takes the fields of a message of Protocol Buffers one by one, as slices: no tree, no copy.
 * Readers of messages call it; they know their own limits. A field's content may be a message again.
 *
 * Owner   : slices are borrowed from the message.
 * Errors  : false at a field that is broken or cut off. Groups count as broken: no message here has them.
 * Source  : https://protobuf.dev/programming-guides/encoding/
 */
#pragma once

#include "base/slice.h"
#include "base/varint.h"

/* A tag names the kind of the bytes behind it. */
enum protobuf_wire { PROTOBUF_VARINT = 0, PROTOBUF_64_BITS = 1, PROTOBUF_BYTES = 2, PROTOBUF_32_BITS = 5 };

struct protobuf_field {
    uint64_t number;
    enum protobuf_wire wire;
    uint64_t varint;    /* of PROTOBUF_VARINT; else 0 */
    struct slice bytes; /* of the others; else empty */
};

/* Takes a value of f->wire from `rest`. False: it is broken; *rest is then as it was. */
static inline bool protobuf_take_value(struct slice *rest, struct protobuf_field *f)
{
    const uint8_t *p = (const uint8_t *)rest->ptr, *end = p + rest->len;
    uint64_t len = 0;
    f->varint = 0;
    switch (f->wire) {
    case PROTOBUF_VARINT:
        p = varint_get(p, end, &f->varint);
        break;
    case PROTOBUF_BYTES:
        p = varint_get(p, end, &len);
        break;
    case PROTOBUF_64_BITS:
        len = sizeof(uint64_t);
        break;
    case PROTOBUF_32_BITS:
        len = sizeof(uint32_t);
        break;
    default:
        return false;
    }
    if (p == NULL || len > (size_t)(end - p))
        return false;
    f->bytes = slice_of((const char *)p, (size_t)len);
    p += len;
    *rest = slice_of((const char *)p, (size_t)(end - p));
    return true;
}

/* Takes the next field from `rest`, which is not empty. False: it is broken; *rest is then as it was. */
static inline bool protobuf_take(struct slice *rest, struct protobuf_field *f)
{
    const uint8_t *p = (const uint8_t *)rest->ptr, *end = p + rest->len;
    uint64_t tag;
    if ((p = varint_get(p, end, &tag)) == NULL || tag >> 3 == 0)
        return false;
    struct slice value = slice_of((const char *)p, (size_t)(end - p));
    f->number = tag >> 3;
    f->wire = (enum protobuf_wire)(tag & 7);
    if (!protobuf_take_value(&value, f))
        return false;
    *rest = value;
    return true;
}

static inline bool protobuf_is(const struct protobuf_field *f, uint64_t number, enum protobuf_wire wire)
{
    return f->number == number && f->wire == wire;
}

/* The value of a PROTOBUF_64_BITS or PROTOBUF_32_BITS. */
static inline uint64_t protobuf_fixed(const struct protobuf_field *f)
{
    uint64_t bits = 0;
    for (size_t i = f->bytes.len; i > 0; i--)
        bits = bits << 8 | (unsigned char)f->bytes.ptr[i - 1];
    return bits;
}
