/* The ledger: docs/LEDGER.md, by writes of one document. */
#include "base/check.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "store/mongo/handle/internal.h"
#include "store/mongo/ledger/peers.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* A member of a document below `at`, by a path whose last name may hold anything but a dot. */
bool mongo_find_member(const bson_t *document, const char *path, bson_iter_t *found)
{
    bson_iter_t it;
    return bson_iter_init(&it, document) && bson_iter_find_descendant(&it, path, found);
}

int64_t mongo_number_at(const bson_t *document, const char *path, int64_t otherwise)
{
    bson_iter_t it;
    if (!mongo_find_member(document, path, &it))
        return otherwise;
    return BSON_ITER_HOLDS_DATE_TIME(&it) ? bson_iter_date_time(&it) : bson_iter_as_int64(&it);
}

static bool copy_document(void *context, const bson_t *document)
{
    bson_t *copy = context;
    bson_destroy(copy);
    bson_copy_to(document, copy);
    return false;
}

bool mongo_read_document(struct mongo_store *m, const char *collection, const char *id, bson_t *document,
                         struct err *e)
{
    bson_t filter;
    bson_init(document);
    bson_init(&filter);
    BSON_APPEND_UTF8(&filter, "_id", id);
    bool good = mongo_find(m->client, collection, &filter, NULL, copy_document, document, e);
    bson_destroy(&filter);
    return good;
}

int64_t mongo_seq_of(const bson_t *ledger, const char *slot)
{
    char path[64];
    snprintf(path, sizeof path, "writers.%s.seq", slot);
    return mongo_number_at(ledger, path, 0);
}

bool mongo_read_ledger(struct mongo_store *m, bson_t *ledger, struct err *e)
{
    return mongo_read_document(m, MONGO_LEDGER, MONGO_LEDGER, ledger, e);
}

bool mongo_modify(struct mongo_store *m, const char *collection, const bson_t *query, const bson_t *update,
                  bool *found, bson_t *after, struct err *e)
{
    bson_t command, reply;
    bson_iter_t value;
    bson_init(after);
    bson_init(&command);
    BSON_APPEND_UTF8(&command, "findAndModify", collection);
    BSON_APPEND_DOCUMENT(&command, "query", query);
    BSON_APPEND_DOCUMENT(&command, "update", update);
    BSON_APPEND_BOOL(&command, "new", true);
    bool good = mongo_write(m->client, &command, &reply, e);
    *found = good && bson_iter_init_find(&value, &reply, "value") && BSON_ITER_HOLDS_DOCUMENT(&value);
    if (*found) {
        bson_t document;
        const uint8_t *bytes;
        uint32_t len;
        bson_iter_document(&value, &len, &bytes);
        ASSERT(bson_init_static(&document, bytes, len));
        copy_document(after, &document);
    }
    bson_destroy(&reply);
    bson_destroy(&command);
    return good;
}

/* What is open in a slot: sealed, and not done. */
bool mongo_open_of(const bson_t *ledger, const char *slot, struct mongo_open *o)
{
    char path[64];
    snprintf(path, sizeof path, "writers.%s.open.seq", slot);
    o->seq = mongo_number_at(ledger, path, -1);
    snprintf(path, sizeof path, "writers.%s.open.inc", slot);
    o->inc = mongo_number_at(ledger, path, -1);
    snprintf(path, sizeof path, "writers.%s.open.prev", slot);
    o->prev = mongo_number_at(ledger, path, o->seq - 1); /* as versions had it that wrote none */
    snprintf(path, sizeof path, "writers.%s.open.bytes", slot);
    o->bytes = mongo_number_at(ledger, path, -1);
    snprintf(o->slot, sizeof o->slot, "%s", slot);
    return o->seq >= 0;
}

size_t mongo_all_open(const bson_t *ledger, struct mongo_open open[MONGO_SLOTS])
{
    size_t count = 0;
    for (int i = 0; i < MONGO_SLOTS; i++) {
        char slot[MONGO_SLOT_BYTES];
        snprintf(slot, sizeof slot, "w%d", i);
        count += mongo_open_of(ledger, slot, &open[count]);
    }
    return count;
}

