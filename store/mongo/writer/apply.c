#include "store/mongo/writer/apply.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/failpoint.h"
#include "base/log.h"
#include "base/mem.h"
#include "store/mongo/ledger/copies.h"
#include "store/mongo/raw/raw.h"
#include "store/mongo/send/batches.h"
#include "store/mongo/send/recover.h"
#include "store/mongo/send/send.h"
#include "store/mongo/writer/behind.h"
#include "store/mongo/writer/commit.h"
#include "store/mongo/writer/crowd.h"
#include "store/mongo/writer/enough.h"
#include "store/mongo/writer/longer.h"
#include "store/mongo/writer/partition.h"
#include "store/mongo/writer/past.h"
#include "store/mongo/writer/recall.h"
#include "store/mongo/writer/retire.h"
#include "store/mongo/writer/slot.h"
#include "store/mongo/writer/torn.h"
#include "store/mongo/writer/update.h"

#include <inttypes.h>
#include <stdio.h>

#define IDLE_MS    2000 /* after this time the last batch is marked done, though no other follows */
#define LOGS_KEPT  64
#define OUTRUN_MAX 16 /* times that a batch which backfills begins anew, since other writers were quicker */

static struct mongo_open own_open(const struct mongo_store *m, int64_t seq)
{
    struct mongo_open o = {.is_home = m->writer.is_home,
                           .inc = m->writer.inc,
                           .seq = seq,
                           .prev = m->writer.before,
                           .at_ms = m->writer.at_ms};
    snprintf(o.slot, sizeof o.slot, "%s", m->writer.slot);
    return o;
}

/* The first batch whose log may be needed: it is not done, or longer documents lack it. */
static int64_t first_kept(const struct mongo_store *m)
{
    const int64_t first = m->writer.is_done ? m->writer.committed + 1 : m->writer.committed;
    return first <= m->longer.stored ? first : m->longer.stored + 1;
}

/* Deletes our slot's logs of batches that are done. A backup needs the logs of batches committed since it
 * began. All batches here were committed before the ledger is asked whether a backup has begun. */
static bool delete_logs(struct mongo_store *m, bool all, struct err *e)
{
    bool holds, good, more;
    if (!mongo_backup_holds(m, &holds, e))
        return false;
    if (holds)
        return true; /* they are deleted with later ones */
    const struct mongo_open last = own_open(m, first_kept(m));
    do
        good = mongo_delete_logs(m, &last, &more, e);
    while (good && more && all);
    if (good && more)
        m->writer.logs_deleted = 0; /* it goes on at the next turn */
    return good;
}

/* ---- one batch */

static bool is_under_way(const struct mongo_store *m, const struct batch *batch)
{
    if (m->batch.step == STEP_NONE || m->batch.range_count != batch->range_count ||
        m->batch.backfills != batch->backfills || (batch->backfills && m->batch.report != batch->report))
        return false;
    for (size_t i = 0; i < batch->range_count; i++) {
        const struct range *a = &m->batch.ranges[i], *b = &batch->ranges[i];
        if (strcmp(a->source, b->source) != 0 || strcmp(a->partition, b->partition) != 0 ||
            a->from != b->from || a->to != b->to)
            return false;
    }
    return true;
}

static bool claim(struct mongo_store *m, const struct batch *batch, struct err *e)
{
    if (batch->backfills)
        return mongo_find_behind(m, batch, e);
    if (!mongo_claim_for(m, batch, e))
        return false;
    for (size_t i = 0; i < batch->range_count; i++) {
        const struct range *r = &batch->ranges[i];
        const struct mongo_partition *p = mongo_own_partition(m, r);
        if (p->is_new && r->partition[0] == '\0' && r->from > 0)
            return err_set(e, EX_TEMPFAIL,
                           "%s was taken out after its position, %" PRId64 ", had been read: start again",
                           r->label, r->from);
        if (!p->is_new && p->next != r->from)
            return err_set(e, EX_DATAERR,
                           "%s has been counted up to %" PRId64 ", the batch begins at %" PRId64
                           ": nothing applied",
                           r->label, p->next, r->from);
    }
    return true;
}

/* Ends the last batch, and says how far longer documents are. */
static bool end_last(struct mongo_store *m, struct err *e)
{
    const struct mongo_open o = own_open(m, m->writer.committed);
    if (m->writer.is_home && !m->writer.is_done && !mongo_done(m, &o, e))
        return false;
    m->writer.is_done |= m->writer.is_home;
    if (!mongo_tell_rolled(m, e))
        return false;
    failpoint(FAILPOINT_MONGO_DONE);
    return true;
}

/* The next commit would say it, too. But readers, and who reads documents of months, should not wait for
 * that. */
