#include "store/mongo/admin/admin.h"

#include "store/mongo/admin/run.h"
#include "store/mongo/catalog/catalog.h"
#include "store/mongo/catalog/keys.h"
#include "store/mongo/catalog/validator.h"
#include "store/mongo/doc/version_stamps.h"
#include "store/mongo/ledger/copies.h"
#include "store/mongo/ledger/ledger.h"
#include "store/mongo/raw/place.h"
#include "store/mongo/wire/command.h"
#include "store/mongo/wire/field.h"
#include "store/mongo/writer/begin.h"

#include <inttypes.h>

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

/* Notes a failure, which mongo_admin() returns at its end. If the server is gone, the walk ends. */
static bool note_failure(struct mongo_admin_run *r, const struct mongo_collection *c, const struct err *e)
{
    text_printf(r->out, "// %s: failed\n", c->name);
    if (!r->has_failed)
        r->failure = *e;
    r->has_failed = true;
    return !e->retryable;
}

static bool see_collection(void *context, const struct mongo_collection *c, struct err *e)
{
    struct mongo_admin_run *r = context;
    bool good = r->task->what == ADMIN_INDEXES ? mongo_admin_index(r, c, e)
                : r->task->what == ADMIN_SHARD ? mongo_admin_shard(r, c, e)
                                               : mongo_admin_validate(r, c, e);
    return good || note_failure(r, c, e);
}

static bool ask_server(struct mongo_admin_run *r, struct err *e)
{
    bson_t reply;
    r->is_there = mongo_ask(r->m->client, BCON_NEW("hello", BCON_INT32(1)), &reply, e);
    r->is_sharded = r->is_there && mongo_is_router(&reply);
    bson_destroy(&reply);
    return r->is_there || (!r->task->apply && e->retryable);
}

/* Add the reports, with the keys that they have in the database. */
static bool add_reports(struct mongo_admin_run *r, struct err *e)
{
    bool good = true;
    for (size_t i = 0; good && i < r->task->report_count; i++) {
        const struct report *report = &r->task->reports[i];
        struct mongo_found_report found = {.count = 0};
        good = (!r->is_there || mongo_find_report(r->m, report->name, report->generation, &found, e)) &&
               mongo_add_report(r->m, report, found.count > 0 ? found.key : NULL, false,
                                found.count == 0 || found.is_decimal, e);
    }
    return good;
}

/* Reads what validators there are, and which ones the server may have. */
static bool read_options(struct mongo_admin_run *r, struct err *e)
{
    const char *loses;
    bson_destroy(&r->options);
    r->has_options = mongo_list_options(r->m, NULL, &r->options, e);
    return (r->has_options || !e->retryable) && mongo_settle_validation(r->m, &r->validation, &loses, e);
}

static bool run(struct mongo_admin_run *r, struct err *e)
{
    r->m->with_weeks = r->task->weeks;
    r->m->with_ttl = r->task->ttl;
    if (r->is_there && !r->task->weeks && !mongo_find_weeks(r->m, &r->m->with_weeks, e))
        return false;
    if (!r->task->apply) {
        text_printf(r->out, "// For a MongoDB shell at %s\n", mongo_client_name(r->m->client));
        if (!r->is_there)
            text_printf(r->out, "// As for a new database, since the server does not answer: %s\n", e->text);
    }
    if (r->task->what == ADMIN_SHARD && !mongo_admin_enable_sharding(r, e))
        return false;
    if (r->task->what == ADMIN_VALIDATOR && r->is_there && !read_options(r, e))
        return false;
    (void)!mongo_each_collection(r->m, see_collection, r, e);
    if (r->has_failed)
        *e = r->failure;
    return !r->has_failed;
}

bool mongo_admin(const char *url, const struct mongo_task *task, struct text *out, struct err *e)
{
    struct mongo_admin_run r = {.m = mongo_new(url, true, 0, e),
                                .task = task,
                                .out = out,
                                .validation = task->validation,
                                .options = BSON_INITIALIZER};
    if (r.m == NULL)
        return false;
    bool good = ask_server(&r, e) && add_reports(&r, e);
    mongo_raw_init(r.m, task->raws, task->raw_count);
    good = good && run(&r, e);
    bson_destroy(&r.options);
    mongo_free(r.m);
    return good;
}

static bool upgrade(struct mongo_store *m, bool dry, struct text *said, struct err *e)
{
    bson_t ledger;
    bool good = mongo_read_ledger(m, &ledger, e) && mongo_check_opens(m, &ledger, e);
    int64_t format = mongo_number_at(&ledger, "v", 1);
    if (good && bson_empty(&ledger))
        good = err_set(e, EX_NOINPUT, "%s contains no store of tallyd", mongo_client_name(m->client));
    else if (good && format >= MONGO_FORMAT)
        text_puts(said, "the database has the newest format: nothing to do\n");
    else if (good)
        text_printf(said, "format %" PRId64 " %s format %d; counts and positions stay as is%s\n", format,
                    dry ? "would become" : "became", MONGO_FORMAT,
                    dry ? "; stop all older tallyds and backups first" : "");
    bson_destroy(&ledger);
    return good && (dry || format >= MONGO_FORMAT || mongo_begin_ledger(m, e));
}

bool mongo_upgrade(const char *url, bool dry, struct text *said, struct err *e)
{
    struct mongo_store *m = mongo_new(url, true, 0, e);
    bool good = m != NULL && upgrade(m, dry, said, e);
    if (m != NULL)
        mongo_free(m);
    return good;
}
