#include "store/mongo/writer/crowd.h"

#include "base/check.h"
#include "base/failpoint.h"
#include "base/mem.h"
#include "store/mongo/doc/document.h"
#include "store/mongo/doc/sketch.h"
#include "store/mongo/wire/command.h"
#include "store/mongo/wire/field.h"

#define XXH_INLINE_ALL
#include <stdio.h>
#include <stdlib.h>
#include <xxhash.h>

#define SLOTS       (1u << 16)
#define CHUNK_BYTES ((size_t)256 << 10)
#define PAGE        50 /* documents read at a time; each has at most some 250 KiB */

/* Further checks come at the next step; after the last one, when the texts have come to it again. */
#define STEPS_MAX 10000

/* The texts that this writer has written into a document. */
struct mongo_crowd_slot {
    uint64_t hash;       /* hash of the document's name; 0: an empty slot */
    struct distinct own; /* its texts; with registers: the document has many, and `own` is not kept */
};

size_t mongo_crowd_bytes_max(const struct report *reports, size_t count)
{
    for (size_t r = 0; r < count; r++) {
        for (size_t i = 0; i < reports[r].sketch_count; i++) {
            if (report_sketched(&reports[r], i)->kind == MEASURE_DISTINCT)
                return MONGO_CROWD_BYTES + SLOTS * sizeof(struct mongo_crowd_slot);
        }
    }
    return 0;
}

/* ---- own texts */

/* A batch that was dropped may be in all of it. */
void mongo_crowd_forget(struct mongo_store *m)
{
    struct mongo_crowd *c = &m->crowd;
    if (c->count == 0)
        return;
    memset(c->slots, 0, SLOTS * sizeof *c->slots);
    arena_reset(&c->memory);
    c->count = 0;
}

static uint64_t hash_of(const struct mongo_counted *where)
{
    const int64_t name[] = {(int64_t)where->report, (int64_t)where->sketch, where->kind->span, where->series,
                            where->start_ms};
    const uint64_t hash = XXH3_64bits(name, sizeof name);
    return hash != 0 ? hash : 1;
}

/* The slot of a document, or the empty one for it. */
static struct mongo_crowd_slot *find_slot(struct mongo_crowd *c, uint64_t hash)
{
    size_t at = hash & (SLOTS - 1);
    while (c->slots[at].hash != 0 && c->slots[at].hash != hash)
        at = (at + 1) & (SLOTS - 1);
    return &c->slots[at];
}

/* Forgets texts, but not which documents have many, while these are less than half of the table: a writer
 * that forgot it would add entries to them again. */
static void make_room(struct mongo_store *m)
{
    struct mongo_crowd *c = &m->crowd;
    uint64_t *many = xcalloc(SLOTS / 2, sizeof *many);
    size_t many_count = 0;
    for (size_t i = 0; i < SLOTS && many_count < SLOTS / 2; i++) {
        if (c->slots[i].own.mask == DISTINCT_MANY)
            many[many_count++] = c->slots[i].hash;
    }
    mongo_crowd_forget(m);
    for (size_t i = 0; many_count < SLOTS / 2 && i < many_count; i++) {
        *find_slot(c, many[i]) = (struct mongo_crowd_slot){many[i], {.mask = DISTINCT_MANY}};
        c->count++;
    }
    free(many);
}

static struct mongo_crowd_slot *take_slot(struct mongo_store *m, const struct mongo_counted *where)
{
    struct mongo_crowd *c = &m->crowd;
    if (c->slots == NULL) {
        c->slots = xcalloc(SLOTS, sizeof *c->slots);
        arena_init(&c->memory, CHUNK_BYTES);
    }
    if (c->count >= SLOTS / 4 * 3 || arena_bytes(&c->memory) > MONGO_CROWD_BYTES)
        make_room(m);
    struct mongo_crowd_slot *slot = find_slot(c, hash_of(where));
    c->count += slot->hash == 0;
    slot->hash = hash_of(where);
    return slot;
}

/* ---- which documents are checked */

