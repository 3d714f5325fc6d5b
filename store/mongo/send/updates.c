#include "store/mongo/send/updates.h"

#include "base/check.h"

#include <string.h>

void mongo_chunk_update(const struct mongo_chunk *c, size_t i, bson_t *update)
{
    uint32_t len;
    memcpy(&len, c->raw.ptr + c->at[i], sizeof len);
    ASSERT(bson_init_static(update, (const uint8_t *)c->raw.ptr + c->at[i], BSON_UINT32_FROM_LE(len)));
}

static void append_member(bson_t *to, const char *name, const bson_t *update, const char *member)
{
    bson_iter_t it;
    ASSERT(bson_iter_init_find(&it, update, member));
    bson_append_iter(to, name, -1, &it);
}

void mongo_chunk_append_change(const struct mongo_chunk *c, size_t i, bson_t *one)
{
    bson_t update;
    mongo_chunk_update(c, i, &update);
    append_member(one, "u", &update, "u");
}

void mongo_chunk_begin_command(const struct mongo_chunk *c, bson_t *command, bson_t *updates)
{
    bson_init(command);
    BSON_APPEND_UTF8(command, "update", c->collection);
    BSON_APPEND_BOOL(command, "ordered", false);
    BSON_APPEND_ARRAY_BEGIN(command, "updates", updates);
}

void mongo_chunk_write_upsert(const struct mongo_chunk *c, size_t i, bool upsert, bson_t *one)
{
    bson_t update;
    mongo_chunk_update(c, i, &update);
    append_member(one, "q", &update, "f");
    mongo_chunk_append_change(c, i, one);
    BSON_APPEND_BOOL(one, "upsert", upsert);
}
