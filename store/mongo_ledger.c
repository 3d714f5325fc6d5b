/* The ledger: docs/LEDGER.md, by writes of one document. */
#include "base/check.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "store/mongo_internal.h"

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

/* A set of documents may not hold dots in names, nor a leading $. */
static char *partition_key(const struct range *range)
{
    struct text key = {0};
    mongo_escape(&key, slice_text(range->source), ".$");
    text_putc(&key, '/');
    mongo_escape(&key, slice_text(range->partition), ".$");
    return key.ptr;
}

/* "partitions.kafka:access/0.next"; valid until the next one. */
static const char *member_of(struct mongo_store *m, const struct mongo_partition *p, const char *name)
{
    text_clear(&m->id);
    text_printf(&m->id, "partitions.%s.%s", p->key, name);
    return m->id.ptr;
}

static bool copy_document(void *context, const bson_t *document)
{
    bson_t *copy = context;
    bson_destroy(copy);
    bson_copy_to(document, copy);
    return false;
}

/* As the primary has it; empty where there is none. The caller destroys it. */
bool mongo_read_ledger(struct mongo_store *m, bson_t *ledger, struct err *e)
{
    bson_t filter;
    bson_init(ledger);
    bson_init(&filter);
    BSON_APPEND_UTF8(&filter, "_id", MONGO_LEDGER);
    bool good = mongo_find(m->client, MONGO_LEDGER, &filter, NULL, copy_document, ledger, e);
    bson_destroy(&filter);
    return good;
}

/* findAndModify of the ledger: *found false where `query` no longer holds. `ledger` is as it is afterwards.
 */
