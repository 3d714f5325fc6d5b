#include "store/mongo/send/recover.h"

#include "base/clock.h"
#include "base/log.h"
#include "store/mongo/doc/unrolled.h"
#include "store/mongo/ledger/identity.h"
#include "store/mongo/ledger/ledger.h"
#include "store/mongo/ledger/seat.h"
#include "store/mongo/ledger/slots.h"
#include "store/mongo/send/batches.h"
#include "store/mongo/send/replay.h"
#include "store/mongo/send/send.h"
#include "store/mongo/wire/command.h"
#include "store/mongo/wire/field.h"

/* Begins a filter that finds the place if the batch is still open there. */
static void find_open(const struct mongo_store *m, const struct mongo_open *o, bson_t *filter)
{
    char path[MONGO_SLOT_PATH_BYTES];
    bson_init(filter);
    mongo_add_place(m, o->slot, o->is_home, filter);
    BSON_APPEND_INT64(filter, mongo_place_path(o->slot, o->is_home, "open.seq", path), o->seq);
}

/* A commit that was read may be lost with the primary that had it. This write changes nothing, but it is
 * acknowledged only when everything before it stays. If it matches nothing, somebody else was quicker. */
static bool confirm_open(struct mongo_store *m, const struct mongo_open *o, bool *is_open, struct err *e)
{
    char path[MONGO_SLOT_PATH_BYTES];
    const char *seq = mongo_place_path(o->slot, o->is_home, "open.seq", path);
    bson_t filter, *update = BCON_NEW("$set", "{", seq, BCON_INT64(o->seq), "}");
    find_open(m, o, &filter);
    return mongo_change(m->client, MONGO_LEDGER, &filter, update, false, is_open, e);
}

bool mongo_done(struct mongo_store *m, const struct mongo_open *o, struct err *e)
{
    char path[MONGO_SLOT_PATH_BYTES];
    const char *open = mongo_place_path(o->slot, o->is_home, "open", path);
    bson_t query, *update = BCON_NEW("$unset", "{", open, BCON_UTF8(""), "}");
    find_open(m, o, &query);
    /* If not found, somebody else was quicker. */
    return mongo_change(m->client, MONGO_LEDGER, &query, update, false, NULL, e);
}

/* If longer documents must have the batch before it is done, they get it, and those before it, from the
 * logs. */
static bool roll_up(struct mongo_store *m, const struct mongo_open *o, struct err *e)
{
    bson_t seat;
    if (!o->rolls_up)
        return true;
    bool good = mongo_confirm(m->client, o->slot, &seat, e) &&
                mongo_replay(m, o->slot, mongo_number_at(&seat, "rolled", o->prev), o->seq, e);
    bson_destroy(&seat);
    return good;
}

bool mongo_recover(struct mongo_store *m, const struct mongo_open *o, struct err *e)
{
    char id[MONGO_BATCH_BYTES];
    struct text packed = {0};
    struct mongo_open now = *o;
    bool is_open, good = confirm_open(m, o, &is_open, e);
    if (!good || !is_open)
        return good;
    good = mongo_read_log(m, o, &packed, e);
    bool is_whole = (int64_t)packed.len == o->bytes;
    mongo_batch_id(id, o, "");
    if (good && is_whole)
        good = (mongo_log_check(text_slice(&packed), e) ||
                err_prefix(e, "%s: %s \"%s\"", mongo_client_name(m->client), MONGO_BATCHES, id)) &&
               mongo_send(m, o, text_slice(&packed), e) && roll_up(m, o, e) && mongo_done(m, o, e);
    else if (good) /* another may have recovered it, and deleted the log */
        good = mongo_read_open(m, o, &now, e) &&
               (now.seq != o->seq || err_set(e, EX_DATAERR,
                                             "%s: of the log of a batch of %s, %zu bytes are left: restore "
                                             "the database from a backup",
                                             mongo_client_name(m->client), o->slot, packed.len));
    text_fini(&packed);
    return good;
}

bool mongo_finish_slot(struct mongo_store *m, const bson_t *ledger, const char *slot, struct err *e)
{
    struct mongo_open open;
    bson_t seat = BSON_INITIALIZER;
    (void)mongo_seat_of(ledger, slot, &seat);
    return (!mongo_open_of(ledger, slot, &open) || mongo_recover(m, &open, e)) &&
           mongo_catch_up(m, slot, &seat, e);
}

/* Has a writer that is gone left something in the slot? */
static bool is_abandoned(const struct mongo_store *m, const bson_t *ledger, const char *slot)
{
    struct mongo_open open;
    bson_t seat = BSON_INITIALIZER;
    (void)mongo_seat_of(ledger, slot, &seat);
    return (mongo_open_of(ledger, slot, &open) || mongo_last_unrolled(&seat) > 0) &&
           strcmp(slot, m->writer.slot) != 0 &&
           !mongo_slot_lives(ledger, slot, clock_wall_ms(m->store.clock));
}

/* Nobody else may come for these slots. One that cannot be finished stops only its next writer, and writers
 * that claim its partitions. */
bool mongo_recover_abandoned(struct mongo_store *m, const bson_t *ledger, bool goes_on, struct err *e)
{
    for (int i = 0; i < MONGO_SLOTS; i++) {
        char error[LOG_QUOTE_BYTES];
        if (!is_abandoned(m, ledger, mongo_slots[i]) || mongo_finish_slot(m, ledger, mongo_slots[i], e))
            continue;
        if (!goes_on || e->retryable)
            return false;
        log_limited(LOG_LEVEL_WARN, "batch_left_open", "writer=%s error=%s", mongo_slots[i],
                    log_quote(e->text, error));
    }
    return true;
}
