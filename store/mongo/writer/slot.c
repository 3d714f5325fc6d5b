#include "store/mongo/writer/slot.h"

#include "base/clock.h"
#include "base/failpoint.h"
#include "store/mongo/doc/unrolled.h"
#include "store/mongo/ledger/copies.h"
#include "store/mongo/ledger/identity.h"
#include "store/mongo/ledger/ledger.h"
#include "store/mongo/ledger/peers.h"
#include "store/mongo/ledger/seat.h"
#include "store/mongo/ledger/slots.h"
#include "store/mongo/send/recover.h"
#include "store/mongo/send/replay.h"
#include "store/mongo/wire/command.h"
#include "store/mongo/wire/field.h"
#include "store/mongo/writer/begin.h"
#include "store/mongo/writer/crowd.h"
#include "store/mongo/writer/longer.h"
#include "store/mongo/writer/position.h"
#include "store/mongo/writer/torn.h"

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

/* If several writers come at once, the one that takes its slot last sees the others. */
static bool be_let_in(struct mongo_store *m, const bson_t *ledger, struct err *e)
{
    return m->writer.since_ms > 0 ? mongo_may_go_on(m, ledger, e)
                                  : mongo_may_begin(m, m->reports, m->store.report_count, ledger, e) &&
                                        mongo_admit(m, ledger, e);
}

/* The ledger first: from then on, nobody claims under an earlier incarnation. */
static bool take_home(struct mongo_store *m, const bson_t *ledger, bool *taken, bson_t *after, struct err *e)
{
    const char *slot = m->writer.slot;
    char path[MONGO_SLOT_PATH_BYTES], host[MONGO_HOST_BYTES];
    const int64_t inc = mongo_slot_at(ledger, slot, "inc", 0);
    bson_t query = BSON_INITIALIZER, update = BSON_INITIALIZER, set = BSON_INITIALIZER;
    mongo_add_ledger(m, &query);
    mongo_match_number(&query, mongo_slot_path(slot, "inc", path), inc, inc > 0);
    mongo_add_restored(&query);
    m->writer.inc = fresh(m, inc + 1);
    BSON_APPEND_INT64(&set, mongo_slot_path(slot, "inc", path), m->writer.inc);
    BSON_APPEND_UTF8(&set, mongo_slot_path(slot, "host", path), mongo_name_host(host) ? host : "");
    BSON_APPEND_INT64(&set, mongo_slot_path(slot, "pid", path), getpid());
    BSON_APPEND_DATE_TIME(&set, mongo_slot_path(slot, "lease", path), clock_wall_ms(m->store.clock));
    mongo_add_who(m, &set);
    mongo_add_operator(&update, "$set", &set);
    return mongo_modify(m->client, MONGO_LEDGER, &query, &update, taken, after, e);
}

/* Adds the seat's entries that the ledger does not name to `unset`: nobody asks this seat for their
 * positions. *is_named: it names any. */
static void add_useless(struct mongo_store *m, const bson_t *ledger, const bson_t *seat, bson_t *unset,
                        bool *is_named)
{
    bson_iter_t at;
    bson_t entry;
    bool more = mongo_begin_members(ledger, "partitions", &at);
    *is_named = false;
    while (more && !*is_named && mongo_next_document(&at, &entry))
        *is_named = mongo_is_from(&entry, m->writer.slot);
    for (more = mongo_begin_members(seat, "partitions", &at); more && bson_iter_next(&at);) {
        const char *key = bson_iter_key(&at);
        if (!mongo_find_entry(m, ledger, key, &entry) || !mongo_is_from(&entry, m->writer.slot))
            BSON_APPEND_UTF8(unset, mongo_entry_path(m, key), "");
    }
}

/* Below every incarnation, and positive: an audit takes a seat without one for damaged. */
static bool make_seat(struct mongo_store *m, struct err *e)
{
    bson_t *update = BCON_NEW("$setOnInsert", "{", "inc", BCON_INT64(1), "}");
    return mongo_change(m->client, MONGO_LEDGER, BCON_NEW("_id", BCON_UTF8(m->writer.slot)), update, true,
                        NULL, e);
}

/* Reads the seat, and makes it for the first writer of the slot. `unset`: as add_useless() says. */
static bool find_seat(struct mongo_store *m, const bson_t *ledger, bson_t *unset, struct err *e)
{
    bson_t seat;
    bool is_named, good = mongo_confirm(m->client, m->writer.slot, &seat, e);
    bool is_missing = good && bson_empty(&seat);
    if (good)
        add_useless(m, ledger, &seat, unset, &is_named);
    if (is_missing)
        good = is_named ? mongo_miss_seat(m->client, m->writer.slot, e) : make_seat(m, e);
    bson_destroy(&seat);
    return good;
}

/* Raises the incarnation in the seat, if it is lower there. *taken: it has this writer's. `seat` is the seat
 * since then. */
static bool take_seat(struct mongo_store *m, const bson_t *ledger, bool *taken, bson_t *seat, struct err *e)
{
    bson_t unset = BSON_INITIALIZER;
    bson_init(seat);
    bool good = find_seat(m, ledger, &unset, e);
    bson_t *update = BCON_NEW("$set", "{", "inc", BCON_INT64(m->writer.inc), "}");
    mongo_add_operator(update, "$unset", &unset);
    if (!good) {
        bson_destroy(update);
        return false;
    }
    bson_t *query =
        BCON_NEW("_id", BCON_UTF8(m->writer.slot), "inc", "{", "$lt", BCON_INT64(m->writer.inc), "}");
    good = mongo_modify(m->client, MONGO_LEDGER, query, update, taken, seat, e);
    if (good && !*taken) { /* the driver may have sent it twice, or another took the slot meanwhile */
        bson_destroy(seat);
        good = mongo_confirm(m->client, m->writer.slot, seat, e);
        *taken = good && mongo_number_at(seat, "inc", -1) == m->writer.inc;
    }
    return good;
}

