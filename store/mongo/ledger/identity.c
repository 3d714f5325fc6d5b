/* Is it still the database that this handle counts into, and do its documents belong to its ledger?
 * (docs/LEDGER.md) A database that was put back, restored, or lost acknowledged writes continues from an
 * older state. A writer that knows a later state stops. */
#include "store/mongo/ledger/identity.h"

#include "base/check.h"
#include "base/clock.h"
#include "store/mongo/ledger/ledger.h"
#include "store/mongo/wire/field.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/random.h>

#define BEGIN_TRIES 8

/* ---- the ledger */

static void make_identity(char identity[MONGO_IDENTITY_BYTES])
{
    uint64_t dice[2];
    ASSERT(getrandom(dice, sizeof dice, 0) == sizeof dice);
    snprintf(identity, MONGO_IDENTITY_BYTES, "%016" PRIx64 "%016" PRIx64, dice[0], dice[1]);
}

/* Gives an identity to a ledger from before there were identities. */
static bool give_identity(struct mongo_store *m, const char *identity, struct err *e)
{
    bson_t *filter = BCON_NEW("_id", MONGO_LEDGER, "identity", "{", "$exists", BCON_BOOL(false), "}");
    bson_t *update = BCON_NEW("$set", "{", "identity", BCON_UTF8(identity), "epoch",
                              BCON_INT64(clock_wall_ms(m->store.clock)), "}");
    bool matched, good = mongo_update_one(m->client, MONGO_LEDGER, filter, update, false, &matched, e);
    bson_destroy(filter);
    bson_destroy(update);
    return good;
}

static bool create_ledger(struct mongo_store *m, const char *identity, struct err *e)
{
    bson_t *filter = BCON_NEW("_id", MONGO_LEDGER);
    bson_t *update = BCON_NEW("$setOnInsert", "{", "v", BCON_INT32(MONGO_FORMAT), "identity",
                              BCON_UTF8(identity), "epoch", BCON_INT64(clock_wall_ms(m->store.clock)), "}");
    bool matched, good = mongo_update_one(m->client, MONGO_LEDGER, filter, update, true, &matched, e);
    bson_destroy(filter);
    bson_destroy(update);
    return good;
}

/* Gives a format to a ledger of an older one. Writers of older versions know another epoch,
 * so none of them commits from then on. */
static bool raise_format(struct mongo_store *m, const bson_t *ledger, struct err *e)
{
    int64_t now_ms = clock_wall_ms(m->store.clock), epoch = mongo_number_at(ledger, "epoch", 0);
    bson_t *filter = BCON_NEW("_id", MONGO_LEDGER, "epoch", BCON_INT64(epoch), "v", "{", "$not", "{", "$gte",
                              BCON_INT32(MONGO_FORMAT), "}", "}");
    bson_t *update = BCON_NEW("$set", "{", "v", BCON_INT32(MONGO_FORMAT), "needs", TALLYD_VERSION, "epoch",
                              BCON_INT64(now_ms > epoch ? now_ms : epoch + 1), "}");
    bool matched, good = mongo_update_one(m->client, MONGO_LEDGER, filter, update, false, &matched, e);
    bson_destroy(filter);
    bson_destroy(update);
    return good;
}

static const char *identity_of(const bson_t *ledger)
{
    bson_iter_t it;
    return bson_iter_init_find(&it, ledger, "identity") && BSON_ITER_HOLDS_UTF8(&it)
               ? bson_iter_utf8(&it, NULL)
               : "";
}

bool mongo_begin_ledger(struct mongo_store *m, struct err *e)
{
    char identity[MONGO_IDENTITY_BYTES];
    bson_t ledger;
    if (m->writer.refused.code != 0) {
        *e = m->writer.refused;
        return false;
    }
    if (m->writer.identity[0] != '\0') /* a ledger that is gone is not made again */
        return true;
    make_identity(identity);
    bool good = create_ledger(m, identity, e), is_ready = false;
    bson_init(&ledger);
    for (int tries = 0; good && !is_ready && tries < BEGIN_TRIES; tries++) {
        bson_destroy(&ledger);
        good = mongo_read_ledger(m, &ledger, e);
        bool has_identity = identity_of(&ledger)[0] != '\0';
        is_ready = has_identity && mongo_number_at(&ledger, "v", 1) >= MONGO_FORMAT;
        if (good && !is_ready)
            good = has_identity ? raise_format(m, &ledger, e) : give_identity(m, identity, e);
    }
    if (good) {
        snprintf(m->writer.identity, sizeof m->writer.identity, "%s", identity_of(&ledger));
        m->writer.epoch = mongo_number_at(&ledger, "epoch", 0);
        good = is_ready || err_set(e, EX_DATAERR, "%s: the ledger has no identity, or no format",
                                   mongo_client_name(m->client));
    }
    bson_destroy(&ledger);
    return good;
}

void mongo_add_ledger(const struct mongo_store *m, bson_t *filter)
{
    BSON_APPEND_UTF8(filter, "_id", MONGO_LEDGER);
    if (m->writer.identity[0] == '\0')
        return;
    BSON_APPEND_UTF8(filter, "identity", m->writer.identity);
    BSON_APPEND_INT64(filter, "epoch", m->writer.epoch);
}

