/* Commits a batch: one compare-and-set of the slot's seat, or of the ledger (docs/LEDGER.md). */
#include "store/mongo/writer/commit.h"

#include "base/clock.h"
#include "store/mongo/ledger/identity.h"
#include "store/mongo/ledger/ledger.h"
#include "store/mongo/ledger/peers.h"
#include "store/mongo/ledger/seat.h"
#include "store/mongo/wire/field.h"
#include "store/mongo/writer/longer.h"
#include "store/mongo/writer/partition.h"
#include "store/mongo/writer/past.h"
#include "store/mongo/writer/position.h"

#include <inttypes.h>

/* A partition without a position is claimed, and not counted. Its epoch stays, so that no late commit finds
 * it. */
static void remove_position(struct mongo_store *m, const struct mongo_partition *p, bson_t *unset)
{
    static const char *const members[] = {"next", "label", "tail_hash", "tail_len", "latest_ms", "witnesses"};
    for (size_t i = 0; i < COUNT_OF(members); i++)
        BSON_APPEND_UTF8(unset, mongo_partition_member(m, p, members[i]), "");
}

/* Takes part in the changes of the partition's books that are no counting from the position on: no other one
 * was made since `fills` was read, and the next one finds another number. */
static void add_fill(struct mongo_store *m, const char *key, int64_t fills, bson_t *query, bson_t *set)
{
    const char *path = mongo_entry_member(m, key, "fills");
    mongo_match_number(query, path, fills, fills > 0);
    BSON_APPEND_INT64(set, path, fills + 1);
}

/* Adds the conditions of a range that is backfilled. Position and owner stay. The position was at its end or
 * behind it when it was looked at (mongo/writer/behind.c), and under the same epoch it only grows. */
static void add_found(struct mongo_store *m, bson_t *query, bson_t *set)
{
    const struct mongo_found *f = &m->batch.found;
    BSON_APPEND_INT64(query, mongo_entry_member(m, f->key, "epoch"), f->epoch);
    add_fill(m, f->key, f->fills, query, set);
}

/* Adds the conditions and the new values of a range that is taken out of the ledger. */
static void add_taken(struct mongo_store *m, const struct range *range, bson_t *query, bson_t *set,
                      bson_t *unset)
{
    const struct mongo_partition *p = mongo_own_partition(m, range);
    mongo_add_claim(m, p, query);
    BSON_APPEND_INT64(query, mongo_partition_member(m, p, "held"), p->epoch);
    mongo_match_number(query, mongo_partition_member(m, p, "next"), p->next, !p->is_new);
    add_fill(m, p->key, p->fills, query, set);
    if (range->to == 0)
        remove_position(m, p, unset);
    else
        mongo_add_position(m, p, range, set);
}

/* Adds the conditions and the new values of a range of the seat. The claim has recalled this seat, too: so
 * its fence is the epoch until another claim recalls it. The first batch brings the position here. */
static void add_range(struct mongo_store *m, const struct range *range, bson_t *query, bson_t *set)
{
    const struct mongo_partition *p = mongo_own_partition(m, range);
    BSON_APPEND_INT64(query, mongo_partition_member(m, p, "fence"), p->epoch);
    if (p->is_first) {
        BCON_APPEND(query, mongo_partition_member(m, p, "held"), "{", "$not", "{", "$gte",
                    BCON_INT64(p->epoch), "}", "}");
    } else {
        BSON_APPEND_INT64(query, mongo_partition_member(m, p, "held"), p->epoch);
        BSON_APPEND_INT64(query, mongo_partition_member(m, p, "next"), p->next);
    }
    BSON_APPEND_INT64(set, mongo_partition_member(m, p, "held"), p->epoch);
    mongo_add_position(m, p, range, set);
}

/* The path of a member of the slot, in the place where the batch is committed. */
static const char *slot_path(const struct mongo_store *m, const char *name, char buf[MONGO_SLOT_PATH_BYTES])
{
    return mongo_place_path(m->writer.slot, m->writer.is_home, name, buf);
}

/* Opens the batch. This also ends the batch before it, which is applied. */
static void add_open(struct mongo_store *m, int64_t seq, bson_t *set)
{
    char path[MONGO_SLOT_PATH_BYTES], room[MONGO_KEY_BYTES];
    bson_t open, ranges;
    BSON_APPEND_DOCUMENT_BEGIN(set, slot_path(m, "open", path), &open);
    BSON_APPEND_INT64(&open, "seq", seq);
    BSON_APPEND_INT64(&open, "prev", m->writer.committed);
    BSON_APPEND_INT64(&open, "inc", m->writer.inc);
    BSON_APPEND_INT64(&open, "bytes", (int64_t)m->batch.log.packed.len);
    if (m->batch.rolls_up)
        BSON_APPEND_BOOL(&open, "rolls_up", true);
    BSON_APPEND_ARRAY_BEGIN(&open, "ranges", &ranges);
    for (size_t i = 0; i < m->batch.range_count; i++) {
        const struct range *r = &m->batch.ranges[i];
        const char *key = m->batch.backfills ? m->batch.found.key : mongo_own_partition(m, r)->key;
        BCON_APPEND(&ranges, mongo_array_key(i, room), "{", "partition", BCON_UTF8(key), "from",
                    BCON_INT64(r->from), "to", BCON_INT64(r->to), "}");
    }
    bson_append_array_end(&open, &ranges);
    bson_append_document_end(set, &open);
}

/* Adds the conditions and the new values of the slot. Numbers that no writer used lie before its first one.
 * The last batch is done, so nothing is open. If something is, an earlier ledger was put back. */
