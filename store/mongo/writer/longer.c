#include "store/mongo/writer/longer.h"

#include "base/clock.h"
#include "base/failpoint.h"
#include "base/mem.h"
#include "store/mongo/doc/unrolled.h"
#include "store/mongo/ledger/seat.h"
#include "store/mongo/ledger/slots.h"
#include "store/mongo/send/replay.h"
#include "store/mongo/send/send.h"
#include "store/mongo/wire/command.h"
#include "store/mongo/wire/field.h"
#include "store/mongo/writer/sums.h"
#include "store/mongo/writer/update.h"

#include <stdio.h>

#define AGAIN_MS 1000 /* after a failure */

static void show_figures(struct mongo_store *m)
{
    const struct mongo_longer *l = &m->longer;
    struct longer_figures *shown = &m->store.longer;
    shown->batches = l->rolling.batches + l->log_count;
    shown->log_bytes = l->rolling.log_bytes + l->log_bytes;
    shown->since_ms = l->rolling.batches > 0 ? l->rolling.since_ms : l->since_ms;
}

static void clear_waiting(struct mongo_store *m)
{
    struct mongo_longer *l = &m->longer;
    mongo_sums_clear(m);
    l->log_count = l->log_bytes = 0;
}

/* ---- the batch under way */

static bool is_same(const struct mongo_unrolled *a, const struct mongo_unrolled *b)
{
    return a->span == b->span && a->start_ms == b->start_ms;
}

/* Has the batch under way counts of the period, which it leaves for later? */
static bool leaves(const struct mongo_batch *b, const struct mongo_unrolled *u)
{
    bool has = false;
    for (size_t i = 0; !b->rolls_up && !has && i < b->fine_count; i++)
        has = is_same(&b->fine[i], u);
    return has;
}

/* Removes the periods that are rolled up by now, unless the batch under way has counts of them. */
static void append_rolled(const struct mongo_store *m, const struct mongo_batch *under_way, bson_t *unset)
{
    const struct mongo_longer *l = &m->longer;
    char path[MONGO_UNROLLED_BYTES];
    for (size_t i = 0; i < l->unrolled_count; i++) {
        const struct mongo_unrolled *u = &l->unrolled[i];
        if (u->number <= l->rolled && (under_way == NULL || !leaves(under_way, u)))
            BSON_APPEND_UTF8(unset, mongo_unrolled_path(u, path), "");
    }
}

/* The seat says `rolled`, by an acknowledged update that compared what this writer left there. */
static void forget_rolled(struct mongo_store *m)
{
    struct mongo_longer *l = &m->longer;
    size_t kept = 0;
    l->proved_ms = clock_mono_ms(m->store.clock);
    for (size_t i = 0; i < l->unrolled_count; i++) {
        if (l->unrolled[i].number > l->rolled)
            l->unrolled[kept++] = l->unrolled[i];
    }
    l->unrolled_count = kept;
    l->stored = l->rolled;
}

void mongo_longer_add_commit(const struct mongo_store *m, int64_t seq, bson_t *set, bson_t *unset)
{
    const struct mongo_batch *b = &m->batch;
    char path[MONGO_UNROLLED_BYTES];
    BSON_APPEND_INT64(set, "rolled", m->longer.rolled);
    for (size_t i = 0; !b->rolls_up && i < b->fine_count; i++)
        BSON_APPEND_INT64(set, mongo_unrolled_path(&b->fine[i], path), seq);
    append_rolled(m, b, unset);
}

static void note_unrolled(struct mongo_longer *l, const struct mongo_unrolled *of, int64_t number)
{
    size_t i = 0;
    while (i < l->unrolled_count && !is_same(&l->unrolled[i], of))
        i++;
    if (i == l->unrolled_count) {
        l->unrolled = xgrow(l->unrolled, &l->unrolled_capacity, i + 1, sizeof *l->unrolled);
        l->unrolled[l->unrolled_count++] = *of;
    }
    l->unrolled[i].number = number;
}

/* Months cannot be written, or not as fast as days: then batches wait for them. */
bool mongo_longer_must_wait(const struct mongo_store *m)
{
    return m->store.longer.batches > 2 * MONGO_LONGER_LOGS ||
           m->store.longer.log_bytes > 2 * MONGO_LONGER_BYTES;
}

