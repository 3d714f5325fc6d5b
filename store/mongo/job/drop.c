#include "store/mongo/job/drop.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/failpoint.h"
#include "store/mongo/catalog/keys.h"
#include "store/mongo/doc/watermarks.h"
#include "store/mongo/ledger/ledger.h"
#include "store/mongo/ledger/peers.h"
#include "store/mongo/wire/command.h"
#include "store/mongo/writer/behind.h"

#include <stdio.h>

#define JOB_ID_BYTES (MONGO_NAME_BYTES + 16)

struct drop {
    struct mongo_store *m;
    struct report report;
    char key[MONGO_NAME_BYTES];
};

static bool refuse_absent(const struct drop *d, const char *name, int generation, struct err *e)
{
    return err_set(e, EX_NOINPUT, "%s has no generation %d of report \"%s\"", mongo_client_name(d->m->client),
                   generation, name);
}

static bool find_report(struct drop *d, const char *name, int generation, struct err *e)
{
    struct mongo_found_report found;
    bson_t document;
    if (!mongo_find_report(d->m, name, generation, &found, e))
        return false;
    if (found.count == 0)
        return refuse_absent(d, name, generation, e);
    memcpy(d->key, found.key, sizeof d->key);
    bool good = mongo_read_document(d->m->client, MONGO_REPORTS, d->key, &document, e);
    if (good && bson_empty(&document)) /* it was dropped meanwhile */
        good = refuse_absent(d, name, generation, e);
    good = good && mongo_read_report(&document, &d->report, e);
    bson_destroy(&document);
    return good;
}

/* Refuse while a writer counts this generation: it must not be beside a writer of another generation. */
static bool check_writers(const struct drop *d, struct err *e)
{
    struct report other = d->report; /* borrowed, but for its generation */
    struct mongo_found_report newest;
    bson_t ledger;
    if (!mongo_find_newest(d->m, d->report.name, &newest, e))
        return false;
    other.generation =
        newest.generation > d->report.generation ? newest.generation : d->report.generation + 1;
    bool good = mongo_read_home(d->m, &ledger, e);
    if (good && !mongo_may_begin(d->m, &other, 1, &ledger, e))
        good = err_set(
            e, EX_TEMPFAIL,
            "%s: a daemon that counts report \"%s\" is running, or ended less than a minute ago: stop it "
            "first",
            mongo_client_name(d->m->client), d->report.name);
    bson_destroy(&ledger);
    return good;
}

/* The n-th collection of the report; false: there are no more. */
static bool collection_at(const struct drop *d, size_t n, char name[MONGO_NAME_BYTES])
{
    static const char *const others[] = {MONGO_TOP, "series"};
    const size_t all = SPAN_END * mongo_sketch_count(&d->report);
    const char *span = span_name((enum span)(n % SPAN_END));
    int len;
    if (n >= all + SPAN_END + COUNT_OF(others))
        return false;
    if (n < all)
        len = snprintf(name, MONGO_NAME_BYTES, "%s.%s.%s", d->key,
                       report_sketched(&d->report, n / SPAN_END)->name, span);
    else
        len = snprintf(name, MONGO_NAME_BYTES, "%s.%s", d->key,
                       n - all < SPAN_END ? span : others[n - all - SPAN_END]);
    ASSERT(len > 0 && len < MONGO_NAME_BYTES);
    return true;
}

static bool weigh(const struct drop *d, struct store_dropped *dropped, struct err *e)
{
    char name[MONGO_NAME_BYTES];
    bool good = true;
    for (size_t n = 0; good && collection_at(d, n, name); n++) {
        int64_t count;
        good = mongo_count(d->m->client, name, NULL, &count, e);
        if (strcmp(strrchr(name, '.'), ".series") == 0)
            dropped->series = (uint64_t)count;
        else
            dropped->rows += (uint64_t)count;
    }
    return good;
}

static bool mark(const struct drop *d, struct err *e)
{
    bson_t *update = BCON_NEW("$set", "{", MONGO_DROPPING, BCON_BOOL(true), "}");
    return mongo_change(d->m->client, MONGO_REPORTS, BCON_NEW("_id", BCON_UTF8(d->key)), update, false, NULL,
                        e);
}

/* Some servers refuse to drop a collection that does not exist. */
static bool drop_collection(const struct drop *d, const char *name, struct err *e)
{
    return mongo_run(d->m->client, NULL, BCON_NEW("drop", BCON_UTF8(name)), MONGO_NAMESPACE_NOT_FOUND, e);
}

bool mongo_drop_collections(struct mongo_store *m, const struct report *report, const char *key,
                            struct err *e)
{
    struct drop d = {.m = m, .report = *report}; /* borrowed */
    char name[MONGO_NAME_BYTES];
    bool good = true;
    snprintf(d.key, sizeof d.key, "%s", key);
    for (size_t n = 0; good && collection_at(&d, n, name); n++)
        good = drop_collection(&d, name, e);
    return good;
}

static bool delete_one(const struct drop *d, const char *collection, const char *id, struct err *e)
{
    return mongo_delete_all(d->m->client, collection, BCON_NEW("_id", BCON_UTF8(id)), NULL, e);
}

static bool delete_jobs(const struct drop *d, struct err *e)
{
    char id[JOB_ID_BYTES];
    snprintf(id, sizeof id, MONGO_TOP "/%s", d->key);
    bool good = delete_one(d, MONGO_JOBS, id, e);
    for (size_t t = 0; good && t < MONGO_TARGETS; t++) {
        snprintf(id, sizeof id, "%s/%s", mongo_targets[t].job, d->key);
        good = delete_one(d, MONGO_JOBS, id, e);
    }
    return good;
}

static bool delete_books(const struct drop *d, struct err *e)
{
    char path[MONGO_NAME_BYTES + 16];
    snprintf(path, sizeof path, "reports.%s", d->key);
    return mongo_change_all(d->m->client, MONGO_BOOKS, BCON_NEW(path, "{", "$exists", BCON_BOOL(true), "}"),
                            BCON_NEW("$unset", "{", path, BCON_UTF8(""), "}"), NULL, e);
}

static bool drop_all(const struct drop *d, struct err *e)
{
    char name[MONGO_NAME_BYTES];
    bool good = mark(d, e);
    if (good) /* a scan that sees a dropped collection looks at the mark after that */
        clock_sleep(MONGO_KNOWN_MS);
    /* A writer may have died since the handle was opened: its batches would make documents again. */
    good = good && mongo_settle(&d->m->store, e);
    for (size_t n = 0; good && collection_at(d, n, name); n++) {
        failpoint(FAILPOINT_DROP_COLLECTION);
        good = drop_collection(d, name, e);
    }
    good = good && delete_jobs(d, e) && delete_books(d, e);
    failpoint(FAILPOINT_DROP_LAST);
    return good && delete_one(d, MONGO_REPORTS, d->key, e);
}

bool mongo_drop(struct store *st, const char *report, int generation, bool dry_run,
                struct store_dropped *dropped, struct err *e)
{
    struct drop d = {.m = mongo_of(st)};
    if (!find_report(&d, report, generation, e))
        return false;
    bool good = check_writers(&d, e) && weigh(&d, dropped, e) && (dry_run || drop_all(&d, e));
    report_fini(&d.report);
    return good;
}