/* Takes the numbers of the slot from ledger and seat. A writer of format 4 noted its gap before it committed,
 * and its clock may have been ahead: so no number within a gap of the ledger is used. */
static void note_slot(struct mongo_store *m, const bson_t *ledger, const bson_t *seat)
{
    struct mongo_writer *w = &m->writer;
    const int64_t unused = mongo_slot_at(ledger, w->slot, "gap.before", 0) - 1;
    w->home_seq = mongo_seq_of(ledger, w->slot);
    w->seat_seq = mongo_number_at(seat, "seq", 0);
    w->committed = w->home_seq > w->seat_seq ? w->home_seq : w->seat_seq;
    w->number = fresh(m, w->committed > unused ? w->committed : unused);
    w->first = w->number + 1;
    mongo_note_time(m, ledger);
    mongo_note_time(m, seat);
    w->is_done = true;
    w->logs_deleted = 0;
    w->kept_ms = w->leased_ms = clock_mono_ms(m->store.clock);
    w->batches_to_ask = MONGO_BATCHES_ASKED;
}

/* Finishes the batch that is open in either place, and those of other writers that are gone. */
static bool finish_open(struct mongo_store *m, const bson_t *home, const bson_t *seat, struct err *e)
{
    struct mongo_open own;
    bson_t ledger;
    if ((mongo_open_of(home, m->writer.slot, &own) && !mongo_recover(m, &own, e)) ||
        (mongo_seat_open(seat, m->writer.slot, &own) && !mongo_recover(m, &own, e)))
        return false;
    bool good = mongo_read_ledger(m, &ledger, e) && mongo_recover_abandoned(m, &ledger, true, e);
    bson_destroy(&ledger);
    return good;
}

/* Makes longer documents whole, and says so in the seat: when this writer deletes logs, those of earlier ones
 * go, too, whatever their numbers. */
static bool take_longer(struct mongo_store *m, const bson_t *seat, struct err *e)
{
    if (!mongo_catch_up(m, m->writer.slot, seat, e))
        return false;
    mongo_longer_take(m, mongo_number_at(seat, "rolled", 0));
    return m->longer.stored == m->longer.rolled || mongo_tell_rolled(m, e);
}

/* Makes a slot of the ledger usable that this writer has taken and been let into. */
static bool move_in(struct mongo_store *m, const bson_t *ledger, bool *taken, struct err *e)
{
    bson_t seat;
    bool good = take_seat(m, ledger, taken, &seat, e);
    if (good && *taken) {
        note_slot(m, ledger, &seat);
        good = finish_open(m, ledger, &seat, e) && take_longer(m, &seat, e);
    }
    bson_destroy(&seat);
    return good;
}

/* A slot is given back if its writer is refused, or fails for a reason that may pass: it soon tries again,
 * and would leave one slot after the other that passes for alive. A slot that is damaged stays taken while
 * this process lives, or its lease for writers of other machines: so they take others meanwhile. */
static bool take(struct mongo_store *m, const bson_t *ledger, bool *taken, struct err *e)
{
    struct err ignored;
    bson_t after;
    bool good = take_home(m, ledger, taken, &after, e);
    if (good && *taken) {
        bool is_in = be_let_in(m, &after, e);
        failpoint(FAILPOINT_SLOT_TAKEN);
        good = is_in && move_in(m, &after, taken, e);
        if (!good && (!is_in || e->retryable) && m->writer.slot[0] != '\0')
            (void)!mongo_set_lease(m, 0, &ignored);
    }
    bson_destroy(&after);
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

bool mongo_keep_slot(struct mongo_store *m, struct err *e)
{
    int64_t now_ms = clock_mono_ms(m->store.clock);
    bson_t ledger;
    if (now_ms - m->writer.kept_ms < KEEP_MS)
        return true;
    if (!mongo_set_lease(m, clock_wall_ms(m->store.clock), e))
        return false;
    m->writer.kept_ms = now_ms;
    /* A commit in the seat does not see that another has taken the slot in the ledger alone. */
    bool good = mongo_read_ledger(m, &ledger, e) && mongo_check_ledger(m, &ledger, e) &&
                (mongo_slot_at(&ledger, m->writer.slot, "inc", -1) == m->writer.inc ||
                 mongo_lose_slot(m, &ledger, e)) &&
                mongo_may_go_on(m, &ledger, e) && mongo_check_generations(m, e) &&
                mongo_recover_abandoned(m, &ledger, true, e);
    bson_destroy(&ledger);
    return good;
}

/* The name of a slot of which longer documents lack batches; NULL: none. */
static const char *find_unrolled(const bson_t *ledger)
{
    bson_t seat;
    for (int i = 0; i < MONGO_SLOTS; i++) {
        if (mongo_seat_of(ledger, mongo_slots[i], &seat) && mongo_last_unrolled(&seat) > 0)
            return mongo_slots[i];
    }
    return NULL;
}

bool mongo_hold(struct store *st, struct err *e)
{
    struct mongo_store *m = mongo_of(st);
    struct mongo_open open[MONGO_SLOTS];
    bson_t ledger;
    bool good = mongo_read_ledger(m, &ledger, e);
    const char *slot = good && mongo_all_open(&ledger, open) > 0 ? open[0].slot : find_unrolled(&ledger);
    if (good && slot != NULL)
        good = err_set_retryable(e, EX_TEMPFAIL,
                                 "%s: a batch of writer %s is under way: stop the writers first; if one was "
                                 "killed, start it once more to finish its batch",
                                 mongo_client_name(m->client), slot);
    bson_destroy(&ledger);
    return good;
}
