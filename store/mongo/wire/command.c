#include "store/mongo/wire/command.h"

#include "base/check.h"

static bool copy_document(void *context, const bson_t *document)
{
    bson_t *copy = context;
    bson_destroy(copy);
    bson_copy_to(document, copy);
    return false;
}

bool mongo_read_document(struct mongo_client *c, const char *collection, const char *id, bson_t *document,
                         struct err *e)
{
    bson_t filter;
    bson_init(document);
    bson_init(&filter);
    BSON_APPEND_UTF8(&filter, "_id", id);
    bool good = mongo_find(c, collection, &filter, NULL, copy_document, document, e);
    bson_destroy(&filter);
    return good;
}

bool mongo_modify(struct mongo_client *c, const char *collection, const bson_t *query, const bson_t *update,
                  bool *found, bson_t *after, struct err *e)
{
    bson_t command, reply;
    bson_iter_t value;
    bson_init(after);
    bson_init(&command);
    BSON_APPEND_UTF8(&command, "findAndModify", collection);
    BSON_APPEND_DOCUMENT(&command, "query", query);
    BSON_APPEND_DOCUMENT(&command, "update", update);
    BSON_APPEND_BOOL(&command, "new", true);
    bool good = mongo_write(c, &command, &reply, e);
    *found = good && bson_iter_init_find(&value, &reply, "value") && BSON_ITER_HOLDS_DOCUMENT(&value);
    if (*found) {
        bson_t document;
        const uint8_t *bytes;
        uint32_t len;
        bson_iter_document(&value, &len, &bytes);
        ASSERT(bson_init_static(&document, bytes, len));
        copy_document(after, &document);
    }
    bson_destroy(&reply);
    bson_destroy(&command);
    return good;
}
