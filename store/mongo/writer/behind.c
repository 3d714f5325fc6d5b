#include "store/mongo/writer/behind.h"

#include "base/check.h"
#include "store/mongo/ledger/books.h"
#include "store/mongo/ledger/ledger.h"
#include "store/mongo/send/recover.h"
#include "store/mongo/wire/field.h"
#include "store/mongo/writer/partition.h"
#include "store/mongo/writer/position.h"
#include "store/mongo/writer/recall.h"

#include <stdlib.h>

#define CLAIM_TRIES 8

/* Open batches may move entries: they are recovered before the books are read. */
static bool look(struct mongo_store *m, const struct range *r, struct err *e)
{
    bson_t ledger;
    struct mongo_found *f = &m->batch.found;
    free(f->key);
    *f = (struct mongo_found){.key = mongo_partition_key(r)};
    bool good = mongo_read_home(m, &ledger, e);
    f->epoch = mongo_number_at(&ledger, mongo_entry_member(m, f->key, "epoch"), 0);
    f->fills = mongo_number_at(&ledger, mongo_entry_member(m, f->key, "fills"), 0);
    good = good && mongo_recover_of(m, f->key, &ledger, e) &&
           mongo_look_at_seats(m, f->key, &ledger, &f->next, e);
    bson_destroy(&ledger);
    return good;
}

bool mongo_settle(struct store *st, struct err *e)
{
    struct mongo_store *m = mongo_of(st);
    bson_t ledger;
    bool good = mongo_read_ledger(m, &ledger, e);
    for (int i = 0; good && i < MONGO_SLOTS; i++)
        good =
            strcmp(mongo_slots[i], m->writer.slot) == 0 || mongo_finish_slot(m, &ledger, mongo_slots[i], e);
    bson_destroy(&ledger);
    return good;
}

static bool read_moved(struct mongo_store *m, const struct batch *batch, struct err *e)
{
    const struct range *r = &batch->ranges[0];
    struct backfill_span span = backfill_span(batch, r);
    if (r->to > m->batch.found.next)
        return backfill_ahead(r, e);
    return mongo_read_span(m, r, batch->report, &span, e) &&
           (backfill_change(&span, m->batch.moved, &m->batch.moved_count, e) ||
            err_prefix(e, "%s", r->label));
}

/* The offset to which the batch moves the report's `until`; -1: it leaves it. */
static int64_t moved_until(const struct mongo_store *m)
{
    for (size_t i = 0; i < m->batch.moved_count; i++) {
        if (strcmp(m->batch.moved[i].name, "until") == 0)
            return m->batch.moved[i].value;
    }
    return -1;
}

static bool has_claim(struct mongo_store *m, const struct range *r)
{
    const struct mongo_partition *p = mongo_known_partition(m, r);
    return p != NULL && p->is_claimed && p->epoch == m->batch.found.epoch;
}

bool mongo_find_behind(struct mongo_store *m, const struct batch *batch, struct err *e)
{
    const struct range *r = &batch->ranges[0];
    ASSERT(batch->range_count == 1);
    for (int tries = 0; tries < CLAIM_TRIES; tries++) {
        if (!look(m, r, e))
            return false;
        bool has = has_claim(m, r);
        if (m->batch.found.next >= 0 || has) {
            if (!read_moved(m, batch, e))
                return false;
            if (has || moved_until(m) < 0)
                return true;
        }
        struct range claimed = *r;
        if (!mongo_claim(&m->store, &claimed, 1, e))
            return false;
    }
    return err_set_retryable(e, EX_TEMPFAIL,
                             "%s: other writers claim %s all the time: run the same command again",
                             mongo_client_name(m->client), r->label);
}

void mongo_note_behind(struct mongo_store *m)
{
    const struct range *r = &m->batch.ranges[0];
    struct mongo_partition *p = mongo_known_partition(m, r);
    int64_t until = moved_until(m);
    if (until >= 0 && p != NULL)
        p->until[m->batch.report] = until;
}