static bool must_tell(const struct mongo_store *m, bool is_quiet)
{
    const struct mongo_longer *l = &m->longer;
    const bool has_logs = m->writer.is_home && l->rolled - l->stored >= LOGS_KEPT;
    return is_quiet ? !m->writer.is_done || l->stored < l->rolled
                    : l->rolled == m->writer.committed && (l->unrolled_count > 0 || has_logs);
}

/* A batch that backfills, takes out, or fills in, is committed in the ledger itself, others in the seat. The
 * commit ends the last batch if that was in the same place. */
static bool choose_place(struct mongo_store *m, const struct batch *batch, struct err *e)
{
    bool is_home = batch->backfills || m->batch.taken != NULL || m->batch.fills;
    if (is_home != m->writer.is_home && !m->writer.is_done && !end_last(m, e))
        return false;
    m->writer.is_home = is_home;
    return true;
}

/* Gives the batch a number that is never used again: a late commit must not find another batch under its
 * number. */
static bool prepare(struct mongo_store *m, const struct batch *batch, struct err *e)
{
    if (!mongo_resolve(m, batch, e))
        return false;
    m->writer.number++;
    m->writer.before = m->writer.committed;
    const int64_t now_ms = clock_wall_ms(m->store.clock);
    m->writer.at_ms = now_ms > m->writer.at_ms ? now_ms : m->writer.at_ms + 1;
    if (m->batch.taken != NULL)
        mongo_write_opposites(m, batch);
    else if (m->batch.fills)
        mongo_write_counts(m, batch);
    else
        mongo_write_updates(m, batch);
    /* a commit in the ledger says nothing of longer documents */
    m->batch.rolls_up |= m->writer.is_home || mongo_longer_must_wait(m);
    m->batch.ranges = xrealloc(m->batch.ranges, (batch->range_count + 1) * sizeof *m->batch.ranges);
    if (batch->range_count > 0)
        memcpy(m->batch.ranges, batch->ranges, batch->range_count * sizeof *m->batch.ranges);
    m->batch.range_count = batch->range_count;
    m->batch.backfills = batch->backfills;
    m->batch.report = batch->report;
    m->batch.step = STEP_LOGGING;
    return true;
}

/* Does the batch take the whole rest of a file out? */
static bool takes_rest(const struct mongo_store *m, const struct batch *batch)
{
    return m->batch.taken != NULL && batch->ranges[0].to == 0;
}

/* A retry inserts the log again under the same name: copies would fill the disk. It inserts raw events
 * again, too: another primary may lack what only the last one had acknowledged. */
static bool begin(struct mongo_store *m, const struct batch *batch, struct err *e)
{
    ASSERT(m->batch.step <= STEP_LOGGING); /* no committed batch is left behind */
    if (m->writer.slot[0] == '\0')         /* what a lost slot claimed is in its seat */
        mongo_forget_partitions(m);
    if (!mongo_need_slot(m, e) || !claim(m, batch, e) || !choose_place(m, batch, e) ||
        !mongo_raw_store(m, batch, e) || (m->batch.step != STEP_LOGGING && !prepare(m, batch, e)) ||
        (m->writer.batches_to_ask > 0 && !mongo_check_torn(m, e)) ||
        (m->batch.taken != NULL && !mongo_check_enough(m, e)) ||
        (takes_rest(m, batch) && !mongo_void_past(m, mongo_own_partition(m, &batch->ranges[0]), e)))
        return false;
    const struct mongo_open o = own_open(m, m->writer.number);
    if (!mongo_insert_log(m, &o, text_slice(&m->batch.log.packed), text_slice(&m->batch.longer.packed), e))
        return false;
    failpoint(FAILPOINT_MONGO_LOGGED);
    mongo_prepare_commit(m, m->writer.number);
    m->batch.step = STEP_COMMITTING;
    return true;
}

static void note_builds(const struct mongo_store *m, struct mongo_partition *p, const struct range *r)
{
    struct build_stretch s;
    for (size_t i = 0; m->batch.taken != NULL && i < p->builds_count; i++)
        builds_cut(&p->builds[i], i == 0 || m->batch.taken[i - 1] ? r->to : 0);
    for (int k = 0; m->batch.taken == NULL && k < BUILD_COUNT; k++) {
        if (builds_after(&p->builds[0], r, (enum build_kind)k, &s))
            builds_put(&p->builds[0], &s);
    }
}

