#include "store/mongo/wire/id.h"

#include "store/mongo/wire/field.h"

void mongo_ids_begin(struct mongo_ids *ids, bson_t *filter)
{
    ids->count = 0;
    ids->filter = filter;
    BSON_APPEND_DOCUMENT_BEGIN(filter, "_id", &ids->in);
    BSON_APPEND_ARRAY_BEGIN(&ids->in, "$in", &ids->list);
}

void mongo_ids_add(struct mongo_ids *ids, struct slice id)
{
    char room[MONGO_KEY_BYTES];
    bson_append_utf8(&ids->list, mongo_array_key(ids->count++, room), -1, id.ptr, (int)id.len);
}

bson_t *mongo_ids_end(struct mongo_ids *ids)
{
    bson_append_array_end(&ids->in, &ids->list);
    bson_append_document_end(ids->filter, &ids->in);
    return ids->filter;
}
