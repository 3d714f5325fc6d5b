#include "store/mongo/handle/log.h"

#include "store/mongo/wire/field.h"

#include <zstd.h>

/* Length of one update: more than the server allows a document. */
#define UPDATE_BYTES_MAX ((size_t)32 << 20)

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

/* Unpacks the next bytes. The reader asks for more only while an update is not whole. */
static ssize_t unpack(void *context, void *room, size_t size)
{
    struct mongo_log_reader *r = context;
    ZSTD_outBuffer out = {room, size, 0};
    r->has_failed |= r->unpacked - r->taken >= UPDATE_BYTES_MAX;
    while (out.pos == 0 && !r->has_ended && !r->has_failed) {
        ZSTD_inBuffer in = {r->packed.ptr, r->packed.len, 0};
        size_t left = ZSTD_decompressStream(r->unpacker, &out, &in);
        r->has_failed = ZSTD_isError(left) || (out.pos == 0 && in.pos == 0 && left != 0);
        r->has_ended = left == 0;
        r->packed = slice_of(r->packed.ptr + in.pos, r->packed.len - in.pos);
    }
    r->unpacked += out.pos;
    return r->has_failed ? -1 : (ssize_t)out.pos;
}

void mongo_log_open(struct mongo_log_reader *r, struct slice packed)
{
    *r = (struct mongo_log_reader){.unpacker = ZSTD_createDCtx(), .packed = packed};
    ASSERT(r->unpacker != NULL);
    r->updates = bson_reader_new_from_handle(r, unpack, NULL);
}

void mongo_log_close(struct mongo_log_reader *r)
{
    bson_reader_destroy(r->updates);
    ZSTD_freeDCtx(r->unpacker);
}

/* The reader takes a part of an update at the end, and an error of the first bytes, for the end. */
bool mongo_log_next(struct mongo_log_reader *r, const bson_t **update, struct err *e)
{
    *update = bson_reader_read(r->updates, NULL);
    if (*update != NULL) {
        r->taken += (*update)->len;
        return true;
    }
    return (r->has_ended && !r->has_failed && r->packed.len == 0 && r->taken == r->unpacked) || damaged(e);
}

bool mongo_log_each(struct slice packed, mongo_update_fn *fn, void *context, struct err *e)
{
    struct mongo_log_reader r;
    const bson_t *update;
    bool good;
    mongo_log_open(&r, packed);
    do
        good = mongo_log_next(&r, &update, e) && (update == NULL || fn(context, update, e));
    while (good && update != NULL);
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
