#include "store/mongo/wire/command.h"

#include "store/mongo/wire/field.h"

#define CODE_OPTIONS_CONFLICT  85
#define CODE_KEY_SPEC_CONFLICT 86

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
    return mongo_read_part(c, collection, id, NULL, document, e);
}

bool mongo_read_part(struct mongo_client *c, const char *collection, const char *id, bson_t *options,
                     bson_t *document, struct err *e)
{
    bson_init(document);
    return mongo_look(c, collection, BCON_NEW("_id", BCON_UTF8(id)), options, copy_document, document, e);
}

bool mongo_modify(struct mongo_client *c, const char *collection, bson_t *query, bson_t *update, bool *found,
                  bson_t *after, struct err *e)
{
    bson_t reply, document;
    bson_init(after);
    bson_t *command = BCON_NEW("findAndModify", BCON_UTF8(collection), "query", BCON_DOCUMENT(query),
                               "update", BCON_DOCUMENT(update), "new", BCON_BOOL(true));
    bool good = mongo_write(c, command, &reply, e);
    *found = good && mongo_find_document(&reply, "value", &document);
    if (*found)
        copy_document(after, &document);
    bson_destroy(&reply);
    bson_destroy(command);
    bson_destroy(query);
    bson_destroy(update);
    return good;
}

bool mongo_look(struct mongo_client *c, const char *collection, bson_t *filter, bson_t *options,
                mongo_document_fn *fn, void *context, struct err *e)
{
    const bson_t all = BSON_INITIALIZER;
    bool good = mongo_find(c, collection, filter != NULL ? filter : &all, options, fn, context, e);
    bson_destroy(filter);
    bson_destroy(options);
    return good;
}

bool mongo_change(struct mongo_client *c, const char *collection, bson_t *filter, bson_t *update, bool upsert,
                  bool *matched, struct err *e)
{
    bool unasked;
    bool good =
        mongo_update_one(c, collection, filter, update, upsert, matched != NULL ? matched : &unasked, e);
    bson_destroy(filter);
    bson_destroy(update);
    return good;
}

bool mongo_change_all(struct mongo_client *c, const char *collection, bson_t *filter, bson_t *update,
                      int64_t *count, struct err *e)
{
    bson_t *command =
        BCON_NEW("update", BCON_UTF8(collection), "updates", "[", "{", "q", BCON_DOCUMENT(filter), "u",
                 BCON_DOCUMENT(update), "multi", BCON_BOOL(true), "}", "]");
    bson_destroy(filter);
    bson_destroy(update);
    return mongo_write_many(c, command, collection, count, e);
}

bool mongo_delete_all(struct mongo_client *c, const char *collection, bson_t *filter, int64_t *count,
                      struct err *e)
{
    bson_t *command = BCON_NEW("delete", BCON_UTF8(collection), "deletes", "[", "{", "q",
                               BCON_DOCUMENT(filter), "limit", BCON_INT32(0), "}", "]");
    bson_destroy(filter);
    return mongo_write_many(c, command, collection, count, e);
}

bool mongo_ask(struct mongo_client *c, bson_t *command, bson_t *reply, struct err *e)
{
    bool good = mongo_read(c, command, reply, e);
    bson_destroy(command);
    return good;
}

bool mongo_count(struct mongo_client *c, const char *collection, bson_t *filter, int64_t *count,
                 struct err *e)
{
    bson_t reply, *command = BCON_NEW("count", BCON_UTF8(collection));
    if (filter != NULL)
        BSON_APPEND_DOCUMENT(command, "query", filter);
    bson_destroy(filter);
    bool good = mongo_ask(c, command, &reply, e);
    *count = good ? mongo_number_at(&reply, "n", 0) : 0;
    bson_destroy(&reply);
    return good;
}

bool mongo_each_document(const bson_t *reply, const char *list, mongo_document_fn *fn, void *context)
{
    bson_iter_t at;
    bson_t document;
    bool good = mongo_begin_members(reply, list, &at);
    while (good && bson_iter_next(&at)) {
        good = mongo_take_document(&at, &document);
        if (good && !fn(context, &document))
            break;
    }
    return good;
}

bool mongo_list(struct mongo_client *c, const char *database, bson_t *command, const char *list,
                mongo_document_fn *fn, void *context, struct err *e)
{
    bson_t reply;
    bool good = mongo_read_in(c, database, command, &reply, e);
    if (good && mongo_number_at(&reply, "cursor.id", 0) != 0)
        good = err_set(e, EX_IOERR, "%s: the server does not list everything at once", mongo_client_name(c));
    else if (good)
        good = mongo_each_document(&reply, list, fn, context) ||
               err_set(e, EX_IOERR, "%s: the server's reply has no list of documents as %s",
                       mongo_client_name(c), list);
    else
        good = mongo_number_at(&reply, "code", 0) == MONGO_NAMESPACE_NOT_FOUND;
    bson_destroy(&reply);
    bson_destroy(command);
    return good;
}

bool mongo_run(struct mongo_client *c, const char *database, bson_t *command, int64_t harmless, struct err *e)
{
    bson_t reply;
    bool good = mongo_write_in(c, database, command, NULL, &reply, e) ||
                (harmless != 0 && mongo_number_at(&reply, "code", 0) == harmless);
    bson_destroy(&reply);
    bson_destroy(command);
    return good;
}

bool mongo_create_index(struct mongo_client *c, const struct mongo_index_wanted *wanted,
                        enum mongo_index *state, struct err *e)
{
    bson_t *index = BCON_NEW("key", BCON_DOCUMENT(wanted->key), "name", BCON_UTF8(wanted->name)), reply;
    if (wanted->ttl_s > 0)
        BSON_APPEND_INT64(index, "expireAfterSeconds", wanted->ttl_s);
    bson_t *command =
        BCON_NEW("createIndexes", BCON_UTF8(wanted->collection), "indexes", "[", BCON_DOCUMENT(index), "]");
    bool good = mongo_write_in(c, wanted->database, command, NULL, &reply, e);
    const int64_t code = good ? 0 : mongo_number_at(&reply, "code", 0);
    bson_destroy(&reply);
    bson_destroy(command);
    bson_destroy(index);
    const bool differs = code == CODE_OPTIONS_CONFLICT || code == CODE_KEY_SPEC_CONFLICT;
    *state = differs ? INDEX_DIFFERS : INDEX_IS_THERE;
    return good || differs;
}
