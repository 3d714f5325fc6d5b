/* Seals a batch: one compare-and-set of the ledger (docs/LEDGER.md). */
#include "store/mongo/writer/commit.h"

#include "base/clock.h"
#include "base/utf8.h"
#include "store/mongo/ledger/identity.h"
#include "store/mongo/ledger/ledger.h"
#include "store/mongo/ledger/peers.h"
#include "store/mongo/wire/field.h"
#include "store/mongo/writer/member.h"
#include "store/mongo/writer/partition.h"
#include "store/mongo/writer/past.h"

#include <inttypes.h>
#include <stdio.h>

/* Replaces invalid bytes: a path may have any bytes, and may be cut within a character. */
static void add_label(bson_t *set, const char *path, const char *label)
{
    char clean[sizeof(((struct range *)0)->label)];
    const unsigned char *p = (const unsigned char *)label, *end = p + strlen(label);
    size_t n = 0;
    while (p < end) {
        size_t len = utf8_len(p, end);
        if (len > 0)
            memcpy(clean + n, p, len);
        else
            clean[n] = '?';
        n += len > 0 ? len : 1;
        p += len > 0 ? len : 1;
    }
    bson_append_utf8(set, path, -1, clean, (int)n);
}

static const char *path_of(struct mongo_store *m, const struct mongo_partition *p, const char *name)
{
    return p == NULL ? name : mongo_partition_member(m, p, name);
}

void mongo_add_position(struct mongo_store *m, const struct mongo_partition *p, const struct range *range,
                        bson_t *set)
{
    BSON_APPEND_INT64(set, path_of(m, p, "next"), range->to);
    add_label(set, path_of(m, p, "label"), range->label);
    BSON_APPEND_INT64(set, path_of(m, p, "tail_hash"), (int64_t)range->tail_hash);
    BSON_APPEND_INT64(set, path_of(m, p, "tail_len"), range->tail_len);
    BSON_APPEND_INT64(set, path_of(m, p, "latest_ms"), range->latest_ms);
    if (range->partition[0] != '\0' || range->witnesses.count > 0) {
        unsigned char bytes[WITNESSES_MAX * WITNESS_BYTES];
        size_t len = witnesses_pack(&range->witnesses, bytes);
        BSON_APPEND_BINARY(set, path_of(m, p, "witnesses"), BSON_SUBTYPE_BINARY, bytes, (uint32_t)len);
    }
}

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
static void add_fill(const char *key, int64_t fills, bson_t *query, bson_t *set)
{
    struct text path = {0};
    text_printf(&path, "partitions.%s.fills", key);
    mongo_match_number(query, path.ptr, fills, fills > 0);
    BSON_APPEND_INT64(set, path.ptr, fills + 1);
    text_fini(&path);
}

/* Adds the conditions of a range that is backfilled. Position and owner stay. */
static void add_found(struct mongo_store *m, const struct range *range, bson_t *query, bson_t *set)
{
    const struct mongo_found *f = &m->batch.found;
    struct text path = {0};
    bson_t least;
    text_printf(&path, "partitions.%s.epoch", f->key);
    BSON_APPEND_INT64(query, path.ptr, f->epoch);
    text_clear(&path);
    text_printf(&path, "partitions.%s.next", f->key);
    BSON_APPEND_DOCUMENT_BEGIN(query, path.ptr, &least);
    BSON_APPEND_INT64(&least, "$gte", range->to);
    bson_append_document_end(query, &least);
    add_fill(f->key, f->fills, query, set);
    text_fini(&path);
}

/* Adds the conditions and the new values of one range. */
static void add_range(struct mongo_store *m, const struct range *range, bson_t *query, bson_t *set,
                      bson_t *unset)
{
    if (m->batch.backfills) {
        add_found(m, range, query, set);
        return;
    }
    const struct mongo_partition *p = mongo_own_partition(m, range);
    BSON_APPEND_UTF8(query, mongo_partition_member(m, p, "owner"), m->writer.slot);
    BSON_APPEND_INT64(query, mongo_partition_member(m, p, "epoch"), p->epoch);
    BSON_APPEND_INT64(query, mongo_partition_member(m, p, "claim"), p->claim);
    mongo_match_number(query, mongo_partition_member(m, p, "next"), p->next, !p->is_new);
    if (m->batch.taken != NULL)
        add_fill(p->key, p->fills, query, set);
    if (m->batch.taken != NULL && range->to == 0)
        remove_position(m, p, unset);
    else
        mongo_add_position(m, p, range, set);
}

