/* Lists existing indexes, and prints or makes missing ones. */
#include "store/mongo/admin/run.h"

#include "base/check.h"
#include "store/mongo/admin/admin.h"
#include "store/mongo/catalog/catalog.h"
#include "store/mongo/job/ttl.h"
#include "store/mongo/wire/command.h"
#include "store/mongo/wire/field.h"

#include <inttypes.h>

#define OURS "tallyd_" /* prefix of the catalog's index names */

void mongo_admin_create_index(struct mongo_admin_run *r, const struct mongo_collection *c, const char *name,
                              const bson_t *key, int64_t ttl_s)
{
    mongo_admin_database(r);
    text_puts(r->out, ".getCollection(");
    text_json(r->out, slice_text(c->name));
    text_puts(r->out, ").createIndex(");
    mongo_admin_json(r->out, key);
    text_printf(r->out, ", { \"name\" : \"%s\"", name);
    if (ttl_s > 0)
        text_printf(r->out, ", \"expireAfterSeconds\" : %" PRId64, ttl_s);
    text_puts(r->out, " })\n");
}

/* An index that is wanted, and what is there of it. */
struct found_index {
    const struct mongo_index_of *wanted;
    const bson_t *key;
    enum mongo_index state;
    struct text others; /* further lines, each a comment of the shell */
};

/* Does the index have every document, without further rules? Servers return many other members of an
 * index. */
static bool is_plain(const bson_t *index, int64_t ttl_s)
{
    static const char *const others[] = {"unique", "sparse", "partialFilterExpression", "collation",
                                         "hidden"};
    bson_iter_t at;
    bool is_plain = mongo_number_at(index, "expireAfterSeconds", 0) == ttl_s &&
                    bson_has_field(index, "expireAfterSeconds") == (ttl_s > 0);
    for (size_t i = 0; i < COUNT_OF(others); i++)
        is_plain = is_plain && (!bson_iter_init_find(&at, index, others[i]) ||
                                (BSON_ITER_HOLDS_BOOL(&at) && !bson_iter_bool(&at)));
    return is_plain;
}

static bool see_index(void *context, const bson_t *index)
{
    struct found_index *f = context;
    bson_iter_t key;
    const char *name = mongo_text_at(index, "name");
    if (name[0] == '\0' || !bson_iter_init_find(&key, index, "key"))
        return true;
    bool has_name = strcmp(name, f->wanted->name) == 0;
    bool is_other = strcmp(name, "_id_") == 0 || (!has_name && strncmp(name, OURS, strlen(OURS)) == 0);
    bool is_same = mongo_admin_is_key(f->key, &key) && is_plain(index, f->wanted->ttl_s);
    if (is_same)
        f->state = INDEX_IS_THERE;
    else if (has_name)
        f->state = INDEX_DIFFERS;
    if (is_other || (is_same && has_name))
        return true;
    text_puts(&f->others, "// ");
    text_puts(&f->others, has_name  ? "another of this name: "
                          : is_same ? "under this name: "
                                    : "there is also: ");
    mongo_admin_json(&f->others, index);
    text_putc(&f->others, '\n');
    return true;
}

static bool make_index(struct mongo_admin_run *r, const struct mongo_collection *c, struct found_index *f,
                       struct err *e)
{
    bool was_missing = f->state == INDEX_MISSING;
    const struct mongo_index_wanted wanted = {
        .collection = c->name, .name = f->wanted->name, .key = f->key, .ttl_s = f->wanted->ttl_s};
    if (was_missing && !mongo_create_index(r->m->client, &wanted, &f->state, e))
        return false;
    text_printf(r->out, "%s: %s %s\n", c->name, f->wanted->name,
                f->state == INDEX_DIFFERS ? "differs, and is left alone"
                : was_missing             ? "was made"
                                          : "is there");
    text_add(r->out, f->others.ptr, f->others.len);
    return true;
}

static void print_index(struct mongo_admin_run *r, const struct mongo_collection *c,
                        const struct found_index *f)
{
    text_printf(r->out, "\n// %s: %s%s\n", c->name, f->wanted->why,
                !r->is_there                 ? ""
                : f->state == INDEX_IS_THERE ? "; is there"
                : f->state == INDEX_MISSING  ? "; is missing"
                                             : "; another one exists, and is left alone");
    text_add(r->out, f->others.ptr, f->others.len);
    text_puts(r->out, f->state == INDEX_DIFFERS ? "// " : "");
    mongo_admin_create_index(r, c, f->wanted->name, f->key, f->wanted->ttl_s);
}

static bool do_index(struct mongo_admin_run *r, const struct mongo_collection *c,
                     const struct mongo_index_of *index, const bson_t *key, struct err *e)
{
    struct found_index f = {.wanted = index, .key = key, .state = INDEX_MISSING};
    bool good = !r->is_there || mongo_list(r->m->client, NULL, BCON_NEW("listIndexes", BCON_UTF8(c->name)),
                                           MONGO_BATCH, see_index, &f, e);
    if (good && r->task->apply)
        good = make_index(r, c, &f, e);
    else if (good)
        print_index(r, c, &f);
    text_fini(&f.others);
    return good;
}

/* Only tells of the TTL index: readers must know of it before it is made (mongo/job/ttl.h). */
static bool say_ttl(struct mongo_admin_run *r, const struct mongo_collection *c, struct err *e)
{
    int64_t ttl_s = mongo_ttl_s(r->m, c->report, c->kind), found_s = -1;
    const char *begin = r->task->apply ? "" : "\n// ";
    if (r->is_there && !mongo_ttl_find(r->m, c->name, &found_s, e))
        return false;
    if (ttl_s > 0)
        text_printf(r->out,
                    "%s%s: " MONGO_INDEX_TTL ", by which the server expires documents after %" PRId64
                    " s, %s\n",
                    begin, c->name, ttl_s,
                    found_s == ttl_s ? "is there"
                    : found_s < 0    ? "is missing: `run` and `import` make it"
                                     : "differs: `run` and `import` replace it");
    else if (found_s >= 0)
        text_printf(r->out, "%s%s: " MONGO_INDEX_TTL " exists, and `run` or `import` will drop it\n", begin,
                    c->name);
    return true;
}

bool mongo_admin_index(struct mongo_admin_run *r, const struct mongo_collection *c, struct err *e)
{
    struct mongo_index_of index;
    bool good = true, more = true;
    if (c->holds == HOLDS_RAW && c->raw->growth == RAW_CAPPED) {
        text_printf(r->out, "%s%s: with its indexes made by `run` and `import`, as a capped collection\n",
                    r->task->apply ? "" : "\n// ", c->name);
        return true;
    }
    for (size_t n = 0; good && more; n++) {
        bson_t key;
        more = mongo_index_at(r->m, c, n, &index, &key);
        good = !more || do_index(r, c, &index, &key, e);
        bson_destroy(&key);
    }
    return good && (c->holds != HOLDS_DOCUMENTS || say_ttl(r, c, e));
}