/* What the ledger says of the slot's open batch now. */
bool mongo_read_open(struct mongo_store *m, const char *slot, struct mongo_open *o, struct err *e)
{
    bson_t ledger;
    bool good = mongo_read_ledger(m, &ledger, e);
    if (good)
        (void)mongo_open_of(&ledger, slot, o);
    bson_destroy(&ledger);
    return good;
}

/* ---- seal */

void mongo_match_nothing(bson_t *query, const char *path)
{
    bson_t none;
    BSON_APPEND_DOCUMENT_BEGIN(query, path, &none);
    BSON_APPEND_BOOL(&none, "$exists", false);
    bson_append_document_end(query, &none);
}

void mongo_match_number(bson_t *query, const char *path, int64_t number, bool is_there)
{
    if (is_there)
        BSON_APPEND_INT64(query, path, number);
    else
        mongo_match_nothing(query, path);
}

/* A path may hold any bytes, and end within a character. */
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

/* The conditions and what it sets, of one range. */
static void add_range(struct mongo_store *m, const struct range *range, bson_t *query, bson_t *set)
{
    const struct mongo_partition *p = mongo_find_partition(m, range);
    BSON_APPEND_UTF8(query, mongo_partition_member(m, p, "owner"), m->slot);
    BSON_APPEND_INT64(query, mongo_partition_member(m, p, "epoch"), p->epoch);
    mongo_match_number(query, mongo_partition_member(m, p, "next"), range->from, !p->is_new);
    BSON_APPEND_INT64(set, mongo_partition_member(m, p, "next"), range->to);
    add_label(set, mongo_partition_member(m, p, "label"), range->label);
    BSON_APPEND_INT64(set, mongo_partition_member(m, p, "tail_hash"), (int64_t)range->tail_hash);
    BSON_APPEND_INT64(set, mongo_partition_member(m, p, "tail_len"), range->tail_len);
    BSON_APPEND_INT64(set, mongo_partition_member(m, p, "latest_ms"), range->latest_ms);
    if (range->partition[0] != '\0') {
        unsigned char bytes[WITNESSES_MAX * WITNESS_BYTES];
        size_t len = witnesses_pack(&range->witnesses, bytes);
        BSON_APPEND_BINARY(set, mongo_partition_member(m, p, "witnesses"), BSON_SUBTYPE_BINARY, bytes,
                           (uint32_t)len);
    }
}

/* The batch that it opens; the one before it, which was applied, is done by that. */
static void add_open(struct mongo_store *m, int64_t seq, bson_t *set)
{
    char path[64], index[16];
    bson_t open, ranges, one;
    snprintf(path, sizeof path, "writers.%s.open", m->slot);
    BSON_APPEND_DOCUMENT_BEGIN(set, path, &open);
    BSON_APPEND_INT64(&open, "seq", seq);
    BSON_APPEND_INT64(&open, "prev", m->sealed);
    BSON_APPEND_INT64(&open, "inc", m->inc);
    BSON_APPEND_INT64(&open, "bytes", (int64_t)m->log.packed.len);
    BSON_APPEND_ARRAY_BEGIN(&open, "ranges", &ranges);
    for (size_t i = 0; i < m->range_count; i++) {
        snprintf(index, sizeof index, "%u", (unsigned)i);
        BSON_APPEND_DOCUMENT_BEGIN(&ranges, index, &one);
        BSON_APPEND_UTF8(&one, "partition", mongo_find_partition(m, &m->ranges[i])->key);
        BSON_APPEND_INT64(&one, "from", m->ranges[i].from);
        BSON_APPEND_INT64(&one, "to", m->ranges[i].to);
        bson_append_document_end(&ranges, &one);
    }
    bson_append_array_end(&open, &ranges);
    bson_append_document_end(set, &open);
}

/* As the ledger said when the last one was done: else it is an earlier one, put back. */
static void add_nothing_open(const struct mongo_store *m, bson_t *query)
{
    char path[64];
    snprintf(path, sizeof path, "writers.%s.open", m->slot);
    mongo_match_nothing(query, path);
}

