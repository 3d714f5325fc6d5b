#include "store/mongo/admin/run.h"

void mongo_admin_json(struct text *out, const bson_t *document)
{
    char *json = bson_as_relaxed_extended_json(document, NULL);
    text_puts(out, json);
    bson_free(json);
}

void mongo_admin_database(struct mongo_admin_run *r)
{
    text_puts(r->out, "db.getSiblingDB(");
    text_json(r->out, slice_text(mongo_client_database(r->m->client)));
    text_putc(r->out, ')');
}

bool mongo_admin_is_key(const bson_t *wanted, const bson_iter_t *found)
{
    bson_iter_t a, b;
    if (!BSON_ITER_HOLDS_DOCUMENT(found) || !bson_iter_init(&a, wanted) || !bson_iter_recurse(found, &b))
        return false;
    while (bson_iter_next(&a)) {
        bool is_text = BSON_ITER_HOLDS_UTF8(&a);
        if (!bson_iter_next(&b) || strcmp(bson_iter_key(&a), bson_iter_key(&b)) != 0 ||
            is_text != BSON_ITER_HOLDS_UTF8(&b) ||
            (is_text ? strcmp(bson_iter_utf8(&a, NULL), bson_iter_utf8(&b, NULL)) != 0
                     : bson_iter_as_int64(&a) != bson_iter_as_int64(&b)))
            return false;
    }
    return !bson_iter_next(&b);
}
