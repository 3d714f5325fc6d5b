/* Claims partitions, and keeps how far each is counted (docs/LEDGER.md). */
#include "store/mongo/writer/partition.h"

#include "base/check.h"
#include "base/failpoint.h"
#include "base/mem.h"
#include "store/mongo/ledger/books.h"
#include "store/mongo/ledger/identity.h"
#include "store/mongo/ledger/ledger.h"
#include "store/mongo/ledger/peers.h"
#include "store/mongo/send/recover.h"
#include "store/mongo/wire/command.h"
#include "store/mongo/wire/field.h"
#include "store/mongo/writer/past.h"
#include "store/mongo/writer/position.h"
#include "store/mongo/writer/recall.h"
#include "store/mongo/writer/slot.h"
#include "store/mongo/writer/torn.h"

#include <stdio.h>
#include <stdlib.h>

#define PARTITION_NAME_BYTES (RANGE_SOURCE_BYTES + RANGE_PARTITION_BYTES)

/* Source and partition as one text, with a zero byte in between. */
static struct slice name_of(const char *source, const char *partition, char buf[PARTITION_NAME_BYTES])
{
    const size_t first = strlen(source) + 1, second = strlen(partition);
    memcpy(buf, source, first);
    memcpy(buf + first, partition, second);
    return slice_of(buf, first + second);
}

struct mongo_partition *mongo_known_partition(struct mongo_store *m, const struct range *range)
{
    char buf[PARTITION_NAME_BYTES];
    uint32_t number =
        mongo_names_find(&m->writer.partition_names, name_of(range->source, range->partition, buf));
    return number == 0 ? NULL : &m->writer.partitions[number - 1];
}

struct mongo_partition *mongo_own_partition(struct mongo_store *m, const struct range *range)
{
    struct mongo_partition *p = mongo_known_partition(m, range);
    ASSERT(p != NULL && p->is_claimed);
    return p;
}

/* Reads a position: a partition of the ledger, or a document of `past`. False: nothing of it was counted, or
 * all was taken out again; `r` is unchanged. */
static bool read_position(const bson_t *partition, struct range *r)
{
    if (!mongo_read_place(partition, r))
        return false;
    snprintf(r->source, sizeof r->source, "%s", mongo_text_at(partition, "source"));
    snprintf(r->partition, sizeof r->partition, "%s", mongo_text_at(partition, "partition"));
    return true;
}

/* ---- claims: some partitions at once */

static struct mongo_partition new_partition(const struct mongo_store *m, const struct range *range)
{
    struct mongo_partition p = {.key = mongo_partition_key(range),
                                .is_claimed = true,
                                .is_first = true,
                                .claim = m->writer.claims,
                                .until = xcalloc(m->store.report_count + 1, sizeof *p.until),
                                .builds = xcalloc(m->store.report_count + 1, sizeof *p.builds),
                                .builds_count = m->store.report_count + 1};
    snprintf(p.source, sizeof p.source, "%s", range->source);
    snprintf(p.partition, sizeof p.partition, "%s", range->partition);
    for (size_t r = 0; r < m->store.report_count; r++)
        p.until[r] = -1;
    return p;
}

/* Recovers batches of other slots that are open in the ledger itself and have events of these partitions. */
static bool recover_home(struct mongo_store *m, const struct mongo_names *keys, const bson_t *ledger,
                         struct err *e)
{
    for (int i = 0; i < MONGO_SLOTS; i++) {
        struct mongo_open o;
        const char *slot = mongo_slots[i];
        char path[MONGO_SLOT_PATH_BYTES];
        if (strcmp(slot, m->writer.slot) != 0 && mongo_open_of(ledger, slot, &o) &&
            mongo_covers(keys, ledger, mongo_slot_path(slot, "open.ranges", path)) &&
            !mongo_recover(m, &o, e))
            return false;
    }
    return true;
}

