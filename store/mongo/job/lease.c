#include "store/mongo/job/lease.h"

#include "base/clock.h"
#include "store/mongo/ledger/ledger.h"
#include "store/mongo/send/recover.h"
#include "store/mongo/wire/command.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define LEASE_MS     120000 /* longer than one request of updates may take */
#define OPEN_WAIT_MS 90000  /* a batch is applied sooner, or recovered after its writer's lease */
#define OPEN_LOOK_MS 50

/* Names this process for the operator. */
static void name_owner(char buf[MONGO_OWNER_BYTES])
{
    char host[MONGO_OWNER_BYTES / 2] = "";
    if (gethostname(host, sizeof host - 1) != 0)
        host[0] = '\0';
    snprintf(buf, MONGO_OWNER_BYTES, "%s %d", host, (int)getpid());
}

bool mongo_lease_take(struct mongo_store *m, const char *id, int64_t fence, bool *taken, bson_t *after,
                      struct err *e)
{
    int64_t now_ms = clock_wall_ms(m->store.clock);
    char owner[MONGO_OWNER_BYTES];
    name_owner(owner);
    bson_t *query = BCON_NEW("_id", BCON_UTF8(id), "$or", "[", "{", "until", "{", "$exists", BCON_BOOL(false),
                             "}", "}", "{", "until", "{", "$lt", BCON_DATE_TIME(now_ms), "}", "}", "{",
                             "until", "{", "$gt", BCON_DATE_TIME(now_ms + LEASE_MS + MONGO_CLOCK_SLACK_MS),
                             "}", "}", "{", "fence", BCON_INT64(fence), "}", "]");
    bson_t *update = BCON_NEW("$inc", "{", "fence", BCON_INT64(1), "}", "$set", "{", "until",
                              BCON_DATE_TIME(now_ms + LEASE_MS), "last_run", BCON_DATE_TIME(now_ms), "owner",
                              BCON_UTF8(owner), "}");
    bool good = mongo_modify(m->client, MONGO_JOBS, query, update, taken, after, e);
    bson_destroy(update);
    bson_destroy(query);
    return good;
}

bool mongo_lease_set(struct mongo_store *m, const char *id, int64_t fence, const bson_t *set, bool *held,
                     struct err *e)
{
    bson_t query, update;
    bson_init(&query);
    BSON_APPEND_UTF8(&query, "_id", id);
    BSON_APPEND_INT64(&query, "fence", fence);
    bson_init(&update);
    BSON_APPEND_DOCUMENT(&update, "$set", set);
    return mongo_change(m->client, MONGO_JOBS, &query, &update, false, held, e);
}

static bool set_until(struct mongo_store *m, const char *id, int64_t fence, int64_t until_ms, bool *held,
                      struct err *e)
{
    bson_t set = BSON_INITIALIZER;
    BSON_APPEND_DATE_TIME(&set, "until", until_ms);
    bool good = mongo_lease_set(m, id, fence, &set, held, e);
    bson_destroy(&set);
    return good;
}

bool mongo_lease_keep(struct mongo_store *m, const char *id, int64_t fence, bool *held, struct err *e)
{
    return set_until(m, id, fence, clock_wall_ms(m->store.clock) + LEASE_MS, held, e);
}

bool mongo_lease_give(struct mongo_store *m, const char *id, int64_t fence, struct err *e)
{
    bool held;
    return set_until(m, id, fence, 0, &held, e);
}

/* ---- open batches */

static size_t still_open(const bson_t *ledger, struct mongo_open open[MONGO_SLOTS], size_t count)
{
    size_t still = 0;
    for (size_t i = 0; i < count; i++) {
        struct mongo_open now;
        if (mongo_open_of(ledger, open[i].slot, &now) && now.seq == open[i].seq && now.inc == open[i].inc)
            open[still++] = open[i];
    }
    return still;
}

bool mongo_wait_for_open(struct mongo_store *m, mongo_goes_on_fn *goes_on, void *context, struct err *e)
{
    int64_t until_ms = clock_mono_ms(m->store.clock) + OPEN_WAIT_MS;
    struct mongo_open open[MONGO_SLOTS];
    bson_t ledger;
    bool good = mongo_read_ledger(m, &ledger, e);
    size_t count = mongo_all_open(&ledger, open);
    bson_destroy(&ledger);
    while (good && count > 0) {
        if (!goes_on(context))
            return false;
        if (clock_mono_ms(m->store.clock) > until_ms)
            return err_set_retryable(
                e, EX_TEMPFAIL,
                "%s: a batch of writer %s has been under way for long: check that this writer still runs",
                mongo_client_name(m->client), open[0].slot);
        nanosleep(&(struct timespec){.tv_nsec = OPEN_LOOK_MS * 1000000L}, NULL);
        good = mongo_read_ledger(m, &ledger, e) && mongo_recover_abandoned(m, &ledger, false, e);
        count = still_open(&ledger, open, count);
        bson_destroy(&ledger);
    }
    return good;
}
