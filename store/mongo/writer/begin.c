/* Begins with the ledger: docs/LEDGER.md, "Upgrade". */
#include "store/mongo/writer/begin.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "store/mongo/ledger/copies.h"
#include "store/mongo/ledger/ledger.h"
#include "store/mongo/ledger/peers.h"
#include "store/mongo/ledger/seat.h"
#include "store/mongo/send/recover.h"
#include "store/mongo/wire/command.h"
#include "store/mongo/wire/field.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/random.h>

#define BEGIN_TRIES 8

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
    return mongo_change(m->client, MONGO_LEDGER, filter, update, false, NULL, e);
}

static bool create_ledger(struct mongo_store *m, const char *identity, struct err *e)
{
    bson_t *filter = BCON_NEW("_id", MONGO_LEDGER);
    bson_t *update = BCON_NEW("$setOnInsert", "{", "v", BCON_INT32(MONGO_FORMAT), "identity",
                              BCON_UTF8(identity), "epoch", BCON_INT64(clock_wall_ms(m->store.clock)), "}");
    return mongo_change(m->client, MONGO_LEDGER, filter, update, true, NULL, e);
}

/* Finishes the open batches, and adds the condition that no slot has one. A writer of an older version that
 * was asleep does not find its batch under the new epoch, takes it for done, and deletes its log. A batch
 * that cannot be finished stays open: it stops who needs it. */
static bool finish_open(struct mongo_store *m, const bson_t *ledger, bson_t *filter, struct err *e)
{
    for (int i = 0; i < MONGO_SLOTS; i++) {
        struct mongo_open open;
        const char *slot = mongo_slots[i];
        char path[MONGO_SLOT_PATH_BYTES], error[LOG_QUOTE_BYTES];
        if (mongo_open_of(ledger, slot, &open) && !mongo_recover(m, &open, e)) {
            if (e->retryable)
                return false;
            log_warn("batch_left_open", "writer=%s error=%s", slot, log_quote(e->text, error));
            continue;
        }
        mongo_match_nothing(filter, mongo_slot_path(slot, "open", path));
    }
    return true;
}

/* Deletes seats that an older version has left: it restored a copy of its own format over this one's. They
 * were read before the ledger had that format, so they are none that a writer has made since. */
static bool delete_seats(struct mongo_store *m, const struct mongo_seats *s, struct err *e)
{
    bool good = true;
    for (size_t i = 0; good && i < MONGO_SLOTS; i++) {
        if (s->has[i])
            good = mongo_delete_all(m->client, MONGO_LEDGER,
                                    BCON_NEW("_id", BCON_UTF8(mongo_text_at(&s->list[i], "_id")), "inc",
                                             BCON_INT64(mongo_number_at(&s->list[i], "inc", 0))),
                                    NULL, e);
    }
    return good;
}

/* Gives a format to a ledger of an older one. Writers of older versions know another epoch, so none of them
 * commits from then on. */
static bool write_format(struct mongo_store *m, const bson_t *ledger, struct err *e)
{
    int64_t now_ms = clock_wall_ms(m->store.clock), epoch = mongo_number_at(ledger, "epoch", 0);
    bson_t *filter = BCON_NEW("_id", MONGO_LEDGER, "epoch", BCON_INT64(epoch), "v", "{", "$not", "{", "$gte",
                              BCON_INT32(MONGO_FORMAT), "}", "}");
    bson_t *update = BCON_NEW("$set", "{", "v", BCON_INT32(MONGO_FORMAT), "needs", TALLYD_VERSION, "epoch",
                              BCON_INT64(now_ms > epoch ? now_ms : epoch + 1), "}");
    mongo_match_nothing(filter, "backups");
    if (finish_open(m, ledger, filter, e))
        return mongo_change(m->client, MONGO_LEDGER, filter, update, false, NULL, e);
    bson_destroy(filter);
    bson_destroy(update);
    return false;
}

/* No writer of an older version may live, since its jobs would not see what is open in seats; nor may one of
 * its backups go on, since it copies no seats. */
static bool raise_format(struct mongo_store *m, struct err *e)
{
    struct mongo_seats seats = {0};
    bson_t ledger = BSON_INITIALIZER;
    bool good = mongo_check_alone(m, e) && mongo_end_backups(m, e) &&
                mongo_read_seats(m->client, false, &seats, e) && mongo_read_home(m, &ledger, e);
    if (good && mongo_number_at(&ledger, "v", 1) < MONGO_FORMAT)
        good = (mongo_number_at(&ledger, "v", 1) >= MONGO_SEATS_FORMAT || delete_seats(m, &seats, e)) &&
               write_format(m, &ledger, e);
    mongo_seats_fini(&seats);
    bson_destroy(&ledger);
    return good;
}

/* Reads the ledger until it has all that this version needs. */
static bool make_ready(struct mongo_store *m, bson_t *ledger, struct err *e)
{
    char identity[MONGO_IDENTITY_BYTES];
    make_identity(identity);
    bool good = create_ledger(m, identity, e);
    bson_init(ledger);
    for (int tries = 0; good && tries < BEGIN_TRIES; tries++) {
        bson_destroy(ledger);
        good = mongo_read_home(m, ledger, e);
        bool has_identity = mongo_text_at(ledger, "identity")[0] != '\0';
        if (good && has_identity && mongo_number_at(ledger, "v", 1) >= MONGO_FORMAT)
            return true;
        if (good)
            good = has_identity ? raise_format(m, e) : give_identity(m, identity, e);
    }
    return good && err_set(e, EX_DATAERR, "%s: the ledger has no identity, or no format",
                           mongo_client_name(m->client));
}

bool mongo_begin_ledger(struct mongo_store *m, struct err *e)
{
    bson_t ledger;
    if (m->writer.refused.code != 0) {
        *e = m->writer.refused;
        return false;
    }
    if (m->writer.identity[0] != '\0') /* a ledger that is gone is not made again */
        return true;
    bool good = make_ready(m, &ledger, e);
    if (good) {
        snprintf(m->writer.identity, sizeof m->writer.identity, "%s", mongo_text_at(&ledger, "identity"));
        m->writer.epoch = mongo_number_at(&ledger, "epoch", 0);
    }
    bson_destroy(&ledger);
    return good;
}