/* The same, with those in the seats that were recalled. */
static bool recover_of(const struct mongo_claims *c, const bson_t *ledger, struct err *e)
{
    bool good = recover_home(c->m, &c->keys, ledger, e);
    for (size_t i = 0; good && i < c->open_count; i++)
        good = mongo_recover(c->m, &c->open[i], e);
    return good;
}

bool mongo_recover_of(struct mongo_store *m, const char *key, const bson_t *ledger, struct err *e)
{
    struct mongo_names keys;
    mongo_names_init(&keys);
    (void)mongo_names_add(&keys, slice_text(key));
    bool good = recover_home(m, &keys, ledger, e);
    mongo_names_fini(&keys);
    return good;
}

/* Takes the builds of a partition from its books into `builds`. */
struct taking {
    const struct mongo_store *m;
    struct build_stretches *builds;
};

/* Takes the builds that counted a partition. An entry is a path: geo, FROM, BUILD. */
static bool take_build(void *context, const char *source, const char *partition, const char *report,
                       const char *entry, int64_t value)
{
    const struct taking *t = context;
    struct build_stretch s;
    size_t list = 0;
    (void)source, (void)partition;
    if (!build_read(entry, value, &s))
        return true;
    if (report[0] != '\0') {
        while (strcmp(t->m->reports[list].name, report) != 0)
            list++;
        list++;
    }
    builds_put(&t->builds[list], &s);
    return true;
}

/* Reads from a document of `books` up to which offset each report counts the partition, and by which builds.
 */
static bool take_until(void *context, const bson_t *book)
{
    const struct mongo_claims *c = context;
    struct range range;
    snprintf(range.source, sizeof range.source, "%s", mongo_text_at(book, "source"));
    snprintf(range.partition, sizeof range.partition, "%s", mongo_text_at(book, "partition"));
    char *key = mongo_partition_key(&range);
    uint32_t number = mongo_names_find(&c->keys, slice_text(key));
    free(key);
    for (size_t r = 0; number != 0 && r < c->m->store.report_count; r++) {
        char path[MONGO_NAME_BYTES + 16];
        snprintf(path, sizeof path, "reports.%s.until", c->m->more[r].key);
        c->partitions[number - 1].until[r] = mongo_number_at(book, path, -1);
    }
    if (number != 0) {
        struct taking t = {c->m, c->partitions[number - 1].builds};
        mongo_read_entries(c->m, book, take_build, &t);
    }
    return true;
}

static bool read_until(struct mongo_claims *c, struct err *e)
{
    struct mongo_ids ids;
    struct text *id = &c->m->id;
    mongo_ids_begin(&ids, bson_new());
    for (size_t i = 0; i < c->count; i++) {
        text_clear(id);
        text_printf(id, "%s/%s", c->partitions[i].source, c->partitions[i].partition);
        mongo_ids_add(&ids, slice_of(id->ptr, id->len));
    }
    return mongo_look(c->m->client, MONGO_BOOKS, mongo_ids_end(&ids), NULL, take_until, c, e);
}

static bool outrun(const struct mongo_store *m, struct err *e)
{
    return err_set_retryable(e, EX_TEMPFAIL, "%s: another writer claims the same at this moment: try again",
                             mongo_client_name(m->client));
}

/* Sets *e to the reason why the ledger refused a claim, or what follows on it. */
static bool explain(struct mongo_store *m, struct err *e)
{
    bson_t ledger;
    bool good = mongo_read_ledger(m, &ledger, e) && mongo_check_ledger(m, &ledger, e);
    if (good)
        good = mongo_slot_at(&ledger, m->writer.slot, "inc", -1) == m->writer.inc
                   ? outrun(m, e)
                   : mongo_lose_slot(m, &ledger, e);
    bson_destroy(&ledger);
    return good;
}

/* Makes this writer the owner of all partitions, also of those that another one had, and raises their epochs.
 * It also names this seat in `from`, unless the positions are brought `home`. `ledger` is the ledger
 * afterwards; the caller destroys it. */