void mongo_longer_commit(struct mongo_store *m)
{
    struct mongo_longer *l = &m->longer;
    if (!m->writer.is_home) /* the commit said it */
        forget_rolled(m);
    for (size_t i = 0; !m->batch.rolls_up && i < m->batch.fine_count; i++)
        note_unrolled(l, &m->batch.fine[i], m->writer.committed);
    if (l->log_count == 0)
        l->since_ms = clock_mono_ms(m->store.clock);
    mongo_sums_commit(m, !l->from_logs);
    m->reader.unrolled.is_read = false; /* this handle has just changed it */
    l->log_count++;
    l->log_bytes += m->batch.log.packed.len + m->batch.longer.packed.len;
    show_figures(m);
}

/* ---- roll-ups */

static void drop_pieces(struct mongo_longer *l)
{
    l->to = 0;
    l->piece_count = l->sent = 0;
    l->rolling = (struct longer_figures){.batches = 0};
}

void mongo_longer_take(struct mongo_store *m, int64_t stored)
{
    struct mongo_longer *l = &m->longer;
    mongo_sums_begin(m);
    clear_waiting(m);
    drop_pieces(l);
    l->rolled = m->writer.committed;
    l->stored = stored;
    l->proved_ms = clock_mono_ms(m->store.clock);
    l->unrolled_count = 0;
    l->from_logs = false;
    show_figures(m);
}

/* All that is committed, and not in a roll-up yet, is in the one that begins. */
static void begin(struct mongo_store *m)
{
    struct mongo_longer *l = &m->longer;
    l->to = m->writer.committed;
    l->begun_ms = clock_mono_ms(m->store.clock);
    l->rolling =
        (struct longer_figures){.batches = l->log_count, .log_bytes = l->log_bytes, .since_ms = l->since_ms};
    mongo_write_roll_up(m);
    clear_waiting(m);
}

static bool refuse(const struct mongo_store *m, const char *why, struct err *e)
{
    return err_set_retryable(e, EX_TEMPFAIL, "%s: another writer %s slot %s: this one was stopped for long",
                             mongo_client_name(m->client), why, m->writer.slot);
}

/* A writer that slept beyond its lease must send nothing: others may have rolled up its batches, and then
 * dropped a report or restored the database. Guards do not cover documents that are gone, or older. */
static bool prove(struct mongo_store *m, struct err *e)
{
    struct mongo_longer *l = &m->longer;
    const int64_t now_ms = clock_mono_ms(m->store.clock);
    bson_t seat;
    if (now_ms - l->proved_ms < MONGO_LEASE_MS / 3)
        return true;
    bool good = mongo_confirm(m->client, m->writer.slot, &seat, e);
    if (good && mongo_number_at(&seat, "inc", -1) != m->writer.inc) {
        m->writer.kept_ms = 0; /* mongo_keep_slot() looks at once */
        good = refuse(m, "took", e);
    } else if (good && mongo_number_at(&seat, "rolled", 0) != l->stored) {
        good = refuse(m, "rolled up the batches of", e);
    }
    if (good)
        l->proved_ms = now_ms;
    bson_destroy(&seat);
    return good;
}

static bool send_piece(struct mongo_store *m, struct err *e)
{
    struct mongo_longer *l = &m->longer;
    struct mongo_open o = {.seq = l->to, .prev = l->rolled, .is_roll_up = true};
    snprintf(o.slot, sizeof o.slot, "%s", m->writer.slot);
    if (!mongo_renew_lease(m, e) || !prove(m, e) ||
        !mongo_send(m, &o, text_slice(&l->pieces[l->sent].packed), e))
        return false;
    l->sent++;
    failpoint(FAILPOINT_ROLL_UP_PIECE);
    return true;
}

/* Sums may be gathered for three quarters of the delay, so that a document is written for many batches, and
 * sent in the last one, so that batches beside them are not late. */
static int64_t send_ms(const struct mongo_store *m)
{
    return (m->longer.delay_ms > 0 ? m->longer.delay_ms : MONGO_LONGER_MS) / 4;
}

/* Do as many sums or logs wait as may? */
static bool is_full(const struct mongo_store *m)
{
    const struct mongo_longer *l = &m->longer;
    return l->log_count >= MONGO_LONGER_LOGS || l->log_bytes > MONGO_LONGER_BYTES ||
           mongo_sums_count(m) > MONGO_LONGER_MAX;
}

