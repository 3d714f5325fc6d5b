#include "store/mongo/wire/page.h"

static bool see_id(void *context, const bson_t *document)
{
    struct mongo_page *p = context;
    bson_iter_t id;
    if (!bson_iter_init_find(&id, document, "_id") || !BSON_ITER_HOLDS_UTF8(&id))
        return true;
    struct text *to = p->count++ == 0 ? &p->first : &p->last;
    text_clear(&p->last);
    text_puts(to, bson_iter_utf8(&id, NULL));
    if (p->count == 1)
        text_puts(&p->last, p->first.ptr);
    return true;
}

static void write_filter(const char *from_word, const char *from, const char *to_word, const char *to,
                         const bson_t *guard, bson_t *filter)
{
    bson_t of;
    bson_init(filter);
    BSON_APPEND_DOCUMENT_BEGIN(filter, "_id", &of);
    BSON_APPEND_UTF8(&of, from_word, from);
    BSON_APPEND_UTF8(&of, to_word, to);
    bson_append_document_end(filter, &of);
    if (guard != NULL)
        bson_concat(filter, guard);
}

bool mongo_page_find(struct mongo_client *c, const struct mongo_range *range, int64_t most,
                     struct mongo_page *p, struct err *e)
{
    bson_t filter;
    bson_t *options = BCON_NEW("projection", "{", "_id", BCON_BOOL(true), "}", "sort", "{", "_id",
                               BCON_INT32(1), "}", "limit", BCON_INT64(most));
    write_filter(range->behind ? "$gt" : "$gte", range->from, "$lt", range->to, range->guard, &filter);
    text_clear(&p->first);
    text_clear(&p->last);
    p->count = 0;
    bool good = mongo_find(c, range->collection, &filter, options, see_id, p, e);
    bson_destroy(&filter);
    bson_destroy(options);
    return good;
}

void mongo_page_filter(const struct mongo_page *p, const bson_t *guard, bson_t *filter)
{
    write_filter("$gte", p->first.ptr, "$lte", p->last.ptr, guard, filter);
}

bool mongo_page_delete(struct mongo_client *c, const struct mongo_range *range, const struct mongo_page *p,
                       int64_t *count, struct err *e)
{
    bson_t filter;
    mongo_page_filter(p, range->guard, &filter);
    bson_t *command = BCON_NEW("delete", BCON_UTF8(range->collection), "deletes", "[", "{", "q",
                               BCON_DOCUMENT(&filter), "limit", BCON_INT32(0), "}", "]");
    bool good = mongo_write_many(c, command, range->collection, count, e);
    bson_destroy(command);
    bson_destroy(&filter);
    return good;
}

void mongo_page_fini(struct mongo_page *p)
{
    text_fini(&p->first);
    text_fini(&p->last);
}