bool mongo_modify_ledger(struct mongo_store *m, const bson_t *query, const bson_t *update, bool *found,
                         bson_t *ledger, struct err *e)
{
    bson_t command, reply;
    bson_iter_t value;
    bson_init(ledger);
    bson_init(&command);
    BSON_APPEND_UTF8(&command, "findAndModify", MONGO_LEDGER);
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
        copy_document(ledger, &document);
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
    snprintf(path, sizeof path, "writers.%s.open.bytes", slot);
    o->bytes = mongo_number_at(ledger, path, -1);
    snprintf(o->slot, sizeof o->slot, "%s", slot);
    return o->seq >= 0;
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

/* ---- partitions */

struct mongo_partition *mongo_find_partition(struct mongo_store *m, const struct range *range)
{
    for (size_t i = 0; i < m->partition_count; i++) {
        struct mongo_partition *p = &m->partitions[i];
        if (strcmp(p->source, range->source) == 0 && strcmp(p->partition, range->partition) == 0)
            return p;
    }
    return NULL;
}

/* Does the open batch of a slot have events of this partition? */
static bool covers(const bson_t *ledger, const char *slot, const char *key)
{
    char path[64];
    bson_iter_t ranges, at, name;
    snprintf(path, sizeof path, "writers.%s.open.ranges", slot);
    if (!mongo_find_member(ledger, path, &ranges) || !bson_iter_recurse(&ranges, &at))
        return false;
    while (bson_iter_next(&at)) {
        if (bson_iter_recurse(&at, &name) && bson_iter_find(&name, "partition") &&
            BSON_ITER_HOLDS_UTF8(&name) && strcmp(bson_iter_utf8(&name, NULL), key) == 0)
            return true;
    }
    return false;
}

/* Finish, for whoever had the partition before, what is sealed of it. */
static bool recover_of(struct mongo_store *m, const bson_t *ledger, const char *key, struct err *e)
{
    for (int i = 0; i < MONGO_SLOTS; i++) {
        struct mongo_open o;
        char slot[MONGO_SLOT_BYTES];
        snprintf(slot, sizeof slot, "w%d", i);
        if (strcmp(slot, m->slot) != 0 && mongo_open_of(ledger, slot, &o) && covers(ledger, slot, key) &&
            !mongo_recover(m, &o, e))
            return false;
    }
    return true;
}

struct until {
    struct mongo_store *m;
    struct mongo_partition *p;
};

static bool take_until(void *context, const bson_t *book)
{
    struct until *u = context;
    for (size_t r = 0; r < u->m->store.report_count; r++) {
        char path[MONGO_NAME_BYTES + 16];
        snprintf(path, sizeof path, "reports.%s.until", u->m->more[r].key);
        u->p->until[r] = mongo_number_at(book, path, -1);
    }
    return false;
}

static bool read_until(struct mongo_store *m, struct mongo_partition *p, struct err *e)
{
    struct until u = {m, p};
    bson_t filter;
    for (size_t r = 0; r < m->store.report_count; r++)
        p->until[r] = -1;
    text_clear(&m->id);
    text_printf(&m->id, "%s/%s", p->source, p->partition);
    bson_init(&filter);
    bson_append_utf8(&filter, "_id", -1, m->id.ptr, (int)m->id.len);
    bool good = mongo_find(m->client, MONGO_BOOKS, &filter, NULL, take_until, &u, e);
    bson_destroy(&filter);
    return good;
}

static bool slot_is_lost(const struct mongo_store *m, struct err *e)
{
    return err_set(e, EX_TEMPFAIL, "%s: another tallyd took over slot %s: start anew",
                   mongo_client_name(m->client), m->slot);
}

/* Make it ours: owner and epoch + 1, whoever had it. */
static bool claim(struct mongo_store *m, struct mongo_partition *p, struct err *e)
{
    char inc[64];
    bson_t query, update, increase, set, ledger;
    bool found;
    bson_init(&query);
    bson_init(&update);
    BSON_APPEND_UTF8(&query, "_id", MONGO_LEDGER);
    snprintf(inc, sizeof inc, "writers.%s.inc", m->slot);
    BSON_APPEND_INT64(&query, inc, m->inc);
    BSON_APPEND_DOCUMENT_BEGIN(&update, "$inc", &increase);
    BSON_APPEND_INT64(&increase, member_of(m, p, "epoch"), 1);
    bson_append_document_end(&update, &increase);
    BSON_APPEND_DOCUMENT_BEGIN(&update, "$set", &set);
    BSON_APPEND_UTF8(&set, member_of(m, p, "owner"), m->slot);
    BSON_APPEND_UTF8(&set, member_of(m, p, "source"), p->source);
    BSON_APPEND_UTF8(&set, member_of(m, p, "partition"), p->partition);
    bson_append_document_end(&update, &set);
    bool good = mongo_modify_ledger(m, &query, &update, &found, &ledger, e);
    if (good && !found)
        good = slot_is_lost(m, e);
    if (good) {
        p->epoch = mongo_number_at(&ledger, member_of(m, p, "epoch"), 0);
        p->next = mongo_number_at(&ledger, member_of(m, p, "next"), -1);
        p->is_new = p->next < 0;
        good = recover_of(m, &ledger, p->key, e);
    }
    bson_destroy(&ledger);
    bson_destroy(&query);
    bson_destroy(&update);
    return good;
}

void mongo_forget_partition(struct mongo_store *m, struct mongo_partition *p)
{
    free(p->key);
    free(p->until);
    *p = m->partitions[--m->partition_count];
}

bool mongo_claim(struct mongo_store *m, const struct range *range, struct mongo_partition **found,
                 struct err *e)
{
    *found = mongo_find_partition(m, range);
    if (*found != NULL)
        return true;
    struct mongo_partition p = {.key = partition_key(range),
                                .until = xcalloc(m->store.report_count + 1, sizeof *p.until)};
    snprintf(p.source, sizeof p.source, "%s", range->source);
    snprintf(p.partition, sizeof p.partition, "%s", range->partition);
    if (!claim(m, &p, e) || !read_until(m, &p, e)) {
        free(p.key);
        free(p.until);
        return false;
    }
    m->partitions =
        xgrow(m->partitions, &m->partition_capacity, m->partition_count + 1, sizeof *m->partitions);
    m->partitions[m->partition_count] = p;
    *found = &m->partitions[m->partition_count++];
    return true;
}

/* ---- seal */

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
    BSON_APPEND_UTF8(query, member_of(m, p, "owner"), m->slot);
    BSON_APPEND_INT64(query, member_of(m, p, "epoch"), p->epoch);
    if (p->is_new) {
        bson_t none;
        BSON_APPEND_DOCUMENT_BEGIN(query, member_of(m, p, "next"), &none);
        BSON_APPEND_BOOL(&none, "$exists", false);
        bson_append_document_end(query, &none);
    } else {
        BSON_APPEND_INT64(query, member_of(m, p, "next"), range->from);
    }
    BSON_APPEND_INT64(set, member_of(m, p, "next"), range->to);
    add_label(set, member_of(m, p, "label"), range->label);
    BSON_APPEND_INT64(set, member_of(m, p, "tail_hash"), (int64_t)range->tail_hash);
    BSON_APPEND_INT64(set, member_of(m, p, "tail_len"), range->tail_len);
    BSON_APPEND_INT64(set, member_of(m, p, "latest_ms"), range->latest_ms);
}

/* The batch that it opens; the one before it, which was applied, is done by that. */
static void add_open(struct mongo_store *m, const struct batch *batch, int64_t seq, bson_t *set)
{
    char path[64], index[16];
    bson_t open, ranges, one;
    snprintf(path, sizeof path, "writers.%s.open", m->slot);
    BSON_APPEND_DOCUMENT_BEGIN(set, path, &open);
    BSON_APPEND_INT64(&open, "seq", seq);
    BSON_APPEND_INT64(&open, "inc", m->inc);
    BSON_APPEND_INT64(&open, "bytes", (int64_t)m->log.packed.len);
    BSON_APPEND_ARRAY_BEGIN(&open, "ranges", &ranges);
    for (size_t i = 0; i < batch->range_count; i++) {
        snprintf(index, sizeof index, "%u", (unsigned)i);
        BSON_APPEND_DOCUMENT_BEGIN(&ranges, index, &one);
        BSON_APPEND_UTF8(&one, "partition", mongo_find_partition(m, &batch->ranges[i])->key);
        BSON_APPEND_INT64(&one, "from", batch->ranges[i].from);
        BSON_APPEND_INT64(&one, "to", batch->ranges[i].to);
        bson_append_document_end(&ranges, &one);
    }
    bson_append_array_end(&open, &ranges);
    bson_append_document_end(set, &open);
}

