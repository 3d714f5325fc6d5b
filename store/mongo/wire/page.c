#include "store/mongo/wire/page.h"

#include "store/mongo/wire/command.h"

static bool see_id(void *context, const bson_t *document)
{
    struct mongo_page *p = context;
    bson_iter_t id;
    if (!bson_iter_init_find(&id, document, "_id") || !BSON_ITER_HOLDS_UTF8(&id))
        return true;
    if (p->count++ == 0)
        text_puts(&p->first, bson_iter_utf8(&id, NULL));
    text_clear(&p->last);
    text_puts(&p->last, bson_iter_utf8(&id, NULL));
    return true;
}

static void write_filter(const char *from_word, const char *from, const char *to_word, const char *to,
                         const bson_t *guard, bson_t *filter)
{
    bson_init(filter);
    BCON_APPEND(filter, "_id", "{", from_word, BCON_UTF8(from), to_word, BCON_UTF8(to), "}");
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
    return mongo_look(c, range->collection, &filter, options, see_id, p, e);
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
    return mongo_delete_all(c, range->collection, &filter, count, e);
}

void mongo_page_fini(struct mongo_page *p)
{
    text_fini(&p->first);
    text_fini(&p->last);
}
