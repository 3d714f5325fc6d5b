/* One batch: log, seal, apply, done (docs/LEDGER.md). What is under way is kept in the handle, so that a call
 * that failed goes on where it was when it is made again. */
#include "base/check.h"
#include "base/clock.h"
#include "base/failpoint.h"
#include "base/mem.h"
#include "store/mongo/handle/internal.h"
#include "store/mongo/raw/raw.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define LOG_ID_BYTES 64
#define IDLE_MS      2000 /* then the last batch is marked done, though no other follows */
#define LOGS_KEPT    64

/* ---- the log of a batch, in the database */

static struct mongo_open own_open(const struct mongo_store *m, int64_t seq)
{
    struct mongo_open o = {.inc = m->inc, .seq = seq, .prev = m->before};
    snprintf(o.slot, sizeof o.slot, "%s", m->slot);
    return o;
}

static void log_id(char buf[LOG_ID_BYTES], const struct mongo_open *o, const char *part)
{
    snprintf(buf, LOG_ID_BYTES, "%s/%016" PRIx64 "/%016" PRIx64 "%s", o->slot, (uint64_t)o->inc,
             (uint64_t)o->seq, part);
}

/* `prev` leads a backup from the last batch back to the first that it needs. */
static bool insert_part(struct mongo_store *m, const char *id, struct slice data, struct err *e)
{
    bson_t part;
    bson_init(&part);
    BSON_APPEND_UTF8(&part, "_id", id);
    BSON_APPEND_INT64(&part, "prev", m->before);
    BSON_APPEND_BINARY(&part, "zstd", BSON_SUBTYPE_BINARY, (const uint8_t *)data.ptr, (uint32_t)data.len);
    bool good = mongo_make(m->client, MONGO_BATCHES, &part, e);
    bson_destroy(&part);
    return good;
}

static bool insert_log(struct mongo_store *m, const struct mongo_open *o, struct slice packed, struct err *e)
{
    char id[LOG_ID_BYTES], part[16];
    for (size_t at = 0, n = 0; at < packed.len; n++) {
        size_t len = packed.len - at < MONGO_LOG_PART_BYTES ? packed.len - at : MONGO_LOG_PART_BYTES;
        snprintf(part, sizeof part, "/%04zx", n);
        log_id(id, o, part);
        if (!insert_part(m, id, slice_of(packed.ptr + at, len), e))
            return false;
        at += len;
    }
    return true;
}

void mongo_log_add_part(const bson_t *document, struct text *packed)
{
    bson_iter_t it;
    bson_subtype_t subtype;
    const uint8_t *bytes;
    uint32_t len;
    if (bson_iter_init_find(&it, document, "zstd") && BSON_ITER_HOLDS_BINARY(&it)) {
        bson_iter_binary(&it, &subtype, &len, &bytes);
        text_add(packed, (const char *)bytes, len);
    }
}

static bool take_part(void *context, const bson_t *document)
{
    mongo_log_add_part(document, context);
    return true;
}

bool mongo_read_log(struct mongo_store *m, const struct mongo_open *o, struct text *packed, struct err *e)
{
    char from[LOG_ID_BYTES], to[LOG_ID_BYTES];
    log_id(from, o, "/");
    log_id(to, o, "0"); /* which comes after "/" */
    bson_t *filter = BCON_NEW("_id", "{", "$gte", BCON_UTF8(from), "$lt", BCON_UTF8(to), "}");
    bson_t *options = BCON_NEW("sort", "{", "_id", BCON_INT32(1), "}");
    bool good = mongo_find(m->client, MONGO_BATCHES, filter, options, take_part, packed, e);
    bson_destroy(filter);
    bson_destroy(options);
    return good;
}

/* Of our slot, what was logged before the last batch that is done. A backup needs what is sealed from when
 * it began: whatever is asked for here was sealed before the ledger is asked whether one has begun. */
