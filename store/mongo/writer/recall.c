#include "store/mongo/writer/recall.h"

#include "base/failpoint.h"
#include "base/mem.h"
#include "store/mongo/ledger/identity.h"
#include "store/mongo/ledger/ledger.h"
#include "store/mongo/ledger/seat.h"
#include "store/mongo/send/recover.h"
#include "store/mongo/wire/command.h"
#include "store/mongo/wire/field.h"
#include "store/mongo/writer/position.h"

bool mongo_covers(const struct mongo_names *keys, const bson_t *document, const char *path)
{
    bson_iter_t at, name;
    for (bool more = mongo_begin_members(document, path, &at); more && bson_iter_next(&at);) {
        if (mongo_find_in(&at, "partition", &name) && BSON_ITER_HOLDS_UTF8(&name) &&
            mongo_names_find(keys, slice_text(bson_iter_utf8(&name, NULL))) != 0)
            return true;
    }
    return false;
}

/* ---- recall */

/* Takes a seat's position if it was written under a later claim than the one found so far. *held: no later
 * claim than this one has recalled it. */
static void take_place(struct mongo_claims *c, size_t i, const bson_t *seat, bool *held)
{
    bson_t entry;
    const struct mongo_partition *p = &c->partitions[i];
    if (!mongo_find_entry(c->m, seat, p->key, &entry))
        return;
    int64_t since = mongo_number_at(&entry, "held", 0);
    *held = *held && mongo_number_at(&entry, "fence", 0) == p->epoch;
    if (since > c->held[i] && mongo_read_place(&entry, &c->ranges[i]))
        c->held[i] = since;
}

/* Raises the fences in one seat. `is_its`: by partition, the ledger names this seat. */
static bool recall_seat(struct mongo_claims *c, const char *slot, const bool *is_its, bool *held,
                        struct err *e)
{
    struct mongo_store *m = c->m;
    bson_t update = BSON_INITIALIZER, max = BSON_INITIALIZER, seat;
    bson_t *query = BCON_NEW("_id", BCON_UTF8(slot));
    bool found;
    for (size_t i = 0; i < c->count; i++) {
        if (is_its[i])
            BSON_APPEND_INT64(&max, mongo_partition_member(m, &c->partitions[i], "fence"),
                              c->partitions[i].epoch);
    }
    mongo_add_operator(&update, "$max", &max);
    bool good = (mongo_modify(m->client, MONGO_LEDGER, query, &update, &found, &seat, e) ||
                 mongo_explain_full(m, slot, e)) &&
                (found || mongo_miss_seat(m->client, slot, e));
    mongo_note_time(m, &seat);
    mongo_warn_if_full(m, &seat);
    for (size_t i = 0; good && i < c->count; i++) {
        if (is_its[i])
            take_place(c, i, &seat, held);
    }
    if (good && strcmp(slot, m->writer.slot) != 0 && mongo_covers(&c->keys, &seat, "open.ranges"))
        (void)mongo_seat_open(&seat, slot, &c->open[c->open_count++]);
    bson_destroy(&seat);
    return good;
}

/* The ledger's own position. If the file was taken out there, it counts that there is none. */
static void take_home(struct mongo_claims *c, size_t i, const bson_t *entry)
{
    struct range *r = &c->ranges[i];
    r->to = -1;
    (void)mongo_read_place(entry, r);
    c->held[i] = mongo_number_at(entry, "held", 0);
}

/* Reads the ledger's own positions. entries: bytes of each partition's member, borrowed from the ledger. */
static void take_homes(struct mongo_claims *c, const bson_t *ledger, struct slice *entries)
{
    for (size_t i = 0; i < c->count; i++) {
        bson_t entry = BSON_INITIALIZER;
        if (mongo_find_entry(c->m, ledger, c->partitions[i].key, &entry))
            entries[i] = (struct slice){(const char *)bson_get_data(&entry), entry.len};
        take_home(c, i, &entry);
        c->partitions[i].is_settled = true;
    }
}

static bool names_seat(struct slice entry, const char *slot)
{
    bson_t partition;
    return entry.len > 0 && bson_init_static(&partition, (const uint8_t *)entry.ptr, entry.len) &&
           mongo_is_from(&partition, slot);
}

bool mongo_recall(struct mongo_claims *c, const bson_t *ledger, bool *held, struct err *e)
{
    struct slice *entries = xcalloc(c->count + 1, sizeof *entries);
    bool *is_its = xcalloc(c->count + 1, sizeof *is_its), good = true;
    *held = true;
    mongo_note_time(c->m, ledger);
    take_homes(c, ledger, entries);
    for (int s = 0; good && s < MONGO_SLOTS; s++) {
        const char *slot = mongo_slots[s];
        bool any = false;
        for (size_t i = 0; i < c->count; i++) {
            is_its[i] = names_seat(entries[i], slot);
            any |= is_its[i];
            if (is_its[i] && strcmp(slot, c->m->writer.slot) != 0)
                c->partitions[i].is_settled = false;
        }
        good = !any || recall_seat(c, slot, is_its, held, e);
    }
    free(is_its);
    free(entries);
    return good;
}

/* ---- home */