static bool write_claims(const struct mongo_claims *c, bool home, bson_t *ledger, struct err *e)
{
    bson_t query = BSON_INITIALIZER, update = BSON_INITIALIZER, increase = BSON_INITIALIZER,
           set = BSON_INITIALIZER, from;
    bool found;
    struct mongo_store *m = c->m;
    mongo_add_own(m, &query);
    for (size_t i = 0; i < c->count; i++)
        BSON_APPEND_INT64(&increase, mongo_partition_member(m, &c->partitions[i], "epoch"), 1);
    mongo_add_operator(&update, "$inc", &increase);
    for (size_t i = 0; i < c->count; i++) {
        const struct mongo_partition *p = &c->partitions[i];
        BSON_APPEND_UTF8(&set, mongo_partition_member(m, p, "owner"), m->writer.slot);
        BSON_APPEND_INT64(&set, mongo_partition_member(m, p, "claim"), p->claim);
        BSON_APPEND_UTF8(&set, mongo_partition_member(m, p, "source"), p->source);
        BSON_APPEND_UTF8(&set, mongo_partition_member(m, p, "partition"), p->partition);
    }
    mongo_add_operator(&update, "$set", &set);
    if (!home) {
        BSON_APPEND_DOCUMENT_BEGIN(&update, "$addToSet", &from);
        for (size_t i = 0; i < c->count; i++)
            BSON_APPEND_UTF8(&from, mongo_partition_member(m, &c->partitions[i], "from"), m->writer.slot);
        bson_append_document_end(&update, &from);
    }
    bool good = mongo_modify(m->client, MONGO_LEDGER, &query, &update, &found, ledger, e) ||
                mongo_explain_full(m, MONGO_LEDGER, e);
    failpoint(FAILPOINT_CLAIM_WRITTEN);
    return good && (found || explain(m, e));
}

/* Brings back what is in `past`, now that nobody else can. */
static bool bring_back(const struct mongo_claims *c, bson_t *ledger, struct err *e)
{
    bool held;
    return mongo_return(c->m, c->partitions, c->count, ledger, &held, e) && (held || explain(c->m, e));
}

/* Reads the numbers of the claims, which the recall needs. */
static void take_numbers(const struct mongo_claims *c, const bson_t *ledger)
{
    for (size_t i = 0; i < c->count; i++) {
        struct mongo_partition *p = &c->partitions[i];
        p->epoch = mongo_number_at(ledger, mongo_partition_member(c->m, p, "epoch"), 0);
        p->fills = mongo_number_at(ledger, mongo_partition_member(c->m, p, "fills"), 0);
    }
}

/* A fence is raised after the epoch, which stays: if no epoch is higher than ours, the ledger is older than a
 * seat. */
static bool explain_fence(const struct mongo_claims *c, struct err *e)
{
    bson_t ledger;
    bool good = mongo_read_ledger(c->m, &ledger, e) && mongo_check_ledger(c->m, &ledger, e), is_later = false;
    for (size_t i = 0; good && !is_later && i < c->count; i++) {
        int64_t epoch = 0;
        good = mongo_epoch_of(c->m, &ledger, &c->partitions[i], &epoch, e);
        is_later = epoch > c->partitions[i].epoch;
    }
    bson_destroy(&ledger);
    if (!good)
        return false;
    return is_later ? outrun(c->m, e)
                    : mongo_refuse(c->m, e, "a seat was recalled by a claim that its ledger does not have");
}

/* Finds the positions, in the ledger and in the seats that it names. */
static bool recall(struct mongo_claims *c, const bson_t *ledger, struct err *e)
{
    bool held;
    take_numbers(c, ledger);
    if (!mongo_recall(c, ledger, &held, e))
        return false;
    failpoint(FAILPOINT_CLAIM_RECALLED);
    if (!held)
        return explain_fence(c, e);
    for (size_t i = 0; i < c->count; i++) {
        struct mongo_partition *p = &c->partitions[i];
        p->is_new = c->ranges[i].to < 0;
        c->ranges[i].from = p->next = c->ranges[i].to;
    }
    return true;
}

