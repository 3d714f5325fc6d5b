/* Is it still the database that this handle counts into, and do its documents belong to its ledger?
 * (docs/LEDGER.md) A database that was put back, restored, or lost acknowledged writes continues from an
 * older state. A writer that knows a later state stops. */
#include "store/mongo/ledger/identity.h"

#include "base/check.h"
#include "base/clock.h"
#include "store/mongo/ledger/ledger.h"
#include "store/mongo/ledger/seat.h"
#include "store/mongo/wire/field.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#define FAULT_BYTES 160

/* ---- the ledger */

void mongo_add_ledger(const struct mongo_store *m, bson_t *filter)
{
    BSON_APPEND_UTF8(filter, "_id", MONGO_LEDGER);
    if (m->writer.identity[0] == '\0')
        return;
    BSON_APPEND_UTF8(filter, "identity", m->writer.identity);
    BSON_APPEND_INT64(filter, "epoch", m->writer.epoch);
}

void mongo_add_own(const struct mongo_store *m, bson_t *filter)
{
    char inc[MONGO_SLOT_PATH_BYTES];
    mongo_add_ledger(m, filter);
    BSON_APPEND_INT64(filter, mongo_slot_path(m->writer.slot, "inc", inc), m->writer.inc);
}

void mongo_add_place(const struct mongo_store *m, const char *slot, bool is_home, bson_t *filter)
{
    if (is_home)
        mongo_add_ledger(m, filter);
    else
        BSON_APPEND_UTF8(filter, "_id", slot);
}

const char *mongo_place_path(const char *slot, bool is_home, const char *name,
                             char buf[MONGO_SLOT_PATH_BYTES])
{
    return is_home ? mongo_slot_path(slot, name, buf) : name;
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
    return strcmp(mongo_text_at(ledger, "identity"), m->writer.identity) == 0 &&
           mongo_number_at(ledger, "epoch", 0) == m->writer.epoch;
}

/* What the ledger, or the seat, says of a slot. */
struct slot_place {
    int64_t inc, seq, known; /* `known`: the last number that this writer committed or found there */
    bool is_open, is_last;   /* `is_last`: the last batch, or the one under way, is committed there */
};

/* Is the place in a state that this writer has not left it in? Then `fault` says which. */
static bool has_fault(const struct mongo_store *m, const struct slot_place *p, char fault[FAULT_BYTES])
{
    const struct mongo_writer *w = &m->writer;
    const bool is_ours = p->inc == w->inc;
    bool is_under_way = p->is_last && m->batch.step == STEP_COMMITTING && p->seq == w->number;
    if (p->inc < w->inc)
        snprintf(fault, FAULT_BYTES, "slot %s of its ledger is in the state before this tallyd took it",
                 w->slot);
    else if (p->seq < p->known)
        snprintf(fault, FAULT_BYTES, "the last batch of slot %s was %" PRId64 ", and is now %" PRId64,
                 w->slot, p->known, p->seq);
    else if (is_ours && p->seq != p->known && !is_under_way)
        snprintf(fault, FAULT_BYTES, "its ledger has a batch %" PRId64 " of slot %s that was never written",
                 p->seq, w->slot);
    else if (is_ours && p->seq == p->known && w->is_done && p->is_open)
        snprintf(fault, FAULT_BYTES, "batch %" PRId64 " of slot %s was done, and is open now", p->seq,
                 w->slot);
    else
        return false;
    return true;
}

static bool check_place(struct mongo_store *m, const struct slot_place *p, struct err *e)
{
    char fault[FAULT_BYTES];
    return !has_fault(m, p, fault) || mongo_refuse(m, e, "%s", fault);
}

static void read_seat(const bson_t *seat, struct slot_place *p)
{
    bson_iter_t it;
    p->inc = mongo_number_at(seat, "inc", -1);
    p->seq = mongo_number_at(seat, "seq", 0);
    p->is_open = bson_iter_init_find(&it, seat, "open");
}

/* The seats were read after the ledger, and the answer may be an old one. So a writer stops only if its own
 * seat, read again by an update, is still wrong. */
static bool check_seat(struct mongo_store *m, const bson_t *ledger, struct err *e)
{
    char fault[FAULT_BYTES];
    bson_t seat = BSON_INITIALIZER;
    struct slot_place p = {.known = m->writer.seat_seq, .is_last = !m->writer.is_home};
    (void)mongo_seat_of(ledger, m->writer.slot, &seat);
    read_seat(&seat, &p);
    if (!has_fault(m, &p, fault))
        return true;
    bool good = mongo_confirm(m->client, m->writer.slot, &seat, e);
    if (good)
        read_seat(&seat, &p);
    bson_destroy(&seat);
    return good && check_place(m, &p, e);
}

/* Each place by itself: the seat was read later than the ledger. */
static bool check_slot(struct mongo_store *m, const bson_t *ledger, struct err *e)
{
    const struct mongo_writer *w = &m->writer;
    struct mongo_open open;
    struct slot_place home = {.known = w->home_seq, .is_last = w->is_home};
    home.is_open = mongo_open_of(ledger, w->slot, &open) && open.is_home;
    home.inc = mongo_slot_at(ledger, w->slot, "inc", -1);
    home.seq = mongo_slot_at(ledger, w->slot, "home_seq", 0);
    return check_place(m, &home, e) && check_seat(m, ledger, e);
}

bool mongo_check_ledger(struct mongo_store *m, const bson_t *ledger, struct err *e)
{
    if (bson_empty(ledger))
        return mongo_refuse(m, e, "its ledger is gone");
    if (strcmp(mongo_text_at(ledger, "identity"), m->writer.identity) != 0)
        return mongo_refuse(m, e, "the identity in its ledger was %s, and is now \"%.64s\"",
                            m->writer.identity, mongo_text_at(ledger, "identity"));
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

/* The number of a slot's last batch, in the ledger or in its seat. */
static bool last_number(struct mongo_client *client, const char *slot, int64_t *seq, struct err *e)
{
    bson_t ledger, seat;
    bool good = mongo_confirm(client, MONGO_LEDGER, &ledger, e);
    bool has_seats = good && mongo_number_at(&ledger, "v", 1) >= MONGO_SEATS_FORMAT;
    *seq = good ? mongo_seq_of(&ledger, slot) : 0;
    bson_destroy(&ledger);
    if (!has_seats)
        return good;
    good = mongo_confirm(client, slot, &seat, e);
    int64_t in_seat = good ? mongo_number_at(&seat, "seq", 0) : 0;
    *seq = in_seat > *seq ? in_seat : *seq;
    bson_destroy(&seat);
    return good;
}

bool mongo_check_applied(struct mongo_client *client, const struct mongo_open *of, const char *collection,
                         const char *id, int64_t applied, struct err *e)
{
    int64_t seq;
    if (of->prev < 0 || applied == of->seq)
        return true;
    if (of->is_roll_up && applied > of->prev && applied < of->seq)
        return err_set_retryable(e, EX_TEMPFAIL, "%s: others roll up the batches of slot %s from their logs",
                                 mongo_client_name(client), of->slot);
    bool good = last_number(client, of->slot, &seq, e);
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
