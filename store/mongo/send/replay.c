#include "store/mongo/send/replay.h"

#include "base/failpoint.h"
#include "store/mongo/doc/unrolled.h"
#include "store/mongo/ledger/seat.h"
#include "store/mongo/ledger/slots.h"
#include "store/mongo/send/batches.h"
#include "store/mongo/send/send.h"
#include "store/mongo/wire/command.h"
#include "store/mongo/wire/field.h"

#include <inttypes.h>
#include <stdlib.h>

/* How far the slot is rolled up, by its seat. *inc: of the slot, as this replay saw it first; -1: it did not
 * yet. A restore raises it. */
static bool read_rolled(struct mongo_store *m, const char *slot, int64_t *inc, int64_t *rolled, struct err *e)
{
    bson_t seat;
    bool good = mongo_confirm(m->client, slot, &seat, e);
    const int64_t now = mongo_number_at(&seat, "inc", 0);
    *rolled = mongo_number_at(&seat, "rolled", 0);
    bson_destroy(&seat);
    if (good && *inc >= 0 && *inc != now)
        good = err_set_retryable(e, EX_TEMPFAIL, "%s: another writer took slot %s, and rolls it up",
                                 mongo_client_name(m->client), slot);
    *inc = now;
    return good;
}

static bool lack_log(const struct mongo_store *m, const char *slot, int64_t seq, struct err *e)
{
    return err_set(e, EX_DATAERR,
                   "%s: the log of batch %" PRId64
                   " of %s is gone, or not whole, and documents of months lack it: restore the database from "
                   "a backup",
                   mongo_client_name(m->client), seq, slot);
}

/* Lists the batches after `after` that the seat does not call rolled up by now, the last one first, each
 * found by `prev` of the next one. Logs of batches that are rolled up may be deleted: then one that was found
 * under the number of such a batch may be of a writer that had lost the slot, and never committed it. */
static bool list_chain(struct mongo_store *m, const char *slot, int64_t after, int64_t to, int64_t *inc,
                       struct mongo_logs *chain, struct err *e)
{
    struct mongo_logs all = {.count = 0};
    int64_t rolled;
    bool good = mongo_list_logs(m, slot, &all, e) && read_rolled(m, slot, inc, &rolled, e);
    for (int64_t seq = to; good && seq > after && seq > rolled;) {
        const struct mongo_open *log = mongo_find_log(&all, seq);
        if (log == NULL || log->prev >= seq) {
            good = lack_log(m, slot, seq, e);
            break;
        }
        mongo_logs_add(chain, log);
        seq = log->prev;
    }
    free(all.list);
    return good;
}

/* A log that is not whole is needed no more if its batch is rolled up. */
static bool replay_one(struct mongo_store *m, const struct mongo_open *o, int64_t *inc, struct err *e)
{
    char id[MONGO_BATCH_BYTES];
    struct text packed = {0};
    int64_t rolled;
    bool is_whole, good = mongo_read_longer(m, o, &packed, &is_whole, e);
    mongo_batch_id(id, o, "");
    if (good && !is_whole)
        good =
            read_rolled(m, o->slot, inc, &rolled, e) && (rolled >= o->seq || lack_log(m, o->slot, o->seq, e));
    else if (good && packed.len > 0)
        good = (mongo_log_check(text_slice(&packed), e) ||
                err_prefix(e, "%s: %s \"%s\"", mongo_client_name(m->client), MONGO_BATCHES, id)) &&
               mongo_send(m, o, text_slice(&packed), e);
    text_fini(&packed);
    failpoint(FAILPOINT_REPLAY_SENT);
    return good;
}

bool mongo_replay(struct mongo_store *m, const char *slot, int64_t after, int64_t to, struct err *e)
{
    struct mongo_logs chain = {.count = 0};
    int64_t rolled, inc = strcmp(slot, m->writer.slot) == 0 ? m->writer.inc : -1;
    bool good = list_chain(m, slot, after, to, &inc, &chain, e);
    /* A command that drops a report replays first: a log that is sent after it makes documents again. */
    for (size_t i = chain.count; good && i > 0; i--)
        good = mongo_renew_lease(m, e) && read_rolled(m, slot, &inc, &rolled, e) &&
               (chain.list[i - 1].seq <= rolled || replay_one(m, &chain.list[i - 1], &inc, e));
    free(chain.list);
    return good;
}

/* Only if nothing was committed or rolled up since the seat was read: its writer knows best. */
static bool note_rolled(struct mongo_store *m, const char *slot, const bson_t *seat, int64_t to,
                        struct err *e)
{
    const int64_t seq = mongo_number_at(seat, "seq", 0), rolled = mongo_number_at(seat, "rolled", 0);
    bson_t *filter = BCON_NEW("_id", BCON_UTF8(slot), "rolled", BCON_INT64(rolled));
    bson_t *update = BCON_NEW("$set", "{", "rolled", BCON_INT64(to), "}", "$unset", "{", "unrolled", "", "}");
    mongo_match_number(filter, "seq", seq, seq > 0);
    return mongo_change(m->client, MONGO_LEDGER, filter, update, false, NULL, e);
}

bool mongo_catch_up(struct mongo_store *m, const char *slot, const bson_t *read, struct err *e)
{
    bson_t seat, home = BSON_INITIALIZER;
    char path[MONGO_SLOT_BYTES + 16];
    if (mongo_last_unrolled(read) == 0)
        return true;
    /* `read` may come from a former primary, and its last commit be lost: no document may get that batch. */
    bool good = mongo_confirm(m->client, slot, &seat, e);
    if (good) {
        bson_destroy(&home);
        good = mongo_confirm(m->client, MONGO_LEDGER, &home, e);
    }
    snprintf(path, sizeof path, "writers.%s.seq", slot);
    const int64_t at_home = mongo_number_at(&home, path, 0), seq = mongo_number_at(&seat, "seq", 0),
                  to = at_home > seq ? at_home : seq;
    if (good && mongo_last_unrolled(&seat) > 0)
        good = mongo_replay(m, slot, mongo_number_at(&seat, "rolled", 0), to, e) &&
               note_rolled(m, slot, &seat, to, e);
    bson_destroy(&home);
    bson_destroy(&seat);
    return good;
}
