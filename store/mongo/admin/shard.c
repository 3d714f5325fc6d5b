/* Shard keys; mongo/admin/admin.h says why. Nothing here was tested with a cluster: tests check what is
 * printed, not what a mongos does with it. */
#include "store/mongo/admin/run.h"

#include "store/mongo/admin/admin.h"
#include "store/mongo/catalog/catalog.h"
#include "store/mongo/raw/place.h"
#include "store/mongo/wire/command.h"

static bool has_host_time(const struct mongo_collection *c)
{
    return raw_has_field(c->raw, FIELD_HOST) && raw_has_field(c->raw, RAW_TIME);
}

static bool shard_raw(const struct mongo_collection *c, bson_t *key, const char **why)
{
    bson_init(key);
    if (c->raw->growth == RAW_CAPPED) {
        *why = "not sharded: a capped collection cannot be";
        return false;
    }
    if (has_host_time(c)) {
        BSON_APPEND_INT32(key, "host", 1);
        BSON_APPEND_INT32(key, "time", 1);
        return true;
    }
    *why = "without host and time, only a hash spreads new events";
    BSON_APPEND_UTF8(key, "_id", "hashed");
    return true;
}

/* The shard key of a collection. False: it is not sharded. Sets *why in any case. */
static bool shard_key(const struct mongo_store *m, const struct mongo_collection *c, bson_t *key,
                      const char **why)
{
    static const char *const reasons[] = {
        [HOLDS_DOCUMENTS] = "a chart of one series asks one shard; a new day goes to all, as series do",
        [HOLDS_SERIES] = "each is found by its _id, which grows with no clock",
        [HOLDS_TOP] = "not sharded: a document for each hour, day and month",
        [HOLDS_BATCHES] = "written, and soon deleted: only a hash spreads what is there for a second",
        [HOLDS_BOOKS] = "not sharded: a small document for each partition of a source",
        [HOLDS_LEDGER] =
            "not sharded: one document for all, and a seat for each writer, which are read together",
        [HOLDS_JOBS] = "not sharded: a document for each report",
        [HOLDS_REPORTS] = "not sharded: a few documents, read at start",
        [HOLDS_RAW] = "one client's events in a range of time ask one shard; no chunk takes all that is new"};
    struct mongo_index_of index;
    bool is_of_report = c->holds == HOLDS_DOCUMENTS || c->holds == HOLDS_SERIES;
    *why = reasons[c->holds];
    if (c->holds == HOLDS_RAW)
        return shard_raw(c, key, why);
    (void)mongo_index_at(m, c, 0, &index, key);
    if (c->holds == HOLDS_TOP)
        return false;
    if (is_of_report && m->reports[c->report].dimension_count == 0) {
        *why = "not sharded: one series, so one document at a time, which is on one shard by any key";
        return false;
    }
    if (c->holds == HOLDS_SERIES)
        BSON_APPEND_INT32(key, "_id", 1);
    else if (c->holds == HOLDS_BATCHES)
        BSON_APPEND_UTF8(key, "_id", "hashed");
    return !bson_empty(key);
}

/* The index that the shard key needs beside that of _id; NULL: none. It is made first, or else the server
 * makes it under its own name. */
static const char *shard_index(const struct mongo_collection *c)
{
    if (c->holds == HOLDS_RAW)
        return has_host_time(c) ? MONGO_RAW_HOST_TIME : "_id_hashed";
    return c->holds == HOLDS_DOCUMENTS ? MONGO_INDEX : c->holds == HOLDS_BATCHES ? "_id_hashed" : NULL;
}

enum shard_state { SHARD_MISSING, SHARD_IS_THERE, SHARD_DIFFERS };

struct found_shard {
    const bson_t *key;
    enum shard_state state;
};

static bool see_shard(void *context, const bson_t *document)
{
    struct found_shard *f = context;
    bson_iter_t key;
    if (bson_iter_init_find(&key, document, "key"))
        f->state = mongo_admin_is_key(f->key, &key) ? SHARD_IS_THERE : SHARD_DIFFERS;
    return false;
}

