#include "store/mongo/job/lease.h"

#include "base/clock.h"
#include "store/mongo/doc/unrolled.h"
#include "store/mongo/ledger/ledger.h"
#include "store/mongo/ledger/peers.h"
#include "store/mongo/send/recover.h"
#include "store/mongo/wire/command.h"
#include "store/mongo/wire/field.h"

#include <stdio.h>
#include <unistd.h>

#define LEASE_MS      120000 /* longer than one request of updates may take */
#define LEASE_KEEP_MS 10000
/* A batch is applied and rolled up sooner, or recovered after its writer's lease. */
#define OPEN_WAIT_MS  180000
#define OPEN_LOOK_MS  50

struct mongo_job mongo_job_of(struct mongo_store *m, const struct store_roll *what, size_t report,
                              const char *name, struct err *e)
{
    struct mongo_job job = {.m = m, .what = what, .report = report, .goes_on = true, .e = e};
    snprintf(job.id, sizeof job.id, "%s/%s", name, m->more[report].key);
    return job;
}

bool mongo_each_job(struct store *st, const struct store_roll *what, size_t each, mongo_job_fn *fn,
                    struct err *e)
{
    bool all_good = true, goes_on = true;
    for (size_t i = 0; goes_on && i < st->report_count * each; i++) {
        struct err own = {0};
        bool good = fn(mongo_of(st), what, i / each, i % each, &own);
        if (!good && all_good)
            *e = own;
        all_good = all_good && good;
        goes_on = (good || !own.retryable) && (what->is_stopped == NULL || !what->is_stopped(what->context));
    }
    return all_good;
}

bool mongo_job_is_stopped(struct mongo_job *job)
{
    if (job->what->is_stopped != NULL && job->what->is_stopped(job->what->context))
        job->goes_on = false;
    return !job->goes_on;
}

/* ---- the lease */

/* Names this process for the operator. */
static void name_owner(char buf[MONGO_OWNER_BYTES])
{
    char host[MONGO_HOST_NAME_BYTES];
    mongo_read_host_name(host);
    snprintf(buf, MONGO_OWNER_BYTES, "%s %d", host, (int)getpid());
}

/* Tells the caller who holds the lease. */
static bool tell_held(struct mongo_job *job)
{
    bson_t document;
    bool good = mongo_read_document(job->m->client, MONGO_JOBS, job->id, &document, job->e);
    if (good && job->what->held != NULL)
        job->what->held(job->what->context, job->m->reports[job->report].name,
                        mongo_text_at(&document, "owner"));
    bson_destroy(&document);
    return good;
}

bool mongo_job_take(struct mongo_job *job, bson_t *after)
{
    int64_t now_ms = clock_wall_ms(job->m->store.clock);
    char owner[MONGO_OWNER_BYTES];
    bool taken;
    name_owner(owner);
    job->kept_ms = clock_mono_ms(job->m->store.clock);
    bson_t *query =
        BCON_NEW("_id", BCON_UTF8(job->id), "$or", "[", "{", "until", "{", "$exists", BCON_BOOL(false), "}",
                 "}", "{", "until", "{", "$lt", BCON_DATE_TIME(now_ms), "}", "}", "{", "until", "{", "$gt",
                 BCON_DATE_TIME(now_ms + LEASE_MS + MONGO_CLOCK_SLACK_MS), "}", "}", "{", "fence",
                 BCON_INT64(job->fence), "}", "]");
    bson_t *update = BCON_NEW("$inc", "{", "fence", BCON_INT64(1), "}", "$set", "{", "until",
                              BCON_DATE_TIME(now_ms + LEASE_MS), "last_run", BCON_DATE_TIME(now_ms), "owner",
                              BCON_UTF8(owner), "}");
    bool good = mongo_modify(job->m->client, MONGO_JOBS, query, update, &taken, after, job->e);
    if (good && taken)
        job->fence = mongo_number_at(after, "fence", 0);
    job->goes_on = job->goes_on && (!good || taken);
    return good && (taken || tell_held(job));
}