/* Opens the batch. This also ends the batch before it, which is applied. */
static void add_open(struct mongo_store *m, int64_t seq, bson_t *set)
{
    char path[64], index[16];
    bson_t open, ranges, one;
    snprintf(path, sizeof path, "writers.%s.open", m->writer.slot);
    BSON_APPEND_DOCUMENT_BEGIN(set, path, &open);
    BSON_APPEND_INT64(&open, "seq", seq);
    BSON_APPEND_INT64(&open, "prev", m->writer.committed);
    BSON_APPEND_INT64(&open, "inc", m->writer.inc);
    BSON_APPEND_INT64(&open, "bytes", (int64_t)m->batch.log.packed.len);
    BSON_APPEND_ARRAY_BEGIN(&open, "ranges", &ranges);
    for (size_t i = 0; i < m->batch.range_count; i++) {
        snprintf(index, sizeof index, "%u", (unsigned)i);
        BSON_APPEND_DOCUMENT_BEGIN(&ranges, index, &one);
        BSON_APPEND_UTF8(&one, "partition",
                         m->batch.backfills ? m->batch.found.key
                                            : mongo_own_partition(m, &m->batch.ranges[i])->key);
        BSON_APPEND_INT64(&one, "from", m->batch.ranges[i].from);
        BSON_APPEND_INT64(&one, "to", m->batch.ranges[i].to);
        bson_append_document_end(&ranges, &one);
    }
    bson_append_array_end(&open, &ranges);
    bson_append_document_end(set, &open);
}

/* The last batch is done, so the slot has no open batch. If it has one, an earlier ledger was put back. */
static void add_nothing_open(const struct mongo_store *m, bson_t *query)
{
    char path[64];
    snprintf(path, sizeof path, "writers.%s.open", m->writer.slot);
    mongo_match_nothing(query, path);
}

void mongo_prepare_commit(struct mongo_store *m, int64_t seq)
{
    char path[64];
    bson_t set, unset = BSON_INITIALIZER;
    bson_destroy(m->batch.commit_filter);
    bson_destroy(m->batch.commit_update);
    bson_t *query = m->batch.commit_filter = bson_new();
    mongo_add_ledger(m, query);
    snprintf(path, sizeof path, "writers.%s.inc", m->writer.slot);
    BSON_APPEND_INT64(query, path, m->writer.inc);
    snprintf(path, sizeof path, "writers.%s.seq", m->writer.slot);
    mongo_match_number(query, path, m->writer.committed, m->writer.committed > 0);
    if (m->writer.is_done)
        add_nothing_open(m, query);
    bson_init(&set);
    BSON_APPEND_INT64(&set, path, seq);
    snprintf(path, sizeof path, "writers.%s.lease", m->writer.slot);
    BSON_APPEND_DATE_TIME(&set, path, clock_wall_ms(m->store.clock));
    for (size_t i = 0; i < m->batch.range_count; i++)
        add_range(m, &m->batch.ranges[i], query, &set, &unset);
    add_open(m, seq, &set);
    m->batch.commit_update = bson_new();
    BSON_APPEND_DOCUMENT(m->batch.commit_update, "$set", &set);
    if (!bson_empty(&unset))
        BSON_APPEND_DOCUMENT(m->batch.commit_update, "$unset", &unset);
    bson_destroy(&unset);
    bson_destroy(&set);
}

/* Sets *e to the reason why the ledger refused a commit. */
static bool explain(struct mongo_store *m, const bson_t *ledger, struct err *e)
{
    char path[64];
    if (!mongo_check_ledger(m, ledger, e))
        return false;
    snprintf(path, sizeof path, "writers.%s.inc", m->writer.slot);
    if (mongo_number_at(ledger, path, -1) != m->writer.inc)
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

/* The slot in the ledger decides: a reply may have been lost, and another may have recovered the batch
 * since. */
bool mongo_commit(struct mongo_store *m, bool *committed, struct err *e)
{
    char path[64];
    bson_t ledger;
    if (!mongo_update_one(m->client, MONGO_LEDGER, m->batch.commit_filter, m->batch.commit_update, false,
                          committed, e))
        return false;
    if (*committed)
        return true;
    bool good = mongo_read_ledger(m, &ledger, e);
    if (good) {
        snprintf(path, sizeof path, "writers.%s.inc", m->writer.slot);
        *committed = mongo_is_same_ledger(m, &ledger) &&
                     mongo_number_at(&ledger, path, -1) == m->writer.inc &&
                     mongo_seq_of(&ledger, m->writer.slot) == m->writer.number;
        if (!*committed)
            (void)!explain(m, &ledger, e);
    }
    bson_destroy(&ledger);
    return good;
}
