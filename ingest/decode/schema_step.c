#include "ingest/decode/schema_step.h"

#include "base/mem.h"
#include "ingest/decode/avro.h"
#include "ingest/decode/protobuf.h"
#include "ingest/schema/registry.h"

#include <stdlib.h>

#define MAGIC        0
#define HEADER_BYTES 5  /* the magic byte and the id */
#define SLOTS        64 /* ids that are remembered, by their last bits */

struct slot {
    uint32_t id;
    const struct message_schema *schema; /* NULL: the slot is free */
};

struct schema_step {
    const struct registry *registry;
    enum schema_kind kind;
    const struct message_schema *of_file; /* NULL: the registry has them */
    struct slot slots[SLOTS];
    struct json_out out;
    struct proto_scratch scratch;
};

struct schema_step *schema_step_new(const struct decode *d, size_t line_max)
{
    struct schema_step *ss = xcalloc(1, sizeof *ss);
    ss->registry = d->registry;
    ss->kind = decode_schema_kind(d);
    ss->out.max = JSON_WRITE_GROWTH * line_max;
    if (d->schema_path[0] != '\0')
        ss->of_file = registry_file_schema(d->registry, ss->kind, d->schema_path);
    return ss;
}

void schema_step_free(struct schema_step *ss)
{
    if (ss == NULL)
        return;
    json_out_fini(&ss->out);
    proto_scratch_fini(&ss->scratch);
    free(ss);
}

static bool has_header(struct slice value)
{
    return value.len >= HEADER_BYTES && value.ptr[0] == MAGIC;
}

static uint32_t id_of(struct slice value)
{
    uint32_t id = 0;
    for (int i = 1; i < HEADER_BYTES; i++)
        id = id << 8 | (unsigned char)value.ptr[i];
    return id;
}

/* The schema of a record with a header. NULL: it is not known yet. */
static const struct message_schema *find_schema(struct schema_step *ss, const struct record *r)
{
    uint32_t id = id_of(r->value);
    struct slot *slot = &ss->slots[id % SLOTS];
    if (slot->schema != NULL && slot->id == id)
        return slot->schema;
    const struct message_schema *s = registry_find(ss->registry, ss->kind, id, r);
    if (s != NULL)
        *slot = (struct slot){id, s};
    return s;
}

bool schema_step_knows(struct schema_step *ss, const struct record *r)
{
    return ss->of_file != NULL || !has_header(r->value) || find_schema(ss, r) != NULL;
}

/* REJECT_COUNT: it is written. *at: where it was given up. */
static enum reject_reason write_avro(struct schema_step *ss, const struct avro_schema *s, struct slice datum,
                                     const char **at)
{
    switch (avro_to_json(s, datum, &ss->out, at)) {
    case AVRO_IS_GOOD:
        return REJECT_COUNT;
    case AVRO_IS_DEEP:
        return REJECT_JSON_DEPTH;
    case AVRO_IS_LONG:
        return REJECT_TOO_LONG;
    case AVRO_IS_BROKEN:
        break;
    }
    return REJECT_AVRO;
}

/* `has_index`: the number of the message stands before it; else it is the first of the file. */
static enum reject_reason write_protobuf(struct schema_step *ss, const struct proto_schema *s,
                                         struct slice datum, bool has_index, const char **at)
{
    uint32_t message = proto_schema_find(s, PROTO_NONE, 0);
    const char *from = has_index ? proto_take_index(s, datum, &message) : datum.ptr;
    *at = datum.ptr;
    if (from == NULL || message == PROTO_NONE)
        return REJECT_PROTOBUF;
    datum = slice_of(from, (size_t)(slice_end(datum) - from));
    switch (proto_to_json(s, message, datum, &ss->scratch, &ss->out, at)) {
    case PROTO_IS_GOOD:
        return REJECT_COUNT;
    case PROTO_IS_DEEP:
        return REJECT_JSON_DEPTH;
    case PROTO_IS_LONG:
        return REJECT_TOO_LONG;
    case PROTO_IS_BROKEN:
        break;
    }
    return REJECT_PROTOBUF;
}

static bool refuse(struct reject *why, enum reject_reason reason, const struct record *r, const char *at)
{
    *why = (struct reject){reason, (size_t)(at - r->value.ptr) + 1};
    return false;
}

bool schema_step_unwrap(struct schema_step *ss, const struct record *r, struct arena *memory,
                        struct slice *json, struct reject *why)
{
    const struct message_schema *s = ss->of_file;
    struct slice datum = r->value;
    const char *at = datum.ptr;
    if (s == NULL) {
        if (!has_header(datum))
            return refuse(why, REJECT_SCHEMA, r, at);
        s = find_schema(ss, r);
        ASSERT(s != NULL);
        datum = slice_of(datum.ptr + HEADER_BYTES, datum.len - HEADER_BYTES);
    }
    if (s->kind != ss->kind)
        return refuse(why, REJECT_SCHEMA_KIND, r, at);
    ss->out.len = 0;
    enum reject_reason reason = s->kind == SCHEMA_AVRO
                                    ? write_avro(ss, s->avro, datum, &at)
                                    : write_protobuf(ss, s->proto, datum, ss->of_file == NULL, &at);
    if (reason != REJECT_COUNT)
        return refuse(why, reason, r, at);
    *json = arena_copy(memory, slice_of(ss->out.bytes, ss->out.len));
    return true;
}
