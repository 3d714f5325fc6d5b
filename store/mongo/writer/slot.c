/* Takes and keeps a slot of the ledger. One writer at a time has a slot (docs/LEDGER.md, "take"). */
#include "store/mongo/writer/slot.h"

#include "base/clock.h"
#include "store/mongo/ledger/copies.h"
#include "store/mongo/ledger/identity.h"
#include "store/mongo/ledger/ledger.h"
#include "store/mongo/ledger/peers.h"
#include "store/mongo/ledger/slots.h"
#include "store/mongo/send/recover.h"
#include "store/mongo/wire/command.h"
#include "store/mongo/wire/field.h"
#include "store/mongo/writer/crowd.h"
#include "store/mongo/writer/torn.h"

#include <stdio.h>
#include <unistd.h>

#define TAKE_TRIES 100
#define KEEP_MS    (MONGO_LEASE_MS / 3)

/* At least `last`. If the clock is right, also above all numbers ever used, even if the database was put
 * back. */
static int64_t fresh(const struct mongo_store *m, int64_t last)
{
    int64_t now_ms = clock_wall_ms(m->store.clock);
    return now_ms > last ? now_ms : last;
}

/* Adds the condition that the slot's last batch is still the same when it is taken. Returns the number
 * behind which this writer's numbers begin; those in between are never used. */
static int64_t add_seq(struct mongo_store *m, const bson_t *ledger, bson_t *query)
{
    char path[64];
    m->writer.committed = mongo_seq_of(ledger, m->writer.slot);
    snprintf(path, sizeof path, "writers.%s.seq", m->writer.slot);
    mongo_match_number(query, path, m->writer.committed, m->writer.committed > 0);
    return fresh(m, m->writer.committed);
}

/* If several writers come at once, the one that takes its slot last sees the others. It gives the slot back
 * if it is refused. */
static bool be_let_in(struct mongo_store *m, const bson_t *ledger, struct err *e)
{
    struct err ignored;
    bool good = m->writer.since_ms > 0 ? mongo_may_go_on(m, ledger, e)
                                       : mongo_may_begin(m, m->reports, m->store.report_count, ledger, e) &&
                                             mongo_admit(m, ledger, e);
    if (!good)
        (void)!mongo_set_lease(m, 0, &ignored);
    return good;
}

static bool take(struct mongo_store *m, const bson_t *ledger, bool *taken, struct err *e)
{
    char inc[64], path[64], host[MONGO_HOST_BYTES];
    bson_t query, update, set, after;
    snprintf(inc, sizeof inc, "writers.%s.inc", m->writer.slot);
    m->writer.inc = mongo_number_at(ledger, inc, 0);
    bson_init(&query);
    mongo_add_ledger(m, &query);
    mongo_match_number(&query, inc, m->writer.inc, m->writer.inc > 0);
    m->writer.number = add_seq(m, ledger, &query);
    bson_init(&update);
    BSON_APPEND_DOCUMENT_BEGIN(&update, "$set", &set);
    BSON_APPEND_INT64(&set, inc, fresh(m, m->writer.inc + 1));
    snprintf(path, sizeof path, "writers.%s.gap.after", m->writer.slot);
    BSON_APPEND_INT64(&set, path, m->writer.committed);
    snprintf(path, sizeof path, "writers.%s.gap.before", m->writer.slot);
    BSON_APPEND_INT64(&set, path, m->writer.number + 1);
    snprintf(path, sizeof path, "writers.%s.host", m->writer.slot);
    BSON_APPEND_UTF8(&set, path, mongo_name_host(host) ? host : "");
    snprintf(path, sizeof path, "writers.%s.pid", m->writer.slot);
    BSON_APPEND_INT64(&set, path, getpid());
    snprintf(path, sizeof path, "writers.%s.lease", m->writer.slot);
    BSON_APPEND_DATE_TIME(&set, path, clock_wall_ms(m->store.clock));
    mongo_add_who(m, &set);
    bson_append_document_end(&update, &set);
    mongo_add_restored(&query);
    bool good = mongo_modify(m->client, MONGO_LEDGER, &query, &update, taken, &after, e);
    if (good && *taken) {
        m->writer.inc = mongo_number_at(&after, inc, 0);
        m->writer.is_done = true;
        m->writer.logs_deleted = 0;
        m->writer.kept_ms = clock_mono_ms(m->store.clock);
        m->writer.batches_to_ask = MONGO_BATCHES_ASKED;
        struct mongo_open own;
        good = be_let_in(m, &after, e) &&
               (!mongo_open_of(&after, m->writer.slot, &own) || mongo_recover(m, &own, e)) &&
               mongo_recover_abandoned(m, &after, true, e);
    }
    bson_destroy(&after);
    bson_destroy(&update);
    bson_destroy(&query);
    return good;
}

