/* Indexes: which there are, and which are missing. */
#include "base/check.h"
#include "store/mongo_admin_internal.h"

#define CODE_NAMESPACE_NOT_FOUND 26

void mongo_admin_create_index(struct mongo_admin_run *r, const struct mongo_collection *c, const char *name,
                              const bson_t *key)
{
    mongo_admin_database(r);
    text_puts(r->out, ".getCollection(");
    text_json(r->out, slice_text(c->name));
    text_puts(r->out, ").createIndex(");
    mongo_admin_json(r->out, key);
    text_printf(r->out, ", { \"name\" : \"%s\" })\n", name);
}

struct found_index {
    const char *name; /* of the one that is wanted */
    enum mongo_index state;
    struct text others; /* what else is to be said, a comment each */
};

/* Has it every document, and no rule for them? Servers tell much else of an index. */
static bool is_plain(const bson_iter_t *index)
{
    static const char *const others[] = {"unique",    "sparse", "partialFilterExpression",
                                         "collation", "hidden", "expireAfterSeconds"};
    bson_iter_t at;
    for (size_t i = 0; i < COUNT_OF(others); i++) {
        if (bson_iter_recurse(index, &at) && bson_iter_find(&at, others[i]) &&
            !(BSON_ITER_HOLDS_BOOL(&at) && !bson_iter_bool(&at)))
            return false;
    }
    return true;
}

static void see_index(const bson_iter_t *index, const bson_t *key, struct found_index *f)
{
    bson_iter_t name, found;
    bson_t whole;
    const uint8_t *bytes;
    uint32_t len;
    if (!BSON_ITER_HOLDS_DOCUMENT(index) || !bson_iter_recurse(index, &found) ||
        !bson_iter_find(&found, "key") || !bson_iter_recurse(index, &name) ||
        !bson_iter_find(&name, "name") || !BSON_ITER_HOLDS_UTF8(&name))
        return;
    bool has_name = strcmp(bson_iter_utf8(&name, NULL), f->name) == 0;
    bool is_of_id = strcmp(bson_iter_utf8(&name, NULL), "_id_") == 0;
    bool is_same = mongo_admin_is_key(key, &found) && is_plain(index);
    if (is_same)
        f->state = INDEX_IS_THERE;
    else if (has_name)
        f->state = INDEX_DIFFERS;
    if (is_of_id || (is_same && has_name))
        return;
    bson_iter_document(index, &len, &bytes);
    ASSERT(bson_init_static(&whole, bytes, len));
    text_puts(&f->others, "// ");
    text_puts(&f->others, has_name  ? "another of this name: "
                          : is_same ? "under this name: "
                                    : "there is also: ");
    mongo_admin_json(&f->others, &whole);
    text_putc(&f->others, '\n');
}

static bool find_index(struct mongo_admin_run *r, const struct mongo_collection *c, const bson_t *key,
                       struct found_index *f, struct err *e)
{
    bson_t reply;
    bson_t *command = BCON_NEW("listIndexes", BCON_UTF8(c->name));
    bson_iter_t batch, at;
    bool good = mongo_read(r->m->client, command, &reply, e);
    if (good && mongo_find_member(&reply, "cursor.firstBatch", &batch) && bson_iter_recurse(&batch, &at)) {
        while (bson_iter_next(&at))
            see_index(&at, key, f);
    }
    good = good || mongo_number_at(&reply, "code", 0) == CODE_NAMESPACE_NOT_FOUND;
    bson_destroy(&reply);
    bson_destroy(command);
    return good;
}

static bool make_index(struct mongo_admin_run *r, const struct mongo_collection *c, const bson_t *key,
                       struct found_index *f, struct err *e)
{
    bool was_missing = f->state == INDEX_MISSING;
    const struct mongo_index_wanted wanted = {.collection = c->name, .name = f->name, .key = key};
    if (was_missing && !mongo_create_index(r->m, &wanted, &f->state, e))
        return false;
    text_printf(r->out, "%s: %s %s\n", c->name, f->name,
                f->state == INDEX_DIFFERS ? "differs, and is left as it is"
                : was_missing             ? "was made"
                                          : "is there");
    text_add(r->out, f->others.ptr, f->others.len);
    return true;
}

static void print_index(struct mongo_admin_run *r, const struct mongo_collection *c, const bson_t *key,
                        const struct found_index *f)
{
    text_printf(r->out, "\n// %s: %s%s\n", c->name,
                c->holds == HOLDS_TOP ? "what is to be ranked"
                                      : "the history of one series, equality before range",
                !r->is_there                 ? ""
                : f->state == INDEX_IS_THERE ? "; is there"
                : f->state == INDEX_MISSING  ? "; is missing"
                                             : "; another one is there, which is left as it is");
    text_add(r->out, f->others.ptr, f->others.len);
    text_puts(r->out, f->state == INDEX_DIFFERS ? "// " : "");
    mongo_admin_create_index(r, c, f->name, key);
}

bool mongo_admin_index(struct mongo_admin_run *r, const struct mongo_collection *c, struct err *e)
{
    struct found_index f = {.state = INDEX_MISSING};
    bson_t key;
    bool good = true;
    f.name = mongo_index_key(r->m, c, &key);
    if (f.name != NULL) {
        good = !r->is_there || find_index(r, c, &key, &f, e);
        if (good && r->task->apply)
            good = make_index(r, c, &key, &f, e);
        else if (good)
            print_index(r, c, &key, &f);
    }
    bson_destroy(&key);
    text_fini(&f.others);
    return good;
}
