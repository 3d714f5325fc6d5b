#include "store/mongo/send/new.h"

#include "base/check.h"
#include "store/mongo/doc/nest.h"

#include <string.h>

static void begin_document(const bson_iter_t *at, const uint8_t **data, uint32_t *len, bson_iter_t *it)
{
    ASSERT(BSON_ITER_HOLDS_DOCUMENT(at));
    bson_iter_document(at, len, data);
    ASSERT(bson_iter_init_from_data(it, *data, *len));
}

/* Collects what $push would make: its $each, which is in order and no longer than its $slice. */
static void add_pushed(struct mongo_leaves *l, const bson_iter_t *operand)
{
    bson_iter_t each;
    const uint8_t *data;
    uint32_t len;
    begin_document(operand, &data, &len, &each);
    ASSERT(bson_iter_find(&each, "$each") && BSON_ITER_HOLDS_ARRAY(&each));
    mongo_leaves_add(l, data, len, &each);
    l->list[l->count - 1].path = bson_iter_key(operand);
}

/* Collects the operands of all operators: applied to nothing, each operator yields its operand. */
static void collect_change(struct mongo_leaves *l, const bson_t *update)
{
    bson_iter_t it, operator, operand;
    const uint8_t *data;
    uint32_t len;
    ASSERT(bson_iter_init_find(&it, update, "u") && bson_iter_recurse(&it, &operator));
    while (bson_iter_next(&operator)) {
        if (strcmp(bson_iter_key(&operator), "$unset") == 0)
            continue;
        begin_document(&operator, & data, &len, &operand);
        while (bson_iter_next(&operand)) {
            if (strcmp(bson_iter_key(&operator), "$push") == 0)
                add_pushed(l, &operand);
            else
                mongo_leaves_add(l, data, len, &operand);
        }
    }
}

/* Collects the members of the filter, except the guard. `_id` goes into the document at once. */
static void collect_filter(struct mongo_leaves *l, const bson_t *update, bson_t *document)
{
    bson_iter_t it, member;
    const uint8_t *data;
    uint32_t len;
    ASSERT(bson_iter_init_find(&it, update, "f"));
    begin_document(&it, &data, &len, &member);
    while (bson_iter_next(&member)) {
        const char *name = bson_iter_key(&member);
        if (strcmp(name, "_id") == 0)
            bson_append_iter(document, name, -1, &member);
        else if (strncmp(name, "applied.", strlen("applied.")) != 0)
            mongo_leaves_add(l, data, len, &member);
    }
}

void mongo_new_document(const bson_t *update, bson_t *document)
{
    struct mongo_leaves l = {0};
    bson_init(document);
    collect_filter(&l, update, document);
    collect_change(&l, update);
    mongo_leaves_nest(&l, document);
    mongo_leaves_fini(&l);
}