void mongo_prepare_seal(struct mongo_store *m, int64_t seq)
{
    char path[64];
    bson_t set;
    bson_destroy(m->seal_filter);
    bson_destroy(m->seal_update);
    bson_t *query = m->seal_filter = bson_new();
    mongo_add_ledger(m, query);
    snprintf(path, sizeof path, "writers.%s.inc", m->slot);
    BSON_APPEND_INT64(query, path, m->inc);
    snprintf(path, sizeof path, "writers.%s.seq", m->slot);
    mongo_match_number(query, path, m->sealed, m->sealed > 0);
    if (m->is_done)
        add_nothing_open(m, query);
    bson_init(&set);
    BSON_APPEND_INT64(&set, path, seq);
    snprintf(path, sizeof path, "writers.%s.lease", m->slot);
    BSON_APPEND_DATE_TIME(&set, path, clock_wall_ms(&clock_system));
    for (size_t i = 0; i < m->range_count; i++)
        add_range(m, &m->ranges[i], query, &set);
    add_open(m, seq, &set);
    m->seal_update = bson_new();
    BSON_APPEND_DOCUMENT(m->seal_update, "$set", &set);
    bson_destroy(&set);
}

bool mongo_lose_slot(struct mongo_store *m, const bson_t *ledger, struct err *e)
{
    char other[MONGO_WRITER_BYTES];
    err_set(
        e, EX_TEMPFAIL,
        "%s: another tallyd took over slot %s, since this one was not heard of for a minute: %s: start anew",
        mongo_client_name(m->client), m->slot, mongo_describe_writer(ledger, m->slot, other));
    m->slot[0] = '\0';
    if (m->step == STEP_LOGGING)
        m->step = STEP_NONE; /* what is logged has the lost slot's name */
    return false;
}

/* Why the ledger refused a seal. */
static bool explain(struct mongo_store *m, const bson_t *ledger, struct err *e)
{
    char path[64];
    if (!mongo_check_ledger(m, ledger, e))
        return false;
    snprintf(path, sizeof path, "writers.%s.inc", m->slot);
    if (mongo_number_at(ledger, path, -1) != m->inc)
        return mongo_lose_slot(m, ledger, e);
    for (size_t i = 0; i < m->range_count; i++) {
        const struct mongo_partition *p = mongo_find_partition(m, &m->ranges[i]);
        int64_t epoch = mongo_number_at(ledger, mongo_partition_member(m, p, "epoch"), -1);
        if (epoch < p->epoch)
            return mongo_refuse(m, e, "%s was claimed %" PRId64 " times, and now fewer", m->ranges[i].label,
                                p->epoch);
        if (epoch != p->epoch)
            return mongo_taken_over(m, ledger, m->ranges[i].label,
                                    mongo_text_at(ledger, mongo_partition_member(m, p, "owner")), e);
    }
    return mongo_refuse(m, e, "its positions were changed by hand or another program");
}

/* What the ledger says of the slot decides: whether a reply was lost, and whether another has recovered it
 * since. */
bool mongo_seal(struct mongo_store *m, bool *sealed, struct err *e)
{
    char path[64];
    bson_t ledger;
    if (!mongo_update_one(m->client, MONGO_LEDGER, m->seal_filter, m->seal_update, false, sealed, e))
        return false;
    if (*sealed)
        return true;
    bool good = mongo_read_ledger(m, &ledger, e);
    if (good) {
        snprintf(path, sizeof path, "writers.%s.inc", m->slot);
        *sealed = mongo_is_same_ledger(m, &ledger) && mongo_number_at(&ledger, path, -1) == m->inc &&
                  mongo_seq_of(&ledger, m->slot) == m->number;
        if (!*sealed)
            (void)!explain(m, &ledger, e);
    }
    bson_destroy(&ledger);
    return good;
}

bool mongo_done(struct mongo_store *m, const struct mongo_open *o, struct err *e)
{
    char path[64];
    bson_t query, update, unset;
    bool found;
    bson_init(&query);
    mongo_add_ledger(m, &query);
    snprintf(path, sizeof path, "writers.%s.open.seq", o->slot);
    BSON_APPEND_INT64(&query, path, o->seq);
    bson_init(&update);
    snprintf(path, sizeof path, "writers.%s.open", o->slot);
    BSON_APPEND_DOCUMENT_BEGIN(&update, "$unset", &unset);
    BSON_APPEND_UTF8(&unset, path, "");
    bson_append_document_end(&update, &unset);
    /* Not found: somebody else was quicker. */
    bool good = mongo_update_one(m->client, MONGO_LEDGER, &query, &update, false, &found, e);
    bson_destroy(&update);
    bson_destroy(&query);
    return good;
}