bool mongo_refuse(struct mongo_store *m, struct err *e, const char *format, ...)
{
    char what[512];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args); /* NOLINT(clang-analyzer-valist.Uninitialized): it is */
    va_end(args);
    err_set(e, EX_DATAERR,
            "%s is not the database that this tallyd counted into: %s. It was restored or replaced, or has "
            "lost acknowledged writes: restart tallyd to resume from its present positions",
            mongo_client_name(m->client), what);
    m->writer.refused = *e;
    m->writer.slot[0] = '\0'; /* in that ledger, the slot may be another's */
    m->batch.step = STEP_NONE;
    return false;
}

bool mongo_is_same_ledger(const struct mongo_store *m, const bson_t *ledger)
{
    return strcmp(identity_of(ledger), m->writer.identity) == 0 &&
           mongo_number_at(ledger, "epoch", 0) == m->writer.epoch;
}

static bool check_slot(struct mongo_store *m, const bson_t *ledger, struct err *e)
{
    char path[64];
    struct mongo_open open;
    snprintf(path, sizeof path, "writers.%s.inc", m->writer.slot);
    int64_t inc = mongo_number_at(ledger, path, -1), seq = mongo_seq_of(ledger, m->writer.slot);
    if (inc < m->writer.inc)
        return mongo_refuse(m, e, "slot %s of its ledger is in the state before this tallyd took it",
                            m->writer.slot);
    if (seq < m->writer.committed)
        return mongo_refuse(m, e, "the last batch of slot %s was %" PRId64 ", and is now %" PRId64,
                            m->writer.slot, m->writer.committed, seq);
    if (inc == m->writer.inc && seq != m->writer.committed &&
        (m->batch.step != STEP_COMMITTING || seq != m->writer.number))
        return mongo_refuse(m, e, "its ledger has a batch %" PRId64 " of slot %s that was never written", seq,
                            m->writer.slot);
    if (inc == m->writer.inc && seq == m->writer.committed && m->writer.is_done &&
        mongo_open_of(ledger, m->writer.slot, &open))
        return mongo_refuse(m, e, "batch %" PRId64 " of slot %s was done, and is open now", seq,
                            m->writer.slot);
    return true;
}

bool mongo_check_ledger(struct mongo_store *m, const bson_t *ledger, struct err *e)
{
    if (bson_empty(ledger))
        return mongo_refuse(m, e, "its ledger is gone");
    if (strcmp(identity_of(ledger), m->writer.identity) != 0)
        return mongo_refuse(m, e, "the identity in its ledger was %s, and is now \"%.64s\"",
                            m->writer.identity, identity_of(ledger));
    if (!mongo_is_same_ledger(m, ledger))
        return mongo_refuse(m, e, "the epoch in its ledger was %" PRId64 ", and is now %" PRId64,
                            m->writer.epoch, mongo_number_at(ledger, "epoch", 0));
    return m->writer.slot[0] == '\0' || check_slot(m, ledger, e);
}

/* Each claim raises the epoch. The next claim finds `next` where the last writer left it. */
bool mongo_check_partition(struct mongo_store *m, const struct mongo_partition *was,
                           const struct mongo_partition *now, struct err *e)
{
    if (now->epoch <= was->epoch)
        return mongo_refuse(m, e, "%s/%s was claimed %" PRId64 " times, and now fewer", was->source,
                            was->partition, was->epoch);
    if (now->epoch == was->epoch + 1 && now->next < was->next)
        return mongo_refuse(m, e, "%s/%s was counted up to %" PRId64 ", and is now up to %" PRId64,
                            was->source, was->partition, was->next, now->next);
    return true;
}

/* ---- documents */

bool mongo_check_applied(struct mongo_client *client, const struct mongo_open *of, const char *collection,
                         const char *id, int64_t applied, struct err *e)
{
    bson_t ledger;
    if (of->prev < 0 || applied == of->seq)
        return true;
    bool good = mongo_confirm_ledger(client, &ledger, e);
    int64_t seq = good ? mongo_seq_of(&ledger, of->slot) : 0;
    bson_destroy(&ledger);
    /* Others may have finished the batch, and applied later ones. */
    if (!good || (applied > of->seq && applied <= seq))
        return good;
    return mongo_refuse_document(client, collection, id, applied, of->slot, seq, e);
}

bool mongo_refuse_document(const struct mongo_client *client, const char *collection, const char *id,
                           int64_t applied, const char *slot, int64_t seq, struct err *e)
{
    return err_set(e, EX_DATAERR,
                   "%s: %s has a document \"%.200s\" with counts of batch %" PRId64
                   " of slot %s, which its ledger does not have: its last one is %" PRId64
                   ": documents and ledger are of different times, as after a restore of a copy that was "
                   "made while tallyd counted, or after a failover that lost acknowledged writes. Restore "
                   "the whole database from one backup, or count again into an empty one",
                   mongo_client_name(client), collection, id, applied, slot, seq);
}
