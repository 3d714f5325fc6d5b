#include "store/mongo/handle/log.h"

#include "store/mongo/wire/field.h"

#include <zstd.h>

/* Length of one update: more than the server allows a document. */
#define UPDATE_BYTES_MAX ((size_t)32 << 20)
#define UPDATE_BYTES_MIN 5

static void pack(struct mongo_log *l, const void *bytes, size_t len, ZSTD_EndDirective end)
{
    ZSTD_inBuffer in = {bytes, len, 0};
    size_t left;
    do {
        char room[16384];
        ZSTD_outBuffer out = {room, sizeof room, 0};
        left = ZSTD_compressStream2(l->packer, &out, &in, end);
        ASSERT(!ZSTD_isError(left));
        text_add(&l->packed, room, out.pos);
    } while (in.pos < in.size || (end == ZSTD_e_end && left > 0));
}

void mongo_log_begin(struct mongo_log *l)
{
    text_clear(&l->packed);
    if (l->packer == NULL)
        l->packer = ZSTD_createCCtx();
    ASSERT(l->packer != NULL);
    ZSTD_CCtx_reset(l->packer, ZSTD_reset_session_only);
    ZSTD_CCtx_setParameter(l->packer, ZSTD_c_compressionLevel, MONGO_LOG_LEVEL);
    ZSTD_CCtx_setParameter(l->packer, ZSTD_c_checksumFlag, 1);
}

void mongo_log_add(struct mongo_log *l, const bson_t *update)
{
    pack(l, bson_get_data(update), update->len, ZSTD_e_continue);
}

void mongo_log_end(struct mongo_log *l)
{
    pack(l, NULL, 0, ZSTD_e_end);
}

void mongo_log_fini(struct mongo_log *l)
{
    ZSTD_freeCCtx(l->packer);
    text_fini(&l->packed);
    *l = (struct mongo_log){0};
}

static bool damaged(struct err *e)
{
    return err_set(e, EX_DATAERR, "the log of a batch is damaged: restore the database from a backup");
}

static uint32_t length_at(const char *p)
{
    const unsigned char *b = (const unsigned char *)p;
    return (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

void mongo_log_open(struct mongo_log_reader *r, struct slice packed)
{
    *r = (struct mongo_log_reader){.unpacker = ZSTD_createDCtx(), .packed = packed};
    ASSERT(r->unpacker != NULL);
}

void mongo_log_close(struct mongo_log_reader *r)
{
    ZSTD_freeDCtx(r->unpacker);
    text_fini(&r->raw);
}

/* Unpacks more into `raw`, after removing the bytes that were taken. */
static bool unpack(struct mongo_log_reader *r, struct err *e)
{
    char room[65536];
    ZSTD_outBuffer out = {room, sizeof room, 0};
    ZSTD_inBuffer in = {r->packed.ptr, r->packed.len, 0};
    size_t left = ZSTD_decompressStream(r->unpacker, &out, &in);
    if (ZSTD_isError(left) || (out.pos == 0 && in.pos == 0 && left != 0))
        return damaged(e);
    r->packed = slice_of(r->packed.ptr + in.pos, r->packed.len - in.pos);
    r->has_ended = left == 0;
    if (r->at > 0)
        memmove(r->raw.ptr, r->raw.ptr + r->at, r->raw.len - r->at);
    r->raw.len -= r->at;
    r->at = 0;
    text_add(&r->raw, room, out.pos);
    return true;
}

bool mongo_log_next(struct mongo_log_reader *r, struct slice *update, struct err *e)
{
    while (true) {
        size_t there = r->raw.len - r->at;
        uint32_t len = there >= UPDATE_BYTES_MIN ? length_at(r->raw.ptr + r->at) : UPDATE_BYTES_MIN;
        bson_t document;
        if (len < UPDATE_BYTES_MIN || len > UPDATE_BYTES_MAX)
            return damaged(e);
        if (len <= there) {
            *update = slice_of(r->raw.ptr + r->at, len);
            r->at += len;
            return bson_init_static(&document, (const uint8_t *)update->ptr, len) || damaged(e);
        }
        if (r->has_ended) {
            *update = slice_of("", 0);
            return (there == 0 && r->packed.len == 0) || damaged(e);
        }
        if (!unpack(r, e))
            return false;
    }
}

bool mongo_log_each(struct slice packed, mongo_update_fn *fn, void *context, struct err *e)
{
    struct mongo_log_reader r;
    struct slice raw;
    bson_t update;
    bool good;
    mongo_log_open(&r, packed);
    while ((good = mongo_log_next(&r, &raw, e)) && raw.len > 0) {
        ASSERT(bson_init_static(&update, (const uint8_t *)raw.ptr, raw.len));
        if (!(good = fn(context, &update, e)))
            break;
    }
    mongo_log_close(&r);
    return good;
}

/* Has the update the shape { c: text, f: { _id: text, … }, u: { OPERATOR: { … }, … } }? */
static bool is_update(const bson_t *update)
{
    bson_iter_t it, at;
    bson_t change;
    if (!bson_validate(update, BSON_VALIDATE_NONE, NULL) || !mongo_find_member(update, "c", &it) ||
        !BSON_ITER_HOLDS_UTF8(&it) || !bson_iter_init_find(&it, update, "f") ||
        !mongo_find_in(&it, "_id", &at) || !BSON_ITER_HOLDS_UTF8(&at) ||
        !mongo_find_document(update, "u", &change) || !bson_iter_init(&it, &change))
        return false;
    while (bson_iter_next(&it)) {
        if (!BSON_ITER_HOLDS_DOCUMENT(&it))
            return false;
    }
    return true;
}

static bool check_update(void *context, const bson_t *update, struct err *e)
{
    (void)context;
    return is_update(update) || damaged(e);
}

bool mongo_log_check(struct slice packed, struct err *e)
{
    return mongo_log_each(packed, check_update, NULL, e);
}
