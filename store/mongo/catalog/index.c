/* The indexes of the documents of a report:
 *
 *   { metadata.path: 1, metadata.date: 1 }   one series over a range of dates; equality before range
 *   { waiting: 1 }                           of R.top, what is to be ranked
 *
 * Documents of all series are found by `_id`, which begins with the time. An index is made at start where it
 * is missing, unless store.indexes says no. Another one of the same name is somebody's choice: told, and left
 * alone. */
#include "base/log.h"
#include "store/mongo/catalog/catalog.h"

#include <stdio.h>

#define CODE_OPTIONS_CONFLICT  85
#define CODE_KEY_SPEC_CONFLICT 86

bool mongo_create_index(struct mongo_store *m, const struct mongo_index_wanted *wanted,
                        enum mongo_index *state, struct err *e)
{
    const char *database = wanted->database != NULL ? wanted->database : mongo_client_database(m->client);
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
    bool good = mongo_write_in(m->client, database, &command, NULL, &reply, e);
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

static bool create(void *context, const struct mongo_collection *c, struct err *e)
{
    struct mongo_store *m = context;
    char quoted[LOG_QUOTE_BYTES];
    enum mongo_index state = INDEX_IS_THERE;
    bson_t key;
    const char *name = mongo_index_key(m, c, &key);
    const struct mongo_index_wanted wanted = {.collection = c->name, .name = name, .key = &key};
    bool good = name == NULL || mongo_create_index(m, &wanted, &state, e);
    if (good && state == INDEX_DIFFERS)
        log_warn("index_differs", "collection=%s error=%s next=\"left as it is\"", c->name,
                 log_quote(e->text, quoted));
    bson_destroy(&key);
    return good;
}

bool mongo_create_indexes(struct mongo_store *m, struct err *e)
{
    return mongo_each_collection(m, create, m, e);
}