/* Open batches have been recovered: from now on the ledger itself says where these go on. */
static bool bring_home(const struct mongo_claims *c, struct err *e)
{
    bool held;
    for (size_t i = 0; i < c->count; i++)
        c->partitions[i].is_home = true;
    return mongo_bring_home(c, &held, e) && (held || explain(c->m, e));
}

void mongo_forget_partitions(struct mongo_store *m)
{
    for (size_t i = 0; i < m->writer.partition_count; i++)
        m->writer.partitions[i].is_claimed = false;
}

void mongo_drop_partitions(struct mongo_store *m, const struct range *ranges, size_t count)
{
    struct mongo_writer *w = &m->writer;
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        struct mongo_partition *p = mongo_known_partition(m, &ranges[i]);
        if (p == NULL || p->is_claimed || p->key == NULL)
            continue;
        mongo_partition_fini(p);
        p->key = NULL; /* no partition that is known has none */
    }
    mongo_names_fini(&w->partition_names);
    mongo_names_init(&w->partition_names);
    for (size_t i = 0; i < w->partition_count; i++) {
        const struct mongo_partition *p = &w->partitions[i];
        char buf[PARTITION_NAME_BYTES];
        if (p->key == NULL)
            continue;
        ASSERT(mongo_names_add(&w->partition_names, name_of(p->source, p->partition, buf)) == kept + 1);
        w->partitions[kept++] = *p;
    }
    w->partition_count = kept;
}

static void keep_partition(struct mongo_store *m, const struct range *range, const struct mongo_partition *p)
{
    struct mongo_partition *old = mongo_known_partition(m, range);
    char buf[PARTITION_NAME_BYTES];
    if (old != NULL) {
        mongo_partition_fini(old);
        *old = *p;
        return;
    }
    m->writer.partitions = xgrow(m->writer.partitions, &m->writer.partition_capacity,
                                 m->writer.partition_count + 1, sizeof *m->writer.partitions);
    m->writer.partitions[m->writer.partition_count++] = *p;
    ASSERT(mongo_names_add(&m->writer.partition_names, name_of(p->source, p->partition, buf)) ==
           m->writer.partition_count);
}

/* Checks that partitions which the handle knew continue where they were. */
static bool check_claims(struct mongo_claims *c, struct err *e)
{
    for (size_t i = 0; i < c->count; i++) {
        const struct mongo_partition *was = mongo_known_partition(c->m, &c->ranges[i]);
        if (was != NULL && !mongo_check_partition(c->m, was, &c->partitions[i], e))
            return false;
    }
    return true;
}

/* A claim that failed may have raised epochs and fences: the claim before it does not hold any more. */
static void forget_last(const struct mongo_claims *c, size_t i)
{
    struct mongo_partition *was = mongo_known_partition(c->m, &c->ranges[i]);
    if (was != NULL)
        was->is_claimed = false;
}

static bool claim(struct mongo_claims *c, bool home, struct err *e)
{
    struct mongo_store *m = c->m;
    if (m->writer.slot[0] == '\0') /* what a lost slot claimed is in its seat */
        mongo_forget_partitions(m);
    bson_t ledger = BSON_INITIALIZER;
    m->writer.claims++;
    for (size_t i = 0; i < c->count; i++) {
        c->partitions[i] = new_partition(m, &c->ranges[i]);
        (void)mongo_names_add(&c->keys, slice_text(c->partitions[i].key));
    }
    bool good = mongo_need_slot(m, e) && mongo_meet(&m->store, e) && write_claims(c, home, &ledger, e) &&
                bring_back(c, &ledger, e) && recall(c, &ledger, e) && check_claims(c, e) &&
                recover_of(c, &ledger, e) && (!home || bring_home(c, e)) && read_until(c, e);
    for (size_t i = 0; i < c->count; i++) {
        if (good) {
            keep_partition(m, &c->ranges[i], &c->partitions[i]);
        } else {
            forget_last(c, i);
            mongo_partition_fini(&c->partitions[i]);
        }
    }
    if (good)
        m->writer.batches_to_ask = MONGO_BATCHES_ASKED;
    bson_destroy(&ledger);
    return good;
}

