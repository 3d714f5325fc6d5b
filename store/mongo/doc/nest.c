#include "store/mongo/doc/nest.h"

#include "base/check.h"
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

void mongo_leaves_add(struct mongo_leaves *l, const uint8_t *data, uint32_t len, const bson_iter_t *member)
{
    l->list = xgrow(l->list, &l->capacity, l->count + 1, sizeof *l->list);
    l->list[l->count++] = (struct mongo_leaf){
        bson_iter_key(member), data, len, bson_iter_offset((bson_iter_t *)member), bson_iter_key_len(member)};
}

static int compare_leaves(const void *a, const void *b)
{
    return strverscmp(((const struct mongo_leaf *)a)->path, ((const struct mongo_leaf *)b)->path);
}

static void append_leaf(bson_t *to, const char *name, size_t name_len, const struct mongo_leaf *leaf)
{
    bson_iter_t it;
    ASSERT(bson_iter_init_from_data_at_offset(&it, leaf->data, leaf->len, leaf->offset, leaf->key_len));
    bson_append_iter(to, name, (int)name_len, &it);
}

/* Appends `count` leaves whose paths are the same up to `stem`. */
static void nest(bson_t *to, const struct mongo_leaf *leaves, size_t count, size_t stem)
{
    for (size_t i = 0, end; i < count; i = end) {
        const char *name = leaves[i].path + stem;
        size_t len = strcspn(name, ".");
        bson_t inner;
        end = i + 1;
        if (name[len] == '\0') {
            append_leaf(to, name, len, &leaves[i]);
            continue;
        }
        while (end < count && strncmp(leaves[end].path + stem, name, len + 1) == 0)
            end++;
        bson_append_document_begin(to, name, (int)len, &inner);
        nest(&inner, &leaves[i], end - i, stem + len + 1);
        bson_append_document_end(to, &inner);
    }
}

void mongo_leaves_nest(struct mongo_leaves *l, bson_t *to)
{
    qsort(l->list, l->count, sizeof *l->list, compare_leaves);
    nest(to, l->list, l->count, 0);
}

void mongo_leaves_fini(struct mongo_leaves *l)
{
    free(l->list);
    *l = (struct mongo_leaves){0};
}

void mongo_append_nested(bson_t *to, const char *name, const bson_t *flat)
{
    struct mongo_leaves l = {0};
    bson_iter_t at;
    bson_t inner;
    ASSERT(bson_iter_init(&at, flat));
    while (bson_iter_next(&at))
        mongo_leaves_add(&l, bson_get_data(flat), flat->len, &at);
    ASSERT(l.count > 0);
    if (strcmp(l.list[0].path, name) == 0) {
        append_leaf(to, name, strlen(name), &l.list[0]);
    } else {
        bson_append_document_begin(to, name, -1, &inner);
        nest(&inner, l.list, l.count, strlen(name) + 1);
        bson_append_document_end(to, &inner);
    }
    mongo_leaves_fini(&l);
}