bool mongo_job_set(struct mongo_job *job, bson_t *set)
{
    bool held;
    bson_t *filter = BCON_NEW("_id", BCON_UTF8(job->id), "fence", BCON_INT64(job->fence));
    bson_t *update = BCON_NEW("$set", BCON_DOCUMENT(set));
    bson_destroy(set);
    bool good = mongo_change(job->m->client, MONGO_JOBS, filter, update, false, &held, job->e);
    job->goes_on = job->goes_on && (!good || held);
    return good && held;
}

bool mongo_job_keep(struct mongo_job *job)
{
    int64_t now_ms = clock_mono_ms(job->m->store.clock);
    if (mongo_job_is_stopped(job))
        return false;
    if (now_ms - job->kept_ms < LEASE_KEEP_MS)
        return true;
    job->kept_ms = now_ms;
    int64_t until_ms = clock_wall_ms(job->m->store.clock) + LEASE_MS;
    return mongo_job_set(job, BCON_NEW("until", BCON_DATE_TIME(until_ms)));
}

/* Nobody should wait for the lease of a job that has ended. If another holds it by now, it stays. */
bool mongo_job_give(struct mongo_job *job, bool good)
{
    const struct err why = *job->e;
    if (job->fence == 0 || (!good && why.code == EX_UNAVAILABLE))
        return good;
    job->goes_on = true;
    bool given = mongo_job_set(job, BCON_NEW("until", BCON_DATE_TIME(0))) || !job->goes_on;
    if (!good)
        *job->e = why;
    return good && given;
}

/* ---- open batches */

/* What a job waits for: the open batches, and the batches that are not rolled up. */
struct awaited {
    struct mongo_open open[MONGO_SLOTS];
    size_t count;
    int64_t unrolled[MONGO_SLOTS]; /* by slot, the number of the last such batch; 0: none */
};

static void begin_wait(struct awaited *a, const bson_t *ledger, bool longer)
{
    bson_t seat;
    a->count = mongo_all_open(ledger, a->open);
    for (int i = 0; i < MONGO_SLOTS; i++)
        a->unrolled[i] =
            longer && mongo_seat_of(ledger, mongo_slots[i], &seat) ? mongo_last_unrolled(&seat) : 0;
}

/* Forgets what is done by now. */
static void look_again(struct awaited *a, const bson_t *ledger)
{
    size_t still = 0;
    bson_t seat;
    for (size_t i = 0; i < a->count; i++) {
        struct mongo_open now;
        if (mongo_open_of(ledger, a->open[i].slot, &now) && now.seq == a->open[i].seq &&
            now.inc == a->open[i].inc)
            a->open[still++] = a->open[i];
    }
    a->count = still;
    for (int i = 0; i < MONGO_SLOTS; i++) {
        if (a->unrolled[i] > 0 && (!mongo_seat_of(ledger, mongo_slots[i], &seat) ||
                                   mongo_number_at(&seat, "rolled", 0) >= a->unrolled[i]))
            a->unrolled[i] = 0;
    }
}

/* The slot of something that is awaited; NULL: nothing is. */
static const char *awaited_of(const struct awaited *a)
{
    for (int i = 0; i < MONGO_SLOTS; i++) {
        if (a->unrolled[i] > 0)
            return mongo_slots[i];
    }
    return a->count > 0 ? a->open[0].slot : NULL;
}

bool mongo_job_wait_for_open(struct mongo_job *job, bool longer)
{
    struct mongo_store *m = job->m;
    struct err *e = job->e;
    int64_t until_ms = clock_mono_ms(m->store.clock) + OPEN_WAIT_MS;
    struct awaited a;
    bson_t ledger;
    bool good = mongo_read_ledger(m, &ledger, e);
    begin_wait(&a, &ledger, longer);
    bson_destroy(&ledger);
    while (good && awaited_of(&a) != NULL) {
        if (!mongo_job_keep(job))
            return false;
        if (clock_mono_ms(m->store.clock) > until_ms)
            return err_set_retryable(
                e, EX_TEMPFAIL,
                "%s: a batch of writer %s has been under way for long: check that this writer still runs",
                mongo_client_name(m->client), awaited_of(&a));
        clock_sleep(OPEN_LOOK_MS);
        good = mongo_read_ledger(m, &ledger, e) && mongo_recover_abandoned(m, &ledger, false, e);
        look_again(&a, &ledger);
        bson_destroy(&ledger);
    }
    return good;
}
