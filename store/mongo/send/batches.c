#include "store/mongo/send/batches.h"

#include "store/mongo/wire/command.h"
#include "store/mongo/wire/field.h"

#include <inttypes.h>
#include <stdio.h>

void mongo_batch_id(char buf[MONGO_BATCH_BYTES], const struct mongo_open *o, const char *part)
{
    snprintf(buf, MONGO_BATCH_BYTES, "%s/%016" PRIx64 "/%016" PRIx64 "%s", o->slot, (uint64_t)o->inc,
             (uint64_t)o->seq, part);
}

bool mongo_parse_batch_id(const char *id, struct mongo_open *o, unsigned *part)
{
    uint64_t inc, seq;
    *o = (struct mongo_open){.prev = -1};
    bool is = sscanf(id, "%7[^/]/%" SCNx64 "/%" SCNx64 "/%x", o->slot, &inc, &seq, part) == 4;
    o->inc = is ? (int64_t)inc : 0;
    o->seq = is ? (int64_t)seq : 0;
    return is;
}

static bool insert_part(struct mongo_store *m, const char *id, const struct mongo_open *o, struct slice data,
                        struct err *e)
{
    bson_t part;
    bson_init(&part);
    BSON_APPEND_UTF8(&part, "_id", id);
    BSON_APPEND_INT64(&part, "prev", o->prev);
    BSON_APPEND_DATE_TIME(&part, "at", o->at_ms);
    BSON_APPEND_BINARY(&part, "zstd", BSON_SUBTYPE_BINARY, (const uint8_t *)data.ptr, (uint32_t)data.len);
    bool good = mongo_make(m->client, MONGO_BATCHES, &part, e);
    bson_destroy(&part);
    return good;
}

bool mongo_insert_log(struct mongo_store *m, const struct mongo_open *o, struct slice packed, struct err *e)
{
    char id[MONGO_BATCH_BYTES], part[16];
    for (size_t at = 0, n = 0; at < packed.len; n++) {
        size_t len = packed.len - at < MONGO_LOG_PART_BYTES ? packed.len - at : MONGO_LOG_PART_BYTES;
        snprintf(part, sizeof part, "/%04zx", n);
        mongo_batch_id(id, o, part);
        if (!insert_part(m, id, o, slice_of(packed.ptr + at, len), e))
            return false;
        at += len;
    }
    return true;
}

void mongo_log_add_part(const bson_t *document, struct text *packed)
{
    bson_iter_t it;
    bson_subtype_t subtype;
    const uint8_t *bytes;
    uint32_t len;
    if (bson_iter_init_find(&it, document, "zstd") && BSON_ITER_HOLDS_BINARY(&it)) {
        bson_iter_binary(&it, &subtype, &len, &bytes);
        text_add(packed, (const char *)bytes, len);
    }
}

static bool take_part(void *context, const bson_t *document)
{
    mongo_log_add_part(document, context);
    return true;
}

bool mongo_read_log(struct mongo_store *m, const struct mongo_open *o, struct text *packed, struct err *e)
{
    char from[MONGO_BATCH_BYTES], to[MONGO_BATCH_BYTES];
    mongo_batch_id(from, o, "/");
    mongo_batch_id(to, o, "0"); /* sorts behind "/" */
    bson_t *filter = BCON_NEW("_id", "{", "$gte", BCON_UTF8(from), "$lt", BCON_UTF8(to), "}");
    return mongo_look(m->client, MONGO_BATCHES, filter, BCON_NEW("sort", "{", "_id", BCON_INT32(1), "}"),
                      take_part, packed, e);
}

static bool take_end(void *context, const bson_t *document)
{
    struct mongo_open o;
    unsigned part;
    if (mongo_parse_batch_id(mongo_text_at(document, "_id"), &o, &part))
        mongo_batch_id(context, &o, ""); /* before its first part */
    return false;
}

bool mongo_delete_logs(struct mongo_store *m, const struct mongo_open *last, bool *more, struct err *e)
{
    char from[MONGO_BATCH_BYTES], to[MONGO_BATCH_BYTES], end[MONGO_BATCH_BYTES];
    snprintf(from, sizeof from, "%s/", last->slot);
    mongo_batch_id(to, last, "");
    memcpy(end, to, sizeof end);
    bson_t *filter = BCON_NEW("_id", "{", "$gte", BCON_UTF8(from), "$lt", BCON_UTF8(to), "}");
    bson_t *options =
        BCON_NEW("projection", "{", "_id", BCON_BOOL(true), "}", "sort", "{", "_id", BCON_INT32(1), "}",
                 "skip", BCON_INT64(MONGO_LOGS_DELETED), "limit", BCON_INT64(1));
    bool good = mongo_look(m->client, MONGO_BATCHES, bson_copy(filter), options, take_end, end, e);
    *more = strcmp(end, to) != 0;
    if (*more) {
        bson_destroy(filter);
        filter = BCON_NEW("_id", "{", "$gte", BCON_UTF8(from), "$lt", BCON_UTF8(end), "}");
    }
    if (good)
        return mongo_delete_all(m->client, MONGO_BATCHES, filter, NULL, e);
    bson_destroy(filter);
    return false;
}
