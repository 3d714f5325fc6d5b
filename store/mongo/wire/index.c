#include "store/mongo/wire/index.h"

#include "store/mongo/wire/field.h"

#define CODE_OPTIONS_CONFLICT  85
#define CODE_KEY_SPEC_CONFLICT 86

bool mongo_create_index(struct mongo_client *c, const struct mongo_index_wanted *wanted,
                        enum mongo_index *state, struct err *e)
{
    const char *database = wanted->database != NULL ? wanted->database : mongo_client_database(c);
    bson_t *index = BCON_NEW("key", BCON_DOCUMENT(wanted->key), "name", BCON_UTF8(wanted->name)), reply;
    if (wanted->ttl_s > 0)
        BSON_APPEND_INT64(index, "expireAfterSeconds", wanted->ttl_s);
    bson_t *command =
        BCON_NEW("createIndexes", BCON_UTF8(wanted->collection), "indexes", "[", BCON_DOCUMENT(index), "]");
    bool good = mongo_write_in(c, database, command, NULL, &reply, e);
    const int64_t code = good ? 0 : mongo_number_at(&reply, "code", 0);
    bson_destroy(&reply);
    bson_destroy(command);
    bson_destroy(index);
    const bool differs = code == CODE_OPTIONS_CONFLICT || code == CODE_KEY_SPEC_CONFLICT;
    *state = differs ? INDEX_DIFFERS : INDEX_IS_THERE;
    return good || differs;
}