static void check_later(struct mongo_checks *to, const struct mongo_counted *where)
{
    to->list = xgrow(to->list, &to->capacity, to->count + 1, sizeof *to->list);
    to->list[to->count++] = *where;
}

/* Has a count of entries come to one of the steps? Documents of hours and shorter periods are many, and have
 * only the last step, since few writers write each of them. */
static bool reaches_step(enum span span, uint32_t before, uint32_t after)
{
    static const uint32_t steps[] = {16, 64, 256};
    bool reaches = false;
    for (size_t i = span < SPAN_DAY ? COUNT_OF(steps) - 1 : 0; i < COUNT_OF(steps); i++)
        reaches |= before < steps[i] && after >= steps[i];
    return reaches;
}

/* Is a new entry drawn? The number of the batch makes it another draw after a restart, too. */
static bool is_drawn(const struct mongo_store *m, uint64_t document, uint32_t entry)
{
    const uint64_t seed = document + (uint64_t)m->writer.number;
    return XXH3_64bits_withSeed(&entry, sizeof entry, seed) % MONGO_CROWD_DRAWN == 0;
}

/* Adds the entries of a batch to the writer's own. Returns whether one of the new ones is drawn. */
static bool add_entries(struct mongo_store *m, struct mongo_crowd_slot *slot, const struct distinct *d)
{
    struct distinct *own = &slot->own;
    uint32_t places;
    bool drawn = false;
    const uint32_t *entries = distinct_entries(d, &places);
    for (uint32_t i = 0; i < places && own->mask != DISTINCT_MANY; i++) {
        const uint32_t before = own->count;
        if (entries[i] == 0)
            continue;
        distinct_add_entry(own, &m->crowd.memory, entries[i]);
        drawn |= own->count != before && is_drawn(m, slot->hash, entries[i]);
    }
    return drawn;
}

bool mongo_crowd_note(struct mongo_store *m, const struct mongo_counted *where, const struct distinct *d)
{
    struct mongo_crowd *c = &m->crowd;
    struct mongo_crowd_slot *slot = take_slot(m, where);
    const uint32_t before = slot->own.count;
    if (slot->own.mask == DISTINCT_MANY)
        return true;
    if (d->mask == DISTINCT_MANY)
        slot->own.mask = DISTINCT_MANY;
    else if (add_entries(m, slot, d))
        check_later(&c->drawn, where);
    const bool is_many = slot->own.mask == DISTINCT_MANY;
    if (!is_many && !reaches_step(where->kind->span, before, slot->own.count))
        return false;
    if (c->steps.count < STEPS_MAX)
        check_later(&c->steps, where);
    else if (is_many)
        slot->own = (struct distinct){0}; /* its texts are counted anew, so that a check comes */
    return is_many;
}

/* ---- condensing */

/* Documents of one collection that are read together. */
struct condensing {
    struct mongo_store *m;
    const struct mongo_counted *checks;
    size_t count;
    char collection[MONGO_NAME_BYTES];
    struct sketch_work work;
    bson_t *filters[PAGE], *updates[PAGE]; /* of documents that have too many entries */
    size_t update_count;
};

static bool is_together(const struct mongo_counted *a, const struct mongo_counted *b)
{
    return a->report == b->report && a->sketch == b->sketch && a->kind == b->kind;
}

/* The `_id` of a document, in m->id. */
static struct slice id_of(struct mongo_store *m, const struct mongo_counted *where)
{
    char time[MONGO_TIME_BYTES];
    mongo_id(&m->id, m, where->report, mongo_time(where->kind->span, where->start_ms, time),
             mongo_key(&m->more[where->report], where->series));
    return slice_of(m->id.ptr, m->id.len);
}

/* The document has many texts: write registers from now on. */
static void note_many(struct condensing *g, const char *id)
{
    for (size_t i = 0; i < g->count; i++) {
        if (slice_is(id_of(g->m, &g->checks[i]), id))
            take_slot(g->m, &g->checks[i])->own.mask = DISTINCT_MANY;
    }
}

