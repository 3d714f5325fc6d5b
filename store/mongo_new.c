#include "store/mongo_new.h"

#include "base/check.h"
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

struct member {
    const char *path;
    bson_iter_t value;
};

struct members {
    struct member *list;
    size_t count, capacity;
};

static void collect(struct members *m, bson_iter_t *of)
{
    while (bson_iter_next(of)) {
        m->list = xgrow(m->list, &m->capacity, m->count + 1, sizeof *m->list);
        m->list[m->count++] = (struct member){bson_iter_key(of), *of};
    }
}

/* Whatever the operator: of nothing, each makes its operand. */
static void collect_change(struct members *m, const bson_t *update)
{
    bson_iter_t it, operator, operand;
    ASSERT(bson_iter_init_find(&it, update, "u") && bson_iter_recurse(&it, &operator));
    while (bson_iter_next(&operator)) {
        ASSERT(bson_iter_recurse(&operator, & operand));
        collect(m, &operand);
    }
}

/* All but the guard, and `_id`, which goes into the document at once. */
static void collect_filter(struct members *m, const bson_t *update, bson_t *document)
{
    bson_iter_t it, member;
    ASSERT(bson_iter_init_find(&it, update, "f") && bson_iter_recurse(&it, &member));
    while (bson_iter_next(&member)) {
        const char *name = bson_iter_key(&member);
        if (strcmp(name, "_id") == 0) {
            bson_append_iter(document, name, -1, &member);
        } else if (strncmp(name, "applied.", strlen("applied.")) != 0) {
            m->list = xgrow(m->list, &m->capacity, m->count + 1, sizeof *m->list);
            m->list[m->count++] = (struct member){name, member};
        }
    }
}

static int compare_members(const void *a, const void *b)
{
    return strverscmp(((const struct member *)a)->path, ((const struct member *)b)->path);
}

/* `count` members whose paths are alike up to `stem`, sorted. */
static void nest(bson_t *to, const struct member *members, size_t count, size_t stem)
{
    for (size_t i = 0, end; i < count; i = end) {
        const char *name = members[i].path + stem;
        size_t len = strcspn(name, ".");
        bson_t inner;
        end = i + 1;
        if (name[len] == '\0') {
            bson_append_iter(to, name, (int)len, &members[i].value);
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
