#include "store/mongo/wire/index.h"

#define CODE_OPTIONS_CONFLICT  85
#define CODE_KEY_SPEC_CONFLICT 86

bool mongo_create_index(struct mongo_client *c, const struct mongo_index_wanted *wanted,
                        enum mongo_index *state, struct err *e)
{
    const char *database = wanted->database != NULL ? wanted->database : mongo_client_database(c);
    bson_t command, indexes, one, reply;
    bson_iter_t code;
    bson_init(&command);
    BSON_APPEND_UTF8(&command, "createIndexes", wanted->collection);
    BSON_APPEND_ARRAY_BEGIN(&command, "indexes", &indexes);
    BSON_APPEND_DOCUMENT_BEGIN(&indexes, "0", &one);
    BSON_APPEND_DOCUMENT(&one, "key", wanted->key);
    BSON_APPEND_UTF8(&one, "name", wanted->name);
    if (wanted->ttl_s > 0)
        BSON_APPEND_INT64(&one, "expireAfterSeconds", wanted->ttl_s);
    bson_append_document_end(&indexes, &one);
    bson_append_array_end(&command, &indexes);
    bool good = mongo_write_in(c, database, &command, NULL, &reply, e);
    *state = INDEX_IS_THERE;
    if (!good && bson_iter_init_find(&code, &reply, "code") &&
        (bson_iter_as_int64(&code) == CODE_OPTIONS_CONFLICT ||
         bson_iter_as_int64(&code) == CODE_KEY_SPEC_CONFLICT)) {
        *state = INDEX_DIFFERS;
        good = true;
    }
    bson_destroy(&reply);
    bson_destroy(&command);
    return good;
}