/* Notes what the ledger has of the partitions now. */
static void note_committed(struct mongo_store *m)
{
    m->writer.batches_to_ask -= m->writer.batches_to_ask > 0;
    m->writer.committed = m->writer.number;
    if (m->writer.is_home)
        m->writer.home_seq = m->writer.committed;
    else
        m->writer.seat_seq = m->writer.committed;
    m->writer.is_done = false;
    mongo_longer_commit(m);
    if (m->batch.backfills) {
        mongo_note_behind(m);
        return;
    }
    for (size_t i = 0; i < m->batch.range_count; i++) {
        struct mongo_partition *p = mongo_own_partition(m, &m->batch.ranges[i]);
        p->next = m->batch.ranges[i].to;
        p->is_first = false;
        p->counted_in = m->writer.committed;
        p->is_new = m->batch.taken != NULL && p->next == 0;
        p->fills += m->batch.taken != NULL;
        for (size_t r = 0; r < m->store.report_count; r++)
            p->until[r] = m->batch.taken == NULL || m->batch.taken[r] ? p->next : -1;
        note_builds(m, p, &m->batch.ranges[i]);
    }
}

/* Nothing of the batch was committed, and nothing of it will be. */
static void drop_batch(struct mongo_store *m)
{
    m->batch.step = STEP_NONE;
    mongo_crowd_forget(m);
}

static bool go_on(struct mongo_store *m, struct err *e)
{
    ASSERT(m->batch.step >= STEP_COMMITTING);
    if (m->batch.step == STEP_COMMITTING) {
        bool committed;
        if (!mongo_commit(m, &committed, e))
            return false;
        if (!committed) { /* dropped; the caller reads the ledger before it goes on */
            drop_batch(m);
            mongo_forget_partitions(m);
            return false;
        }
        note_committed(m);
        m->batch.step = STEP_APPLYING;
        failpoint(FAILPOINT_MONGO_COMMITTED);
    }
    const struct mongo_open o = own_open(m, m->writer.number);
    if (!mongo_send(m, &o, text_slice(&m->batch.log.packed), e) ||
        (m->batch.rolls_up && !mongo_roll_up(m, true, e)))
        return false;
    failpoint(FAILPOINT_MONGO_APPLIED);
    m->batch.step = STEP_NONE;
    m->store.prealloc = m->making.figures;
    mongo_raw_note(m);
    m->writer.applied_at_ms = clock_mono_ms(m->store.clock);
    m->longer.busy_ms = m->writer.applied_at_ms - m->longer.begun_batch_ms;
    mongo_note_stored(m);
    return true;
}

bool mongo_apply(struct store *st, const struct batch *batch, struct err *e)
{
    struct mongo_store *m = mongo_of(st);
    bool is_known = is_under_way(m, batch);
    m->longer.begun_batch_ms = clock_mono_ms(m->store.clock);
    /* The batch is dropped with its number. One that backfills is made anew, from the books as they are. */
    if (m->batch.step == STEP_LOGGING && (!is_known || batch->backfills))
        drop_batch(m);
    /* After a commit that failed, raw events are inserted again, for the same reason as in begin(). */
    if (m->batch.step > STEP_LOGGING && is_known)
        return (m->batch.step != STEP_COMMITTING || mongo_raw_store(m, batch, e)) && go_on(m, e);
    if (m->batch.step > STEP_LOGGING && !go_on(m, e))
        return false;
    for (int tries = 0; tries < OUTRUN_MAX; tries++) {
        m->batch.was_outrun = false;
        if (begin(m, batch, e) && go_on(m, e))
            return true;
        if (!m->batch.was_outrun)
            return false;
    }
    return false;
}

/* The server refuses what nothing relies on, as with a ledger that is full: that must not end a writer that
 * counts on. It is tried again later. */
static bool may_be_left(const char *event, const struct err *e)
{
    char quoted[LOG_QUOTE_BYTES];
    if (e->code != EX_IOERR || e->retryable)
        return false;
    log_warn(event, "error=%s", log_quote(e->text, quoted));
    return true;
}

bool mongo_housekeep(struct store *st, bool all, struct err *e)
{
    struct mongo_store *m = mongo_of(st);
    bool is_idle = clock_mono_ms(m->store.clock) - m->writer.applied_at_ms >= IDLE_MS;
    if (m->batch.step > STEP_LOGGING || m->writer.slot[0] == '\0')
        return true;
    const int64_t kept_ms = m->writer.kept_ms;
    if (!mongo_keep_slot(m, e) || ((all || m->writer.kept_ms != kept_ms) && !mongo_settle_claims(m, e)) ||
        (!mongo_retire(m, all, e) && !may_be_left("not_retired", e)) ||
        (!mongo_condense(m, all, e) && !may_be_left("not_condensed", e)))
        return false;
    if (!mongo_roll_up(m, all, e) || (must_tell(m, all || is_idle) && !end_last(m, e)))
        return false;
    const int64_t first = first_kept(m);
    if (first == m->writer.logs_deleted || (!all && !is_idle && first - m->writer.logs_deleted < LOGS_KEPT))
        return true;
    m->writer.logs_deleted = first;
    return delete_logs(m, all, e);
}
