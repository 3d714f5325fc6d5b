#include "store/mongo/wire/id.h"

void mongo_ids_begin(struct mongo_ids *ids, bson_t *filter)
{
    ids->count = 0;
    BSON_APPEND_DOCUMENT_BEGIN(filter, "_id", &ids->in);
    BSON_APPEND_ARRAY_BEGIN(&ids->in, "$in", &ids->list);
}

void mongo_ids_add(struct mongo_ids *ids, struct slice id)
{
    char room[16];
    const char *index;
    size_t len = bson_uint32_to_string(ids->count++, &index, room, sizeof room);
    bson_append_utf8(&ids->list, index, (int)len, id.ptr, (int)id.len);
}

void mongo_ids_end(struct mongo_ids *ids, bson_t *filter)
{
    bson_append_array_end(&ids->in, &ids->list);
    bson_append_document_end(filter, &ids->in);
}
