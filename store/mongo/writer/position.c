#include "store/mongo/writer/position.h"

#include "base/utf8.h"
#include "store/mongo/wire/field.h"

#include <stdio.h>

/* Escapes dots and $: names of members must not have a dot, or begin with $. */
char *mongo_partition_key(const struct range *range)
{
    struct text key = {0};
    text_percent(&key, slice_text(range->source), ".$");
    text_putc(&key, '/');
    text_percent(&key, slice_text(range->partition), ".$");
    return key.ptr;
}

const char *mongo_entry_path(struct mongo_store *m, const char *key)
{
    text_clear(&m->id);
    text_printf(&m->id, "partitions.%s", key);
    return m->id.ptr;
}

const char *mongo_entry_member(struct mongo_store *m, const char *key, const char *name)
{
    (void)mongo_entry_path(m, key);
    text_printf(&m->id, ".%s", name);
    return m->id.ptr;
}

const char *mongo_partition_member(struct mongo_store *m, const struct mongo_partition *p, const char *name)
{
    return mongo_entry_member(m, p->key, name);
}

bool mongo_find_entry(struct mongo_store *m, const bson_t *document, const char *key, bson_t *entry)
{
    return mongo_find_document(document, mongo_entry_path(m, key), entry);
}

void mongo_add_claim(struct mongo_store *m, const struct mongo_partition *p, bson_t *query)
{
    BSON_APPEND_UTF8(query, mongo_partition_member(m, p, "owner"), m->writer.slot);
    BSON_APPEND_INT64(query, mongo_partition_member(m, p, "epoch"), p->epoch);
    BSON_APPEND_INT64(query, mongo_partition_member(m, p, "claim"), p->claim);
}

/* Replaces invalid bytes: a path may have any bytes, and may be cut within a character. */
static void add_label(bson_t *set, const char *path, const char *label)
{
    char clean[sizeof(((struct range *)0)->label)];
    const unsigned char *p = (const unsigned char *)label, *end = p + strlen(label);
    size_t n = 0;
    while (p < end) {
        size_t len = utf8_len(p, end);
        if (len > 0)
            memcpy(clean + n, p, len);
        else
            clean[n] = '?';
        n += len > 0 ? len : 1;
        p += len > 0 ? len : 1;
    }
    bson_append_utf8(set, path, -1, clean, (int)n);
}

static const char *path_of(struct mongo_store *m, const struct mongo_partition *p, const char *name)
{
    return p == NULL ? name : mongo_partition_member(m, p, name);
}

void mongo_add_position(struct mongo_store *m, const struct mongo_partition *p, const struct range *range,
                        bson_t *set)
{
    BSON_APPEND_INT64(set, path_of(m, p, "next"), range->to);
    add_label(set, path_of(m, p, "label"), range->label);
    BSON_APPEND_INT64(set, path_of(m, p, "tail_hash"), (int64_t)range->tail_hash);
    BSON_APPEND_INT64(set, path_of(m, p, "tail_len"), range->tail_len);
    BSON_APPEND_INT64(set, path_of(m, p, "latest_ms"), range->latest_ms);
    if (range->partition[0] != '\0' || range->witnesses.count > 0) {
        unsigned char bytes[WITNESSES_MAX * WITNESS_BYTES];
        size_t len = witnesses_pack(&range->witnesses, bytes);
        BSON_APPEND_BINARY(set, path_of(m, p, "witnesses"), BSON_SUBTYPE_BINARY, bytes, (uint32_t)len);
    }
}

void mongo_note_time(struct mongo_store *m, const bson_t *document)
{
    const int64_t at_ms = mongo_number_at(document, "at", 0);
    m->writer.at_ms = at_ms > m->writer.at_ms ? at_ms : m->writer.at_ms;
}

/* Ledgers of older versions have no witnesses. */
static void read_witnesses(const bson_t *place, struct witnesses *w)
{
    bson_iter_t it;
    bson_subtype_t subtype;
    uint32_t len;
    const uint8_t *bytes;
    w->count = 0;
    if (!bson_iter_init_find(&it, place, "witnesses") || !BSON_ITER_HOLDS_BINARY(&it))
        return;
    bson_iter_binary(&it, &subtype, &len, &bytes);
    (void)witnesses_unpack(w, slice_of((const char *)bytes, len));
}

bool mongo_read_place(const bson_t *place, struct range *r)
{
    if (mongo_number_at(place, "next", -1) < 0)
        return false;
    snprintf(r->label, sizeof r->label, "%s", mongo_text_at(place, "label"));
    r->to = mongo_number_at(place, "next", -1);
    r->tail_hash = (uint64_t)mongo_number_at(place, "tail_hash", 0);
    r->tail_len = (uint32_t)mongo_number_at(place, "tail_len", 0);
    r->latest_ms = mongo_number_at(place, "latest_ms", 0);
    read_witnesses(place, &r->witnesses);
    return true;
}
