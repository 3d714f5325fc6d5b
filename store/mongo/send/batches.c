#include "store/mongo/send/batches.h"

#include "base/mem.h"
#include "base/order.h"
#include "store/mongo/wire/command.h"
#include "store/mongo/wire/field.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

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

static void append_bytes(bson_t *part, const char *member, struct slice data)
{
    bson_append_binary(part, member, -1, BSON_SUBTYPE_BINARY, (const uint8_t *)data.ptr, (uint32_t)data.len);
}

static struct slice take_bytes(struct slice *from)
{
    const size_t len = from->len < MONGO_LOG_PART_BYTES ? from->len : MONGO_LOG_PART_BYTES;
    const struct slice taken = slice_of(from->ptr, len);
    *from = slice_of(from->ptr + len, from->len - len);
    return taken;
}

bool mongo_insert_log(struct mongo_store *m, const struct mongo_open *o, struct slice packed,
                      struct slice longer, struct err *e)
{
    const size_t longer_bytes = longer.len;
    bool good = true;
    for (size_t n = 0; good && packed.len + longer.len > 0; n++) {
        char id[MONGO_BATCH_BYTES], number[16];
        bson_t part;
        bson_init(&part);
        snprintf(number, sizeof number, "/%04zx", n);
        mongo_batch_id(id, o, number);
        BSON_APPEND_UTF8(&part, "_id", id);
        BSON_APPEND_INT64(&part, "prev", o->prev);
        BSON_APPEND_DATE_TIME(&part, "at", o->at_ms);
        if (packed.len > 0)
            append_bytes(&part, "zstd", take_bytes(&packed));
        if (longer.len > 0)
            append_bytes(&part, "longer", take_bytes(&longer));
        BSON_APPEND_INT64(&part, "longer_bytes", (int64_t)longer_bytes);
        good = mongo_make(m->client, MONGO_BATCHES, &part, e);
        bson_destroy(&part);
    }
    return good;
}

void mongo_log_add_part(const bson_t *document, const char *member, struct text *packed)
{
    bson_iter_t it;
    bson_subtype_t subtype;
    const uint8_t *bytes;
    uint32_t len;
    if (bson_iter_init_find(&it, document, member) && BSON_ITER_HOLDS_BINARY(&it)) {
        bson_iter_binary(&it, &subtype, &len, &bytes);
        text_add(packed, (const char *)bytes, len);
    }
}

struct reading {
    const char *member;
    struct text *packed;
    int64_t longer_bytes; /* -1: the log has no part */
};

static bool take_part(void *context, const bson_t *document)
{
    struct reading *r = context;
    mongo_log_add_part(document, r->member, r->packed);
    r->longer_bytes = mongo_number_at(document, "longer_bytes", 0);
    return true;
}

bson_t *mongo_filter_parts(const struct mongo_open *o)
{
    char from[MONGO_BATCH_BYTES], to[MONGO_BATCH_BYTES];
    mongo_batch_id(from, o, "/");
    mongo_batch_id(to, o, "0"); /* sorts behind "/" */
    return BCON_NEW("_id", "{", "$gte", BCON_UTF8(from), "$lt", BCON_UTF8(to), "}");
}

static bool read_parts(struct mongo_store *m, const struct mongo_open *o, struct reading *r, struct err *e)
{
    bson_t *options = BCON_NEW("sort", "{", "_id", BCON_INT32(1), "}", "projection", "{", r->member,
                               BCON_BOOL(true), "longer_bytes", BCON_BOOL(true), "}");
    return mongo_look(m->client, MONGO_BATCHES, mongo_filter_parts(o), options, take_part, r, e);
}

bool mongo_read_log(struct mongo_store *m, const struct mongo_open *o, struct text *packed, struct err *e)
{
    struct reading r = {"zstd", packed, -1};
    return read_parts(m, o, &r, e);
}

bool mongo_read_longer(struct mongo_store *m, const struct mongo_open *o, struct text *packed, bool *is_whole,
                       struct err *e)
{
    struct reading r = {"longer", packed, -1};
    bool good = read_parts(m, o, &r, e);
    *is_whole = r.longer_bytes == (int64_t)packed->len;
    return good;
}

/* ---- the logs of a slot */

void mongo_logs_add(struct mongo_logs *l, const struct mongo_open *log)
{
    l->list = xgrow(l->list, &l->capacity, l->count + 1, sizeof *l->list);
    l->list[l->count++] = *log;
}

static bool take_log(void *context, const bson_t *document)
{
    struct mongo_logs *l = context;
    struct mongo_open o;
    unsigned part;
    if (!mongo_parse_batch_id(mongo_text_at(document, "_id"), &o, &part) || part != 0)
        return true;
    o.prev = mongo_number_at(document, "prev", -1);
    o.at_ms = mongo_number_at(document, "at", 0);
    mongo_logs_add(l, &o);
    return true;
}

static int compare_logs(const void *a, const void *b)
{
    const struct mongo_open *x = a, *y = b;
    int order = order_int64(x->seq, y->seq);
    return order != 0 ? order : order_int64(x->inc, y->inc);
}

bool mongo_list_logs(struct mongo_store *m, const char *slot, struct mongo_logs *l, struct err *e)
{
    char from[MONGO_SLOT_BYTES + 2], to[MONGO_SLOT_BYTES + 2];
    snprintf(from, sizeof from, "%s/", slot);
    snprintf(to, sizeof to, "%s0", slot); /* sorts behind "/" */
    bson_t *filter = BCON_NEW("_id", "{", "$gte", BCON_UTF8(from), "$lt", BCON_UTF8(to), "}");
    bson_t *options = BCON_NEW("projection", "{", "prev", BCON_BOOL(true), "at", BCON_BOOL(true), "}");
    bool good = mongo_look(m->client, MONGO_BATCHES, filter, options, take_log, l, e);
    if (l->count > 0)
        qsort(l->list, l->count, sizeof *l->list, compare_logs);
    return good;
}

const struct mongo_open *mongo_find_log(const struct mongo_logs *l, int64_t seq)
{
    size_t i = l->count;
    while (i > 0 && l->list[i - 1].seq > seq)
        i--;
    return i > 0 && l->list[i - 1].seq == seq ? &l->list[i - 1] : NULL;
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
    if (!mongo_look(m->client, MONGO_BATCHES, filter, options, take_end, end, e))
        return false;
    *more = strcmp(end, to) != 0;
    filter = BCON_NEW("_id", "{", "$gte", BCON_UTF8(from), "$lt", BCON_UTF8(end), "}");
    return mongo_delete_all(m->client, MONGO_BATCHES, filter, NULL, e);
}