static bool claim_all(struct mongo_store *m, struct range *ranges, size_t count, bool home, struct err *e)
{
    struct mongo_claims c = {.m = m, .ranges = ranges, .count = count};
    if (count == 0)
        return true;
    c.partitions = xcalloc(count, sizeof *c.partitions);
    c.held = xcalloc(count, sizeof *c.held);
    c.open = xcalloc(MONGO_SLOTS, sizeof *c.open);
    mongo_names_init(&c.keys);
    bool good = claim(&c, home, e);
    mongo_names_fini(&c.keys);
    free(c.open);
    free(c.held);
    free(c.partitions);
    return good;
}

bool mongo_claim(struct store *st, struct range *ranges, size_t count, struct err *e)
{
    return claim_all(mongo_of(st), ranges, count, false, e);
}

bool mongo_claim_home(struct mongo_store *m, struct range *ranges, size_t count, struct err *e)
{
    return claim_all(m, ranges, count, true, e);
}

/* Was it another's meanwhile, or never ours, or is its position in the other place? */
static bool is_to_be_claimed(struct mongo_store *m, const struct range *r)
{
    const struct mongo_partition *p = mongo_known_partition(m, r);
    return p == NULL || !p->is_claimed || p->is_home != (m->batch.taken != NULL) ||
           (!p->is_new && p->next != r->from);
}

bool mongo_claim_for(struct mongo_store *m, const struct batch *batch, struct err *e)
{
    size_t count = 0;
    struct range *ranges = xcalloc(batch->range_count + 1, sizeof *ranges);
    for (size_t i = 0; i < batch->range_count; i++) {
        if (is_to_be_claimed(m, &batch->ranges[i]))
            ranges[count++] = batch->ranges[i];
    }
    bool good = claim_all(m, ranges, count, m->batch.taken != NULL, e);
    free(ranges);
    return good;
}

/* ---- positions */

struct positions {
    position_fn *fn;
    void *context;
    struct mongo_names seen; /* files whose position the ledger has, or that were taken out there */
};

/* Notes a file that was taken out: none of its positions in `past` holds. */
static void note_taken(struct positions *g, const bson_t *partition)
{
    if (mongo_number_at(partition, "held", 0) > 0 && mongo_text_at(partition, "partition")[0] == '\0')
        (void)mongo_names_add(&g->seen, slice_text(mongo_text_at(partition, "source")));
}

static bool see_past(void *context, const bson_t *past)
{
    struct positions *g = context;
    struct position p = {0};
    return !read_position(past, &p.range) || mongo_names_find(&g->seen, slice_text(p.range.source)) != 0 ||
           g->fn(g->context, &p);
}

/* The ledger first: what leaves it meanwhile is in `past` by then. One picture: if a position moved from seat
 * to seat between two readings, its file would pass for one that was never counted, and be counted again
 * under another name. */
bool mongo_positions(struct store *st, position_fn *fn, void *context, struct err *e)
{
    struct positions g = {.fn = fn, .context = context};
    bson_t ledger, partition;
    bson_iter_t at;
    bool good = mongo_read_picture(mongo_of(st), &ledger, e), more = true;
    bool has = good && mongo_begin_members(&ledger, "partitions", &at);
    mongo_names_init(&g.seen);
    while (has && more && mongo_next_document(&at, &partition)) {
        struct position p = {0};
        if (!read_position(&partition, &p.range)) {
            note_taken(&g, &partition);
            continue;
        }
        if (p.range.partition[0] == '\0')
            (void)mongo_names_add(&g.seen, slice_text(p.range.source));
        more = fn(context, &p);
    }
    if (good && more)
        good = mongo_look(mongo_of(st)->client, MONGO_PAST, NULL, NULL, see_past, &g, e);
    mongo_names_fini(&g.seen);
    bson_destroy(&ledger);
    return good;
}