static void add_slot(struct mongo_store *m, int64_t seq, bson_t *query, bson_t *set)
{
    const struct mongo_writer *w = &m->writer;
    char path[MONGO_SLOT_PATH_BYTES];
    int64_t last = w->is_home ? w->home_seq : w->seat_seq;
    mongo_add_place(m, w->slot, w->is_home, query);
    BSON_APPEND_INT64(query, slot_path(m, "inc", path), w->inc);
    mongo_match_number(query, slot_path(m, "seq", path), last, last > 0);
    if (w->is_done)
        mongo_match_nothing(query, slot_path(m, "open", path));
    BSON_APPEND_INT64(set, slot_path(m, "seq", path), seq);
    if (!w->is_home)
        BSON_APPEND_DATE_TIME(set, "at", w->at_ms);
    if (w->committed >= w->first)
        return;
    BSON_APPEND_INT64(set, slot_path(m, "gap.after", path), w->committed);
    BSON_APPEND_INT64(set, slot_path(m, "gap.before", path), w->first);
}

void mongo_prepare_commit(struct mongo_store *m, int64_t seq)
{
    bson_t set = BSON_INITIALIZER, unset = BSON_INITIALIZER;
    bson_destroy(m->batch.commit_filter);
    bson_destroy(m->batch.commit_update);
    bson_t *query = m->batch.commit_filter = bson_new();
    add_slot(m, seq, query, &set);
    for (size_t i = 0; i < m->batch.range_count; i++) {
        if (m->batch.backfills)
            add_found(m, query, &set);
        else if (m->batch.taken != NULL)
            add_taken(m, &m->batch.ranges[i], query, &set, &unset);
        else
            add_range(m, &m->batch.ranges[i], query, &set);
    }
    add_open(m, seq, &set);
    if (!m->writer.is_home)
        mongo_longer_add_commit(m, seq, &set, &unset);
    m->batch.commit_update = bson_new();
    mongo_add_operator(m->batch.commit_update, "$set", &set);
    if (m->writer.is_home)
        BCON_APPEND(m->batch.commit_update, "$max", "{", "at", BCON_DATE_TIME(m->writer.at_ms), "}");
    mongo_add_operator(m->batch.commit_update, "$unset", &unset);
}

/* Sets *e to the reason why the ledger refused a commit. */
static bool explain_by(struct mongo_store *m, const bson_t *ledger, struct err *e)
{
    const struct mongo_writer *w = &m->writer;
    if (!mongo_check_ledger(m, ledger, e))
        return false;
    if (mongo_slot_at(ledger, w->slot, "inc", -1) != w->inc ||
        mongo_slot_at(ledger, w->slot, "seat.inc", -1) > w->inc) /* an older reading may show a lower one */
        return mongo_lose_slot(m, ledger, e);
    m->batch.was_outrun = m->batch.backfills;
    if (m->batch.was_outrun)
        return err_set_retryable(
            e, EX_TEMPFAIL,
            "%s: other writers claimed or backfilled %s each time that some of it was to "
            "be counted: run the same command again, which resumes",
            mongo_client_name(m->client), m->batch.ranges[0].label);
    for (size_t i = 0; i < m->batch.range_count; i++) {
        const struct mongo_partition *p = mongo_own_partition(m, &m->batch.ranges[i]);
        int64_t epoch;
        if (!mongo_epoch_of(m, ledger, p, &epoch, e))
            return false;
        if (epoch < p->epoch)
            return mongo_refuse(m, e, "%s was claimed %" PRId64 " times, and now fewer",
                                m->batch.ranges[i].label, p->epoch);
        if (epoch != p->epoch)
            return mongo_taken_over(m, ledger, m->batch.ranges[i].label,
                                    mongo_text_at(ledger, mongo_partition_member(m, p, "owner")), e);
        if (m->batch.taken != NULL &&
            mongo_number_at(ledger, mongo_partition_member(m, p, "fills"), 0) != p->fills)
            return err_set(e, EX_TEMPFAIL,
                           "%s: a backfill counted some of %s meanwhile: run the same command again, which "
                           "resumes",
                           mongo_client_name(m->client), m->batch.ranges[i].label);
    }
    return mongo_refuse(m, e, "its positions were changed by hand or another program");
}

static bool explain(struct mongo_store *m, struct err *e)
{
    bson_t ledger;
    bool good = mongo_read_ledger(m, &ledger, e) && explain_by(m, &ledger, e);
    bson_destroy(&ledger);
    return good;
}

/* The place of the commit decides: a reply may have been lost, and another may have recovered the batch
 * since. */
static bool is_committed(struct mongo_store *m, bool *committed, struct err *e)
{
    char path[MONGO_SLOT_PATH_BYTES];
    bson_t place;
    bool good = m->writer.is_home ? mongo_read_home(m, &place, e)
                                  : mongo_confirm(m->client, m->writer.slot, &place, e);
    *committed = good && (!m->writer.is_home || mongo_is_same_ledger(m, &place)) &&
                 mongo_number_at(&place, slot_path(m, "inc", path), -1) == m->writer.inc &&
                 mongo_number_at(&place, slot_path(m, "seq", path), 0) == m->writer.number;
    bson_destroy(&place);
    return good;
}

bool mongo_commit(struct mongo_store *m, bool *committed, struct err *e)
{
    if (!mongo_update_one(m->client, MONGO_LEDGER, m->batch.commit_filter, m->batch.commit_update, false,
                          committed, e))
        return mongo_explain_full(m, m->writer.is_home ? MONGO_LEDGER : m->writer.slot, e);
    if (!*committed && !is_committed(m, committed, e))
        return false;
    if (!*committed)
        (void)!explain(m, e);
    return true;
}