/* Sets registers in place of the entries, if no batch was applied since the document was read. */
static void add_update(struct condensing *g, const bson_t *document, const struct distinct *d)
{
    const char *member = mongo_member(g->checks->kind->span);
    char entries[64];
    bson_t max;
    bson_iter_t at;
    bson_t *filter = g->filters[g->update_count] = bson_new();
    bson_t *update = g->updates[g->update_count++] = bson_new();
    BSON_APPEND_UTF8(filter, "_id", mongo_text_at(document, "_id"));
    if (bson_iter_init_find(&at, document, "applied"))
        bson_append_iter(filter, "applied", -1, &at);
    else
        BSON_APPEND_NULL(filter, "applied"); /* there is still none */
    BSON_APPEND_DOCUMENT_BEGIN(update, "$max", &max);
    mongo_add_distinct(&max, member, d, true);
    bson_append_document_end(update, &max);
    snprintf(entries, sizeof entries, "%s." MONGO_ENTRIES, member);
    BCON_APPEND(update, "$unset", "{", entries, BCON_UTF8(""), "}");
}

/* A damaged document is left alone: readers report it. */
static bool see_document(void *context, const bson_t *document)
{
    struct condensing *g = context;
    const struct measure *measure = report_sketched(&g->m->reports[g->checks->report], g->checks->sketch);
    union sketch s;
    bson_iter_t value, entries;
    memset(&s, 0, sizeof s);
    if (!mongo_find_member(document, mongo_member(g->checks->kind->span), &value) ||
        !BSON_ITER_HOLDS_DOCUMENT(&value))
        return true;
    if (!mongo_merge_sketch(measure, mongo_bytes_of(&value), &s, sketch_work_ready(&g->work)) ||
        s.distinct.mask != DISTINCT_MANY)
        return true;
    note_many(g, mongo_text_at(document, "_id"));
    if (bson_iter_recurse(&value, &entries) && bson_iter_find(&entries, MONGO_ENTRIES))
        add_update(g, document, &s.distinct);
    return true;
}

static bool read_page(struct condensing *g, struct err *e)
{
    const char *member = mongo_member(g->checks->kind->span);
    struct mongo_ids ids;
    mongo_ids_begin(&ids, bson_new());
    for (size_t i = 0; i < g->count; i++)
        mongo_ids_add(&ids, id_of(g->m, &g->checks[i]));
    bson_t *options = BCON_NEW("projection", "{", "applied", BCON_BOOL(true), member, BCON_BOOL(true), "}");
    return mongo_look(g->m->client, g->collection, mongo_ids_end(&ids), options, see_document, g, e);
}

/* Condenses the documents of the last checks that are of one collection. */
static bool condense_page(struct mongo_store *m, struct mongo_checks *checks, struct err *e)
{
    size_t first = checks->count - 1;
    while (first > 0 && checks->count - first < PAGE &&
           is_together(&checks->list[first - 1], &checks->list[checks->count - 1]))
        first--;
    struct condensing g = {.m = m, .checks = &checks->list[first], .count = checks->count - first};
    mongo_sketch_collection(m, g.checks->report, g.checks->sketch, span_name(g.checks->kind->span),
                            g.collection);
    bool good = read_page(&g, e), matched;
    for (size_t i = 0; i < g.update_count; i++) {
        failpoint(FAILPOINT_CONDENSE_READ);
        good =
            good && mongo_update_one(m->client, g.collection, g.filters[i], g.updates[i], false, &matched, e);
        bson_destroy(g.filters[i]);
        bson_destroy(g.updates[i]);
    }
    sketch_work_fini(&g.work);
    if (good ||
        !e->retryable) /* what the server refuses now, it would refuse again: others have their turn */
        checks->count = first;
    return good;
}

bool mongo_condense(struct mongo_store *m, bool all, struct err *e)
{
    struct mongo_crowd *c = &m->crowd;
    bool good = true;
    while (good && c->drawn.count > 0)
        good = condense_page(m, &c->drawn, e);
    for (bool more = true; good && more && c->steps.count > 0; more = all)
        good = condense_page(m, &c->steps, e);
    return good;
}