static bool delete_logs(struct mongo_store *m, struct err *e)
{
    bool holds;
    if (!mongo_backup_holds(m, &holds, e))
        return false;
    if (holds)
        return true; /* they go with the next ones */
    char from[LOG_ID_BYTES], to[LOG_ID_BYTES];
    const struct mongo_open last = own_open(m, m->is_done ? m->sealed + 1 : m->sealed);
    snprintf(from, sizeof from, "%s/", m->slot);
    log_id(to, &last, "");
    bson_t *command =
        BCON_NEW("delete", MONGO_BATCHES, "deletes", "[", "{", "q", "{", "_id", "{", "$gte", BCON_UTF8(from),
                 "$lt", BCON_UTF8(to), "}", "}", "limit", BCON_INT32(0), "}", "]");
    bson_t reply;
    bool good = mongo_write(m->client, command, &reply, e);
    bson_destroy(&reply);
    bson_destroy(command);
    return good;
}

/* A seal that was read may be gone with the primary that had it. A write, though it changes nothing, is
 * acknowledged when all that was before it stays. Not found: somebody else was quicker. */
static bool confirm_open(struct mongo_store *m, const struct mongo_open *o, bool *is_open, struct err *e)
{
    char seq[64];
    snprintf(seq, sizeof seq, "writers.%s.open.seq", o->slot);
    bson_t filter, *update = BCON_NEW("$set", "{", seq, BCON_INT64(o->seq), "}");
    bson_init(&filter);
    mongo_add_ledger(m, &filter);
    BSON_APPEND_INT64(&filter, seq, o->seq);
    bool good = mongo_update_one(m->client, MONGO_LEDGER, &filter, update, false, is_open, e);
    bson_destroy(&filter);
    bson_destroy(update);
    return good;
}

bool mongo_recover(struct mongo_store *m, const struct mongo_open *o, struct err *e)
{
    char id[LOG_ID_BYTES];
    struct text packed = {0};
    struct mongo_open now = *o;
    bool is_open, good = confirm_open(m, o, &is_open, e);
    if (!good || !is_open)
        return good;
    good = mongo_read_log(m, o, &packed, e);
    bool is_whole = (int64_t)packed.len == o->bytes;
    log_id(id, o, "");
    if (good && is_whole)
        good = (mongo_log_check(text_slice(&packed), e) ||
                err_prefix(e, "%s: %s \"%s\"", mongo_client_name(m->client), MONGO_BATCHES, id)) &&
               mongo_send(m, o, text_slice(&packed), e) && mongo_done(m, o, e);
    else if (good) /* another was quicker, and deleted it? */
        good = mongo_read_open(m, o->slot, &now, e) &&
               (now.seq != o->seq || err_set(e, EX_DATAERR,
                                             "%s: of the log of a batch of %s, %zu bytes are left: restore "
                                             "the database from a backup",
                                             mongo_client_name(m->client), o->slot, packed.len));
    text_fini(&packed);
    return good;
}

/* ---- one batch */

static bool is_under_way(const struct mongo_store *m, const struct batch *batch)
{
    if (m->step == STEP_NONE || m->range_count != batch->range_count)
        return false;
    for (size_t i = 0; i < batch->range_count; i++) {
        const struct range *a = &m->ranges[i], *b = &batch->ranges[i];
        if (strcmp(a->source, b->source) != 0 || strcmp(a->partition, b->partition) != 0 ||
            a->from != b->from || a->to != b->to)
            return false;
    }
    return true;
}

static bool claim(struct mongo_store *m, const struct batch *batch, struct err *e)
{
    if (!mongo_claim_for(m, batch, e))
        return false;
    for (size_t i = 0; i < batch->range_count; i++) {
        const struct range *r = &batch->ranges[i];
        const struct mongo_partition *p = mongo_find_partition(m, r);
        if (!p->is_new && p->next != r->from)
            return err_set(e, EX_DATAERR,
                           "%s has been counted up to %" PRId64 ", the batch begins at %" PRId64
                           ": nothing applied",
                           r->label, p->next, r->from);
    }
    return true;
}

/* Its number is never used again: a seal that is carried out late must not find another batch under it. */
static bool prepare(struct mongo_store *m, const struct batch *batch, struct err *e)
{
    if (!mongo_resolve(m, batch, e))
        return false;
    m->number++;
    m->before = m->sealed;
    mongo_write_updates(m, batch, &m->log);
    m->ranges = xrealloc(m->ranges, (batch->range_count + 1) * sizeof *m->ranges);
    memcpy(m->ranges, batch->ranges, batch->range_count * sizeof *m->ranges);
    m->range_count = batch->range_count;
    m->step = STEP_LOGGING;
    return true;
}