/* Pieces that must be sent by now: the first one at once, the last one when its time is over. */
static size_t pieces_due(const struct mongo_store *m)
{
    const struct mongo_longer *l = &m->longer;
    const int64_t past_ms = clock_mono_ms(m->store.clock) - l->begun_ms, all_ms = send_ms(m);
    if (past_ms >= all_ms || is_full(m))
        return l->piece_count;
    return (l->piece_count * (size_t)past_ms + (size_t)all_ms - 1) / (size_t)all_ms;
}

/* Is there no batch to be expected for a while? */
static bool has_time(const struct mongo_store *m)
{
    return clock_mono_ms(m->store.clock) - m->writer.applied_at_ms >= m->longer.busy_ms;
}

static bool must_begin(const struct mongo_store *m)
{
    const struct mongo_longer *l = &m->longer;
    return clock_mono_ms(m->store.clock) - l->since_ms >= 3 * send_ms(m) || is_full(m);
}

/* Sends what is due, or one piece if there is time. *is_due: more was to be sent. */
static bool go_on(struct mongo_store *m, bool all, bool *is_due, struct err *e)
{
    struct mongo_longer *l = &m->longer;
    *is_due = false;
    if (l->to == 0 && l->rolled < m->writer.committed && (all || has_time(m) || must_begin(m)))
        begin(m);
    if (l->to == 0)
        return true;
    *is_due = all || l->sent < pieces_due(m) || has_time(m);
    if (*is_due && l->sent < l->piece_count && !send_piece(m, e))
        return false;
    if (l->sent < l->piece_count)
        return true;
    l->rolled = l->to;
    drop_pieces(l);
    failpoint(FAILPOINT_ROLL_UP_SENT);
    return true;
}

/* A roll-up that failed may be in some documents. The logs' updates find out by their guards. */
static bool roll_up_logs(struct mongo_store *m, struct err *e)
{
    struct mongo_longer *l = &m->longer;
    const int64_t to = m->writer.committed;
    if (!mongo_replay(m, m->writer.slot, l->rolled, to, e))
        return false;
    clear_waiting(m);
    l->rolled = to;
    l->from_logs = false;
    return true;
}

bool mongo_roll_up(struct mongo_store *m, bool all, struct err *e)
{
    struct mongo_longer *l = &m->longer;
    bool good = true, is_due = !l->from_logs;
    if (l->from_logs && !all && clock_mono_ms(m->store.clock) - l->failed_ms < AGAIN_MS)
        return true;
    if (l->from_logs) {
        l->failed_ms = clock_mono_ms(m->store.clock);
        good = roll_up_logs(m, e);
    }
    while (good && is_due) {
        good = go_on(m, all, &is_due, e);
        is_due = is_due && (all ? l->rolled < m->writer.committed : l->to != 0 && l->sent < pieces_due(m));
    }
    if (!good && !l->from_logs) { /* its batches wait for their logs */
        l->log_count += l->rolling.batches;
        l->log_bytes += l->rolling.log_bytes;
        drop_pieces(l);
        l->from_logs = true;
        l->failed_ms = clock_mono_ms(m->store.clock);
    }
    show_figures(m);
    return good;
}

/* Only this writer commits in the seat, and its last batch is applied. If another has taken the slot, nothing
 * is found: then no log may be deleted, and mongo_keep_slot() looks at once. */
bool mongo_tell_rolled(struct mongo_store *m, struct err *e)
{
    struct mongo_longer *l = &m->longer;
    bson_t *filter = BCON_NEW("_id", BCON_UTF8(m->writer.slot), "inc", BCON_INT64(m->writer.inc));
    bson_t update = BSON_INITIALIZER, unset = BSON_INITIALIZER;
    bool told;
    mongo_match_number(filter, "seq", m->writer.seat_seq, m->writer.seat_seq > 0);
    BCON_APPEND(&update, "$set", "{", "rolled", BCON_INT64(l->rolled), "}");
    BSON_APPEND_UTF8(&unset, "open", "");
    append_rolled(m, NULL, &unset);
    mongo_add_operator(&update, "$unset", &unset);
    if (!mongo_change(m->client, MONGO_LEDGER, filter, &update, false, &told, e))
        return false;
    if (!told) {
        m->writer.kept_ms = 0;
        return true;
    }
    forget_rolled(m);
    m->writer.is_done = m->writer.is_done || !m->writer.is_home;
    return true;
}
