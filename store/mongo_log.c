#include "store/mongo_log.h"

#include "base/mem.h"

#include <stdlib.h>
#include <zstd.h>

/* Of one update: more than any document may have. */
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

/* Hand on what is whole in `raw`, and keep the rest. */
static bool take_whole(struct text *raw, mongo_log_fn *fn, void *context, struct err *e)
{
    size_t at = 0;
    while (raw->len - at >= UPDATE_BYTES_MIN) {
        uint32_t len = length_at(raw->ptr + at);
        bson_t update;
        if (len < UPDATE_BYTES_MIN || len > UPDATE_BYTES_MAX)
            return damaged(e);
        if (len > raw->len - at)
            break;
        if (!bson_init_static(&update, (const uint8_t *)raw->ptr + at, len))
            return damaged(e);
        if (!fn(context, &update, e))
            return false;
        at += len;
    }
    memmove(raw->ptr, raw->ptr + at, raw->len - at);
    raw->len -= at;
    return true;
}

bool mongo_log_each(struct slice packed, mongo_log_fn *fn, void *context, struct err *e)
{
    ZSTD_DCtx *unpacker = ZSTD_createDCtx();
    struct text raw = {0};
    ZSTD_inBuffer in = {packed.ptr, packed.len, 0};
    size_t left = 1;
    bool good = true;
    ASSERT(unpacker != NULL);
    text_putc(&raw, '\0');
    raw.len = 0;
    while (good && left != 0) {
        char room[65536];
        ZSTD_outBuffer out = {room, sizeof room, 0};
        left = ZSTD_decompressStream(unpacker, &out, &in);
        if (ZSTD_isError(left) || (out.pos == 0 && in.pos == in.size && left != 0)) {
            good = damaged(e);
            break;
        }
        text_add(&raw, room, out.pos);
        good = take_whole(&raw, fn, context, e);
    }
    if (good && raw.len > 0)
        good = damaged(e);
    text_fini(&raw);
    ZSTD_freeDCtx(unpacker);
    return good;
}
