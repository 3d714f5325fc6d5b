#include "store/mongo/send/new.h"

#include "base/check.h"
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

/* The place of a value. A bson_iter_t needs an alignment that arrays and sorting do not provide. */
struct member {
    const char *path;
    const uint8_t *data;           /* the document that has the value */
    uint32_t len, offset, key_len; /* of its own key there */
};

struct members {
    struct member *list;
    size_t count, capacity;
};

static void begin_document(const bson_iter_t *at, const uint8_t **data, uint32_t *len, bson_iter_t *it)
{
    ASSERT(BSON_ITER_HOLDS_DOCUMENT(at));
    bson_iter_document(at, len, data);
    ASSERT(bson_iter_init_from_data(it, *data, *len));
}

static void add(struct members *m, const uint8_t *data, uint32_t len, const bson_iter_t *it)
{
    m->list = xgrow(m->list, &m->capacity, m->count + 1, sizeof *m->list);
    m->list[m->count++] = (struct member){bson_iter_key(it), data, len, bson_iter_offset((bson_iter_t *)it),
                                          bson_iter_key_len(it)};
}

/* Collects what $push would make: its $each, which is in order and no longer than its $slice. */
static void add_pushed(struct members *m, const bson_iter_t *operand)
{
    bson_iter_t each;
    const uint8_t *data;
    uint32_t len;
    begin_document(operand, &data, &len, &each);
    ASSERT(bson_iter_find(&each, "$each") && BSON_ITER_HOLDS_ARRAY(&each));
    add(m, data, len, &each);
    m->list[m->count - 1].path = bson_iter_key(operand);
}

/* Collects the operands of all operators: applied to nothing, each operator yields its operand. */
static void collect_change(struct members *m, const bson_t *update)
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
                add_pushed(m, &operand);
            else
                add(m, data, len, &operand);
        }
    }
}

/* Collects the members of the filter, except the guard. `_id` goes into the document at once. */
static void collect_filter(struct members *m, const bson_t *update, bson_t *document)
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
            add(m, data, len, &member);
    }
}

static void append(bson_t *to, const char *name, size_t name_len, const struct member *m)
{
    bson_iter_t it;
    ASSERT(bson_iter_init_from_data_at_offset(&it, m->data, m->len, m->offset, m->key_len));
    bson_append_iter(to, name, (int)name_len, &it);
}

static int compare_members(const void *a, const void *b)
{
    return strverscmp(((const struct member *)a)->path, ((const struct member *)b)->path);
}

/* Appends `count` sorted members whose paths are the same up to `stem`. */
static void nest(bson_t *to, const struct member *members, size_t count, size_t stem)
{
    for (size_t i = 0, end; i < count; i = end) {
        const char *name = members[i].path + stem;
        size_t len = strcspn(name, ".");
        bson_t inner;
        end = i + 1;
        if (name[len] == '\0') {
            append(to, name, len, &members[i]);
            continue;
        }
        while (end < count && strncmp(members[end].path + stem, name, len + 1) == 0)
            end++;
        bson_append_document_begin(to, name, (int)len, &inner);
        nest(&inner, &members[i], end - i, stem + len + 1);
        bson_append_document_end(to, &inner);
    }
}

void mongo_new_document(const bson_t *update, bson_t *document)
{
    struct members m = {0};
    bson_init(document);
    collect_filter(&m, update, document);
    collect_change(&m, update);
    qsort(m.list, m.count, sizeof *m.list, compare_members);
    nest(document, m.list, m.count, 0);
    free(m.list);
}