void mongo_prepare_seal(struct mongo_store *m, const struct batch *batch, int64_t seq)
{
    char path[64];
    bson_t set, none;
    bson_destroy(m->seal_filter);
    bson_destroy(m->seal_update);
    bson_t *query = m->seal_filter = bson_new();
    BSON_APPEND_UTF8(query, "_id", MONGO_LEDGER);
    snprintf(path, sizeof path, "writers.%s.inc", m->slot);
    BSON_APPEND_INT64(query, path, m->inc);
    snprintf(path, sizeof path, "writers.%s.seq", m->slot);
    if (m->sealed > 0) {
        BSON_APPEND_INT64(query, path, m->sealed);
    } else {
        BSON_APPEND_DOCUMENT_BEGIN(query, path, &none);
        BSON_APPEND_BOOL(&none, "$exists", false);
        bson_append_document_end(query, &none);
    }
    bson_init(&set);
    BSON_APPEND_INT64(&set, path, seq);
    snprintf(path, sizeof path, "writers.%s.lease", m->slot);
    BSON_APPEND_DATE_TIME(&set, path, clock_wall_ms(&clock_system));
    for (size_t i = 0; i < batch->range_count; i++)
        add_range(m, &batch->ranges[i], query, &set);
    add_open(m, batch, seq, &set);
    m->seal_update = bson_new();
    BSON_APPEND_DOCUMENT(m->seal_update, "$set", &set);
    bson_destroy(&set);
}

/* Why the ledger refused a seal. */
static bool explain(struct mongo_store *m, const bson_t *ledger, struct err *e)
{
    char path[64];
    snprintf(path, sizeof path, "writers.%s.inc", m->slot);
    if (mongo_number_at(ledger, path, -1) != m->inc)
        return slot_is_lost(m, e);
    for (size_t i = 0; i < m->range_count; i++) {
        const struct mongo_partition *p = mongo_find_partition(m, &m->ranges[i]);
        if (mongo_number_at(ledger, member_of(m, p, "epoch"), -1) != p->epoch)
            return err_set(e, EX_TEMPFAIL, "%s: another tallyd took over %s: start anew",
                           mongo_client_name(m->client), m->ranges[i].label);
    }
    return err_set(e, EX_DATAERR, "%s: the ledger was changed by hand or another program",
                   mongo_client_name(m->client));
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
        bool is_ours = mongo_number_at(&ledger, path, -1) == m->inc;
        snprintf(path, sizeof path, "writers.%s.seq", m->slot);
        int64_t seq = mongo_number_at(&ledger, path, 0);
        *sealed = is_ours && seq == m->number;
        if (!*sealed)
            (void)!explain(m, &ledger, e);
        if (is_ours)
            m->sealed = seq;
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
    BSON_APPEND_UTF8(&query, "_id", MONGO_LEDGER);
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

/* ---- positions */

static void read_text(const bson_iter_t *document, const char *name, char *buf, size_t bytes)
{
    bson_iter_t at;
    const char *text =
        bson_iter_recurse(document, &at) && bson_iter_find(&at, name) && BSON_ITER_HOLDS_UTF8(&at)
            ? bson_iter_utf8(&at, NULL)
            : "";
    snprintf(buf, bytes, "%s", text);
}

static int64_t read_number(const bson_iter_t *document, const char *name, int64_t otherwise)
{
    bson_iter_t at;
    return bson_iter_recurse(document, &at) && bson_iter_find(&at, name) ? bson_iter_as_int64(&at)
                                                                         : otherwise;
}

bool mongo_positions(struct store *st, position_fn *fn, void *context, struct err *e)
{
    bson_t ledger;
    bson_iter_t all, at;
    bool good = mongo_read_ledger(mongo_of(st), &ledger, e), more = true;
    if (good && mongo_find_member(&ledger, "partitions", &all) && bson_iter_recurse(&all, &at)) {
        while (more && bson_iter_next(&at)) {
            struct position p = {.range = {.to = read_number(&at, "next", -1),
                                           .tail_hash = (uint64_t)read_number(&at, "tail_hash", 0),
                                           .tail_len = (uint32_t)read_number(&at, "tail_len", 0),
                                           .latest_ms = read_number(&at, "latest_ms", 0)}};
            read_text(&at, "source", p.range.source, sizeof p.range.source);
            read_text(&at, "partition", p.range.partition, sizeof p.range.partition);
            read_text(&at, "label", p.range.label, sizeof p.range.label);
            if (p.range.to >= 0) /* claimed only: nothing was counted */
                more = fn(context, &p);
        }
    }
    bson_destroy(&ledger);
    return good;
}
