#include "store/mongo/job/replace.h"

#include "base/failpoint.h"
#include "store/mongo/catalog/keys.h"
#include "store/mongo/job/drop.h"
#include "store/mongo/ledger/peers.h"
#include "store/mongo/wire/command.h"

struct replace {
    struct mongo_store *m;
    const char *by, *report;
    struct mongo_found_report new, old;
};

static bool find(struct replace *r, const char *name, struct mongo_found_report *found, struct err *e)
{
    if (!mongo_find_newest(r->m, name, found, e))
        return false;
    if (found->count == 0)
        return err_set(e, EX_NOINPUT, "%s has no report \"%s\"", mongo_client_name(r->m->client), name);
    return !found->is_dropping ||
           err_set(e, EX_CONFIG,
                   "generation %d of report \"%s\" is dropped only in part: run `tallyd "
                   "forget --yes %s~%d` again, which was interrupted",
                   found->generation, name, name, found->generation);
}

static bool find_both(struct replace *r, struct err *e)
{
    if (!find(r, r->report, &r->old, e) || !find(r, r->by, &r->new, e))
        return false;
    return r->new.count == 1 ||
           err_set(e, EX_CONFIG, "%s has %zu generations: `tallyd forget` drops the older ones first", r->by,
                   r->new.count);
}

/* The one update that changes what a query sees. If its reply is lost, the report is looked for. */
static bool rename_report(const struct replace *r, int generation, struct err *e)
{
    bool matched;
    struct mongo_found_report found;
    bson_t *filter = BCON_NEW("_id", BCON_UTF8(r->new.key), "name", BCON_UTF8(r->by), "generation",
                              BCON_INT32(r->new.generation));
    bson_t *update =
        BCON_NEW("$set", "{", "name", BCON_UTF8(r->report), "generation", BCON_INT32(generation), "}");
    bool good = mongo_change(r->m->client, MONGO_REPORTS, filter, update, false, &matched, e);
    if (!good || matched)
        return good;
    return mongo_find_report(r->m, r->report, generation, &found, e) &&
           ((found.count > 0 && strcmp(found.key, r->new.key) == 0) ||
            err_set(e, EX_TEMPFAIL,
                    "%s: another program changed `reports` meanwhile: look at it, then run it again",
                    mongo_client_name(r->m->client)));
}

bool mongo_replace(struct store *st, const char *by, const char *report, bool drops_old,
                   struct store_replaced *done, struct err *e)
{
    struct replace r = {.m = mongo_of(st), .by = by, .report = report};
    struct store_dropped dropped;
    if (!mongo_check_alone(r.m, e) || !find_both(&r, e))
        return false;
    *done = (struct store_replaced){.generation = r.old.generation + 1, .replaced = r.old.generation};
    failpoint(FAILPOINT_REPLACE_BEFORE_COMMIT);
    if (!rename_report(&r, done->generation, e))
        return false;
    failpoint(FAILPOINT_REPLACE_AFTER_COMMIT);
    return !drops_old || mongo_drop(st, report, done->replaced, false, &dropped, e) ||
           err_prefix(e, "%s is %s~%d now, but %s~%d is not dropped: run `tallyd forget %s~%d`", by, report,
                      done->generation, report, done->replaced, report, done->replaced);
}