/* A log that may be there is inserted again under the same name: copies would fill the disk. So are raw
 * events: maybe it is another primary now, that never had what only the last one acknowledged. */
static bool begin(struct mongo_store *m, const struct batch *batch, struct err *e)
{
    if (!mongo_need_slot(m, e) || !claim(m, batch, e) || !mongo_raw_store(m, batch, e) ||
        (m->step != STEP_LOGGING && !prepare(m, batch, e)) ||
        (m->batches_to_ask > 0 && !mongo_check_torn(m, text_slice(&m->log.packed), e)))
        return false;
    const struct mongo_open o = own_open(m, m->number);
    if (!insert_log(m, &o, text_slice(&m->log.packed), e))
        return false;
    failpoint(FAILPOINT_MONGO_LOGGED);
    mongo_prepare_seal(m, m->number);
    m->step = STEP_SEALING;
    return true;
}

/* What the ledger says now of the partitions. */
static void note_sealed(struct mongo_store *m)
{
    m->batches_to_ask -= m->batches_to_ask > 0;
    m->sealed = m->number;
    m->is_done = false;
    for (size_t i = 0; i < m->range_count; i++) {
        struct mongo_partition *p = mongo_find_partition(m, &m->ranges[i]);
        p->next = m->ranges[i].to;
        p->is_new = false;
        for (size_t r = 0; r < m->store.report_count; r++)
            p->until[r] = p->next;
    }
}

static bool go_on(struct mongo_store *m, struct err *e)
{
    if (m->step == STEP_SEALING) {
        bool sealed;
        if (!mongo_seal(m, &sealed, e))
            return false;
        if (!sealed) { /* dropped; whoever goes on reads the ledger */
            m->step = STEP_NONE;
            mongo_forget_partitions(m);
            return false;
        }
        note_sealed(m);
        m->step = STEP_APPLYING;
        failpoint(FAILPOINT_MONGO_SEALED);
    }
    const struct mongo_open o = own_open(m, m->number);
    if (!mongo_send(m, &o, text_slice(&m->log.packed), e))
        return false;
    failpoint(FAILPOINT_MONGO_APPLIED);
    m->step = STEP_NONE;
    m->store.prealloc = m->figures;
    mongo_raw_note(m);
    m->applied_at_ms = clock_mono_ms(&clock_system);
    mongo_note_stored(m);
    return true;
}

/* After a seal that failed, for the same reason. */
static bool store_raw_again(struct mongo_store *m, const struct batch *batch, struct err *e)
{
    return m->step != STEP_SEALING || mongo_raw_store(m, batch, e);
}

bool mongo_apply(struct store *st, const struct batch *batch, struct err *e)
{
    struct mongo_store *m = mongo_of(st);
    bool is_known = is_under_way(m, batch);
    if (m->step == STEP_LOGGING && !is_known)
        m->step = STEP_NONE; /* dropped, with its number */
    if (m->step > STEP_LOGGING && is_known)
        return store_raw_again(m, batch, e) && go_on(m, e);
    if (m->step > STEP_LOGGING && !go_on(m, e))
        return false;
    return begin(m, batch, e) && go_on(m, e);
}

bool mongo_tidy(struct store *st, bool all, struct err *e)
{
    struct mongo_store *m = mongo_of(st);
    bool is_idle = clock_mono_ms(&clock_system) - m->applied_at_ms >= IDLE_MS;
    if (m->step > STEP_LOGGING || m->slot[0] == '\0')
        return true;
    if (!mongo_keep_slot(m, e))
        return false;
    if (!m->is_done && (all || is_idle)) {
        const struct mongo_open o = own_open(m, m->sealed);
        if (!mongo_done(m, &o, e))
            return false;
        m->is_done = true;
        failpoint(FAILPOINT_MONGO_DONE);
    } else if (m->sealed - m->logs_deleted < LOGS_KEPT) {
        return true;
    }
    if (m->logs_deleted == m->sealed + m->is_done)
        return true;
    m->logs_deleted = m->sealed + m->is_done;
    return delete_logs(m, e);
}