/* `unsplittable` marks a collection that was moved, but not sharded. */
static bool find_shard_key(struct mongo_admin_run *r, const char *name, const bson_t *key,
                           enum shard_state *state, struct err *e)
{
    struct found_shard f = {key, SHARD_MISSING};
    bson_t *command =
        BCON_NEW("find", "collections", "filter", "{", "_id", BCON_UTF8(name), "unsplittable", "{", "$ne",
                 BCON_BOOL(true), "}", "}", "limit", BCON_INT32(1), "singleBatch", BCON_BOOL(true));
    bool good = mongo_list(r->m->client, "config", command, MONGO_BATCH, see_shard, &f, e);
    *state = f.state;
    return good;
}

static bool run_on_admin(struct mongo_admin_run *r, const bson_t *command, struct err *e)
{
    bson_t reply;
    bool good = mongo_read_in(r->m->client, "admin", command, &reply, e);
    bson_destroy(&reply);
    return good;
}

static bool make_shard_key(struct mongo_admin_run *r, const struct mongo_collection *c, const char *name,
                           const bson_t *key, enum shard_state state, struct err *e)
{
    const struct mongo_index_wanted index = {.collection = c->name, .name = shard_index(c), .key = key};
    enum mongo_index made;
    bool good = true;
    if (state == SHARD_MISSING) {
        bson_t *command = BCON_NEW("shardCollection", BCON_UTF8(name), "key", BCON_DOCUMENT(key));
        good = (index.name == NULL || mongo_create_index(r->m->client, &index, &made, e)) &&
               run_on_admin(r, command, e);
        bson_destroy(command);
    }
    if (good)
        text_printf(r->out, "%s: %s\n", c->name,
                    state == SHARD_MISSING    ? "was sharded"
                    : state == SHARD_IS_THERE ? "is sharded"
                                              : "has another shard key, which is left alone");
    return good;
}

static void print_shard_key(struct mongo_admin_run *r, const struct mongo_collection *c, const char *name,
                            const bson_t *key, enum shard_state state, const char *why)
{
    const char *comment = state == SHARD_DIFFERS ? "// " : "";
    text_printf(r->out, "\n// %s: %s%s\n", c->name, why,
                !r->is_sharded            ? ""
                : state == SHARD_MISSING  ? "; is not sharded yet"
                : state == SHARD_IS_THERE ? "; is sharded"
                                          : "; has another shard key, which is left alone");
    if (shard_index(c) != NULL) {
        text_puts(r->out, comment);
        mongo_admin_create_index(r, c, shard_index(c), key, 0);
    }
    text_printf(r->out, "%ssh.shardCollection(", comment);
    text_json(r->out, slice_text(name));
    text_puts(r->out, ", ");
    mongo_admin_json(r->out, key);
    text_puts(r->out, ")\n");
}

bool mongo_admin_shard(struct mongo_admin_run *r, const struct mongo_collection *c, struct err *e)
{
    enum shard_state state = SHARD_MISSING;
    struct text name = {0};
    const char *why;
    bson_t key;
    bool good = true;
    text_printf(&name, "%s.%s", mongo_client_database(r->m->client), c->name);
    if (!shard_key(r->m, c, &key, &why)) {
        text_printf(r->out, "%s%s: %s\n", r->task->apply ? "" : "\n// ", c->name, why);
    } else {
        good = !r->is_sharded || find_shard_key(r, name.ptr, &key, &state, e);
        if (good && r->task->apply)
            good = make_shard_key(r, c, name.ptr, &key, state, e);
        else if (good)
            print_shard_key(r, c, name.ptr, &key, state, why);
    }
    bson_destroy(&key);
    text_fini(&name);
    return good;
}

/* Servers before 6.0 require this; later ones accept it. */
static bool make_database(struct mongo_admin_run *r, const char *database, struct err *e)
{
    bson_t *command = BCON_NEW("enableSharding", BCON_UTF8(database));
    bool good = run_on_admin(r, command, e);
    if (!good && !r->is_sharded) {
        err_prefix(e, "there is no sharded cluster; store.url must name a mongos");
        e->code = EX_UNAVAILABLE;
    }
    bson_destroy(command);
    return good;
}

bool mongo_admin_enable_sharding(struct mongo_admin_run *r, struct err *e)
{
    const char *database = mongo_client_database(r->m->client);
    if (r->task->apply)
        return make_database(r, database, e);
    if (r->is_there && !r->is_sharded)
        text_puts(r->out, "// The server there is no mongos: it cannot shard\n");
    text_puts(r->out, "\nsh.enableSharding(");
    text_json(r->out, slice_text(database));
    text_puts(r->out, ")\n");
    return true;
}