bool mongo_bring_home(const struct mongo_claims *c, bool *held, struct err *e)
{
    struct mongo_store *m = c->m;
    bson_t query = BSON_INITIALIZER, update = BSON_INITIALIZER, set = BSON_INITIALIZER;
    mongo_add_own(m, &query);
    for (size_t i = 0; i < c->count; i++) {
        const struct mongo_partition *p = &c->partitions[i];
        mongo_add_claim(m, p, &query);
        BCON_APPEND(&query, mongo_partition_member(m, p, "held"), "{", "$not", "{", "$gte",
                    BCON_INT64(p->epoch), "}", "}");
        BSON_APPEND_INT64(&set, mongo_partition_member(m, p, "held"), p->epoch);
        BCON_APPEND(&set, mongo_partition_member(m, p, "from"), "[", "]");
        if (!p->is_new)
            mongo_add_position(m, p, &c->ranges[i], &set);
    }
    mongo_add_operator(&update, "$set", &set);
    BCON_APPEND(&update, "$max", "{", "at", BCON_DATE_TIME(m->writer.at_ms), "}");
    failpoint(FAILPOINT_CLAIM_HOME);
    return mongo_change(m->client, MONGO_LEDGER, &query, &update, false, held, e) ||
           mongo_explain_full(m, MONGO_LEDGER, e);
}

/* ---- afterwards */

static bool is_to_settle(const struct mongo_partition *p)
{
    return p->is_claimed && !p->is_first && !p->is_settled && !p->is_home;
}

/* One update for all. If a claim is lost, all stay as they are: then the next claim recalls more seats. */
static bool settle(struct mongo_store *m, bool *held, struct err *e)
{
    bson_t query = BSON_INITIALIZER, update = BSON_INITIALIZER, set = BSON_INITIALIZER;
    mongo_add_own(m, &query);
    for (size_t i = 0; i < m->writer.partition_count; i++) {
        const struct mongo_partition *p = &m->writer.partitions[i];
        if (!is_to_settle(p))
            continue;
        mongo_add_claim(m, p, &query);
        BCON_APPEND(&set, mongo_partition_member(m, p, "from"), "[", BCON_UTF8(m->writer.slot), "]");
    }
    mongo_add_operator(&update, "$set", &set);
    *held = true;
    if (!bson_empty(&update)) {
        failpoint(FAILPOINT_CLAIM_SETTLING);
        return mongo_change(m->client, MONGO_LEDGER, &query, &update, false, held, e);
    }
    bson_destroy(&update);
    bson_destroy(&query);
    return true;
}

/* Nothing is to be settled of a claim that another one has followed. */
static bool pass_over_lost(struct mongo_store *m, struct err *e)
{
    bson_t ledger;
    bool good = mongo_read_home(m, &ledger, e);
    for (size_t i = 0; good && i < m->writer.partition_count; i++) {
        struct mongo_partition *p = &m->writer.partitions[i];
        if (is_to_settle(p))
            p->is_settled = mongo_number_at(&ledger, mongo_partition_member(m, p, "epoch"), 0) != p->epoch;
    }
    bson_destroy(&ledger);
    return good;
}

bool mongo_settle_claims(struct mongo_store *m, struct err *e)
{
    bool held;
    if (!settle(m, &held, e) || (!held && (!pass_over_lost(m, e) || !settle(m, &held, e))))
        return false;
    for (size_t i = 0; held && i < m->writer.partition_count; i++)
        m->writer.partitions[i].is_settled |= is_to_settle(&m->writer.partitions[i]);
    return true;
}

/* Without a claim, a failover may undo what a seat shows: so each seat is confirmed. */
static bool look_at_seat(struct mongo_store *m, const char *key, const struct mongo_names *keys,
                         const char *slot, int64_t *best, int64_t *next, struct err *e)
{
    bson_t seat, entry;
    struct mongo_open open;
    bool good = mongo_confirm(m->client, slot, &seat, e) &&
                (!bson_empty(&seat) || mongo_miss_seat(m->client, slot, e));
    mongo_note_time(m, &seat);
    if (good && mongo_find_entry(m, &seat, key, &entry)) {
        int64_t held = mongo_number_at(&entry, "held", 0), there = mongo_number_at(&entry, "next", -1);
        if (held > *best && there >= 0) {
            *best = held;
            *next = there;
        }
    }
    good = good && (strcmp(slot, m->writer.slot) == 0 || !mongo_covers(keys, &seat, "open.ranges") ||
                    !mongo_seat_open(&seat, slot, &open) || mongo_recover(m, &open, e));
    bson_destroy(&seat);
    return good;
}

bool mongo_look_at_seats(struct mongo_store *m, const char *key, const bson_t *ledger, int64_t *next,
                         struct err *e)
{
    bson_t entry;
    struct mongo_names keys;
    bool good = true;
    *next = -1;
    mongo_note_time(m, ledger);
    if (!mongo_find_entry(m, ledger, key, &entry))
        return true;
    mongo_names_init(&keys);
    (void)mongo_names_add(&keys, slice_text(key));
    int64_t best = mongo_number_at(&entry, "held", 0);
    *next = mongo_number_at(&entry, "next", -1);
    for (int s = 0; good && s < MONGO_SLOTS; s++)
        good = !mongo_is_from(&entry, mongo_slots[s]) ||
               look_at_seat(m, key, &keys, mongo_slots[s], &best, next, e);
    mongo_names_fini(&keys);
    return good;
}