bool mongo_need_slot(struct mongo_store *m, struct err *e)
{
    bool taken = m->writer.slot[0] != '\0', good = taken || mongo_begin_ledger(m, e);
    if (!taken)
        mongo_crowd_forget(m); /* with a lost slot its open batch may have been dropped */
    for (int tries = 0; good && !taken; tries++) {
        bson_t ledger;
        m->writer.slot[0] = '\0';
        good = mongo_read_ledger(m, &ledger, e) && mongo_check_ledger(m, &ledger, e);
        if (good && !mongo_find_free(m, &ledger, m->writer.slot))
            good = err_set_retryable(e, EX_TEMPFAIL, "%s: all %d slots for writers are taken",
                                     mongo_client_name(m->client), MONGO_SLOTS);
        good = good && mongo_check_opens(m, &ledger, e) && take(m, &ledger, &taken, e);
        if (good && !taken && tries == TAKE_TRIES)
            good = err_set_retryable(e, EX_TEMPFAIL,
                                     "%s: no slot for a writer could be taken: other writers took them first",
                                     mongo_client_name(m->client));
        bson_destroy(&ledger);
    }
    if (!good)
        m->writer.slot[0] = '\0';
    return good;
}

bool mongo_set_lease(struct mongo_store *m, int64_t lease_ms, struct err *e)
{
    char inc[64], lease[64];
    bson_t query, update, set;
    bool found;
    snprintf(inc, sizeof inc, "writers.%s.inc", m->writer.slot);
    snprintf(lease, sizeof lease, "writers.%s.lease", m->writer.slot);
    bson_init(&query);
    mongo_add_ledger(m, &query);
    BSON_APPEND_INT64(&query, inc, m->writer.inc);
    bson_init(&update);
    BSON_APPEND_DOCUMENT_BEGIN(&update, "$set", &set);
    BSON_APPEND_DATE_TIME(&set, lease, lease_ms);
    bson_append_document_end(&update, &set);
    /* If not found, the next commit says so. */
    bool good = mongo_update_one(m->client, MONGO_LEDGER, &query, &update, false, &found, e);
    bson_destroy(&update);
    bson_destroy(&query);
    return good;
}

bool mongo_keep_slot(struct mongo_store *m, struct err *e)
{
    int64_t now_ms = clock_mono_ms(m->store.clock);
    bson_t ledger;
    if (now_ms - m->writer.kept_ms < KEEP_MS)
        return true;
    m->writer.kept_ms = now_ms;
    if (!mongo_set_lease(m, clock_wall_ms(m->store.clock), e))
        return false;
    bool good = mongo_read_ledger(m, &ledger, e) && mongo_check_ledger(m, &ledger, e) &&
                mongo_may_go_on(m, &ledger, e) && mongo_check_generations(m, e) &&
                mongo_recover_abandoned(m, &ledger, true, e);
    bson_destroy(&ledger);
    return good;
}

bool mongo_hold(struct store *st, struct err *e)
{
    struct mongo_store *m = mongo_of(st);
    struct mongo_open open[MONGO_SLOTS];
    bson_t ledger;
    bool good = mongo_read_ledger(m, &ledger, e);
    if (good && mongo_all_open(&ledger, open) > 0)
        good = err_set_retryable(e, EX_TEMPFAIL,
                                 "%s: a batch of writer %s is under way: stop the writers first; if one was "
                                 "killed, start it once more to finish its batch",
                                 mongo_client_name(m->client), open[0].slot);
    bson_destroy(&ledger);
    return good;
}
