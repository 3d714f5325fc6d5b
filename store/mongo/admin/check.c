/* Are ledger and documents of the same moment? They are not if a copy was taken while batches went on, if a
 * database was put back in part, or if a failover lost acknowledged writes. Then documents have batches that
 * the ledger does not know, and new batches with the same numbers pass for applied; or documents lack
 * batches that the ledger calls done.
 *
 * Order : numbers only grow, and a batch is committed before any document has it. So the ledger is read
 *         before the documents, for the batches that they must have, and again after them, for those that
 *         they may have.
 */
#include "store/mongo/admin/check.h"

#include "base/civil.h"
#include "base/mem.h"
#include "store/mongo/catalog/catalog.h"
#include "store/mongo/doc/document.h"
#include "store/mongo/doc/version_stamps.h"
#include "store/mongo/ledger/ledger.h"
#include "store/mongo/ledger/seat.h"
#include "store/mongo/send/batches.h"
#include "store/mongo/wire/command.h"
#include "store/mongo/wire/field.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define PROBLEM_BYTES 2048

/* Where the problems go that a check finds. */
struct problems {
    check_fn *fn;
    void *context;
};

/* A collection, and the numbers of each slot that it has. */
struct seen {
    struct mongo_collection of;
    int64_t seq[MONGO_SLOTS];   /* highest number; -1: none */
    char ids[MONGO_SLOTS][256]; /* a document with the highest number */
    uint64_t lost[MONGO_SLOTS]; /* documents with a number in the slot's gap */
    char lost_ids[MONGO_SLOTS][256];
    int64_t fence; /* highest fence of a roll-up */
};

struct checking {
    struct mongo_store *m;
    struct problems problems;
    bson_t before; /* the ledger before the documents were read */
    struct mongo_gap gaps[MONGO_SLOTS][MONGO_GAPS];
    struct text key, id;
    struct seen *seen; /* the current collection, of `collections` */
    struct seen *collections;
    size_t count, capacity;
};

static void PRINTF_LIKE(2, 3) tell(const struct problems *to, const char *format, ...)
{
    char line[PROBLEM_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    to->fn(to->context, line);
}

/* ---- one document */

static const char *id_of(const bson_t *document)
{
    const char *id = mongo_text_at(document, "_id");
    return id[0] != '\0' ? id : "(no text)";
}

static void note_applied(struct checking *g, const char *key, int64_t seq, const char *id)
{
    struct seen *seen = g->seen;
    const size_t slot = mongo_slot_number(key);
    if (strcmp(key, "rollup") == 0)
        seen->fence = seq > seen->fence ? seq : seen->fence;
    if (slot == MONGO_SLOTS)
        return;
    if (mongo_is_in_gap(g->gaps[slot], seq) && seen->lost[slot]++ == 0)
        snprintf(seen->lost_ids[slot], sizeof seen->lost_ids[slot], "%s", id);
    if (seq <= seen->seq[slot])
        return;
    seen->seq[slot] = seq;
    snprintf(seen->ids[slot], sizeof seen->ids[slot], "%s", id);
}

/* Does the `_id` of a document fit its metadata? */
static void check_name(struct checking *g, const bson_t *document)
{
    const struct mongo_collection *c = &g->seen->of;
    struct mongo_store *m = g->m;
    char time[MONGO_TIME_BYTES];
    bool is_other, has_time = c->holds == HOLDS_DOCUMENTS;
    int64_t date_ms = mongo_number_at(document, "metadata.date", -1);
    const char *id = id_of(document);
    if (!mongo_key_in_document(m, c->report, document, &g->key, &is_other) ||
        (has_time && (date_ms < 0 || date_ms >= CIVIL_END_MS))) {
        tell(&g->problems, "%s: the document \"%s\" has no known series, or no time", c->name, id);
        return;
    }
    const struct slice key = text_slice(&g->key);
    mongo_id(&g->id, m, c->report, has_time ? mongo_time(c->kind->span, date_ms, time) : NULL,
             is_other ? NULL : &key);
    if (strcmp(g->id.ptr != NULL ? g->id.ptr : "", id) != 0)
        tell(&g->problems,
             "%s: the document \"%s\" should be called \"%s\", by its metadata: its counts are of another "
             "series",
             c->name, id, g->id.ptr != NULL ? g->id.ptr : "");
}

static bool see_document(void *context, const bson_t *document)
{
    struct checking *g = context;
    bson_iter_t at;
    for (bool more = mongo_begin_members(document, "applied", &at); more && bson_iter_next(&at);)
        note_applied(g, bson_iter_key(&at), bson_iter_as_int64(&at), id_of(document));
    const struct mongo_collection *c = &g->seen->of;
    bool is_series = c->holds == HOLDS_SERIES &&
                     /* without dimensions, the series has no metadata */
                     g->m->reports[c->report].dimension_count > 0;
    if (c->holds == HOLDS_DOCUMENTS || is_series)
        check_name(g, document);
    return true;
}

static bool see_collection(void *context, const struct mongo_collection *c, struct err *e)
{
    struct checking *g = context;
    if (c->holds == HOLDS_BATCHES || c->holds == HOLDS_LEDGER || c->holds == HOLDS_REPORTS ||
        c->holds == HOLDS_RAW)
        return true;
    g->collections = xgrow(g->collections, &g->capacity, g->count + 1, sizeof *g->collections);
    g->seen = &g->collections[g->count++];
    memset(g->seen, 0, sizeof *g->seen);
    g->seen->of = *c;
    for (int slot = 0; slot < MONGO_SLOTS; slot++)
        g->seen->seq[slot] = -1;
    bson_t *options =
        BCON_NEW("projection", "{", "applied", BCON_BOOL(true), "metadata", BCON_BOOL(true), "}");
    return mongo_look(g->m->client, c->name, NULL, options, see_document, g, e);
}

/* ---- documents against the ledger */

static bool check_ahead(struct checking *g, size_t i, const bson_t *after, struct err *e)
{
    const struct seen *s = &g->collections[i];
    const char *name = s->of.name;
    for (int slot = 0; slot < MONGO_SLOTS; slot++) {
        int64_t seq = mongo_slot_at(after, mongo_slots[slot], "seq", -1), count;
        char path[MONGO_SLOT_BYTES + 16];
        snprintf(path, sizeof path, "applied.w%d", slot);
        if (s->seq[slot] <= seq)
            continue;
        if (!mongo_count(g->m->client, name, BCON_NEW(path, "{", "$gt", BCON_INT64(seq), "}"), &count, e))
            return false;
        if (seq < 0)
            tell(&g->problems,
                 "%s: %" PRId64
                 " documents, one of them \"%s\", have batches of writer w%d, which is not in the ledger",
                 name, count, s->ids[slot], slot);
        else
            tell(&g->problems,
                 "%s: %" PRId64 " documents, one of them \"%s\", have batch %" PRId64
                 " of writer w%d, whose last one is %" PRId64
                 " by the ledger: they are newer than the ledger, which may call counted records uncounted",
                 name, count, s->ids[slot], s->seq[slot], slot, seq);
    }
    return true;
}

static void check_lost(struct checking *g, size_t i)
{
    const struct seen *s = &g->collections[i];
    for (int slot = 0; slot < MONGO_SLOTS; slot++) {
        if (s->lost[slot] > 0)
            tell(&g->problems,
                 "%s: %" PRIu64
                 " documents, one of them \"%s\", have batches of writer w%d that the ledger has "
                 "never known: they are of what was counted before it was put back",
                 s->of.name, s->lost[slot], s->lost_ids[slot], slot);
    }
}

/* Checks that the last batch is in the books: each batch is in the books of its partitions. */
static void check_behind(struct checking *g)
{
    for (size_t i = 0; i < g->count; i++) {
        for (int slot = 0; g->collections[i].of.holds == HOLDS_BOOKS && slot < MONGO_SLOTS; slot++) {
            struct mongo_open open;
            const char *name = mongo_slots[slot];
            int64_t seq = mongo_slot_at(&g->before, name, "seq", -1);
            if (seq > 0 && g->collections[i].seq[slot] < seq && !mongo_open_of(&g->before, name, &open))
                tell(&g->problems,
                     "%s: by the ledger, batch %" PRId64
                     " of writer w%d is done, but no books have it: they are older "
                     "than the ledger, and what it calls counted may be missing",
                     g->collections[i].of.name, seq, slot);
        }
    }
}

/* Checks that the next roll-up passes the documents' guard. */
static bool check_fence(struct checking *g, size_t i, struct err *e)
{
    const struct mongo_collection *c = &g->collections[i].of;
    struct mongo_version_stamps stamps = {0};
    for (size_t t = 0; t < MONGO_TARGETS && c->holds == HOLDS_DOCUMENTS; t++) {
        const bool is_of_target = c->kind->span == mongo_targets[t].kind->span;
        if (!is_of_target || g->collections[i].fence == 0)
            continue;
        if (!mongo_read_stamps(g->m, &mongo_targets[t], c->report, &stamps, e))
            return false;
        free(stamps.list);
        if (g->collections[i].fence > stamps.fence)
            tell(&g->problems,
                 "%s: documents were rolled up by fence %" PRId64 ", but `jobs` is at %" PRId64
                 ": they are newer than it",
                 c->name, g->collections[i].fence, stamps.fence);
    }
    return true;
}

/* ---- the ledger itself */

static bool check_log(struct checking *g, const struct mongo_open *o, struct err *e)
{
    struct text packed = {0};
    struct mongo_open now;
    struct err why;
    bool good = mongo_read_log(g->m, o, &packed, e) && mongo_read_open(g->m, o, &now, e);
    bool is_whole = (int64_t)packed.len == o->bytes;
    if (good && now.seq == o->seq && !is_whole)
        tell(&g->problems,
             "batches: of the log of batch %" PRId64 " of writer %s, which is under way, %zu of %" PRId64
             " bytes are there",
             o->seq, o->slot, packed.len, o->bytes);
    if (good && is_whole && !mongo_log_check(text_slice(&packed), &why))
        tell(&g->problems, "batches: the log of batch %" PRId64 " of writer %s: %s", o->seq, o->slot,
             why.text);
    text_fini(&packed);
    return good;
}

static void check_partition(struct checking *g, const bson_t *ledger, const char *key,
                            const bson_iter_t *value)
{
    bson_t partition;
    if (!mongo_take_document(value, &partition)) {
        tell(&g->problems, "ledger: the partition \"%s\" is not a document", key);
        return;
    }
    const char *owner = mongo_text_at(&partition, "owner");
    if (mongo_number_at(&partition, "next", 0) < 0 || mongo_number_at(&partition, "epoch", 0) < 0)
        tell(&g->problems, "ledger: the partition \"%s\" has a negative offset or a negative epoch", key);
    if (owner[0] != '\0' && mongo_slot_at(ledger, owner, "inc", -1) < 0)
        tell(&g->problems, "ledger: the partition \"%s\" is of writer %s, which it does not know", key,
             owner);
}

static bool check_ledger(struct checking *g, const bson_t *ledger, struct err *e)
{
    struct mongo_open open[MONGO_SLOTS];
    bson_iter_t at;
    size_t count = mongo_all_open(ledger, open);
    for (size_t i = 0; i < count; i++) {
        if (!check_log(g, &open[i], e))
            return false;
    }
    for (bool more = mongo_begin_members(ledger, "partitions", &at); more && bson_iter_next(&at);)
        check_partition(g, ledger, bson_iter_key(&at), &at);
    return true;
}

/* ---- the ledger and its seats: do they belong together? */

/* Writers go on meanwhile. So the order of reading decides what may be compared: an incarnation and an epoch
 * are raised in the ledger before the seat has them, and a seat is there before the ledger names it. */
struct seating {
    const struct problems *problems;
    bson_t home;               /* the ledger itself */
    struct mongo_seats before; /* read before it */
    struct mongo_seats after;  /* read after it, without partitions */
};

/* The epochs of a file begin again while its position comes back from `past`. */
static bool has_lasting_epoch(const bson_t *partition)
{
    return mongo_text_at(partition, "partition")[0] != '\0';
}

/* Compares an entry of a seat with the ledger's partition. */
static void check_entry(const struct seating *s, const char *slot, const bson_iter_t *at)
{
    const char *key = bson_iter_key(at);
    bson_t entry, partitions, partition;
    bson_iter_t it;
    if (!mongo_take_document(at, &entry)) {
        tell(s->problems, "ledger: the partition \"%s\" of seat %s is not a document", key, slot);
        return;
    }
    const int64_t held = mongo_number_at(&entry, "held", 0), fence = mongo_number_at(&entry, "fence", 0);
    if (mongo_number_at(&entry, "next", 0) < 0 || held < 0 || fence < held)
        tell(s->problems,
             "ledger: the partition \"%s\" of seat %s has a negative offset, or was counted without a claim",
             key, slot);
    if (!mongo_find_document(&s->home, "partitions", &partitions) ||
        !bson_iter_init_find(&it, &partitions, key) || !mongo_take_document(&it, &partition) ||
        !has_lasting_epoch(&partition))
        return;
    const int64_t epoch = mongo_number_at(&partition, "epoch", 0);
    if (fence > epoch)
        tell(s->problems,
             "ledger: the partition \"%s\" was claimed %" PRId64 " times by seat %s, and %" PRId64
             " times by the ledger: the seat is newer than the ledger",
             key, fence, slot, epoch);
}

static void check_seat(const struct seating *s, size_t number)
{
    const bson_t *seat = &s->before.list[number];
    const char *slot = mongo_slots[number];
    bson_iter_t all, at;
    const int64_t inc = mongo_number_at(seat, "inc", 0), known = mongo_slot_at(&s->home, slot, "inc", -1);
    if (inc <= 0)
        tell(s->problems, "ledger: seat %s has no incarnation", slot);
    else if (known < 0)
        tell(s->problems, "ledger: seat %s is of a writer that the ledger does not know", slot);
    else if (inc > known)
        tell(s->problems,
             "ledger: seat %s was taken by incarnation %" PRId64 ", and the ledger's last one is %" PRId64
             ": the seat is newer than the ledger",
             slot, inc, known);
    if (!bson_iter_init_find(&all, seat, "partitions"))
        return;
    if (!BSON_ITER_HOLDS_DOCUMENT(&all) || !bson_iter_recurse(&all, &at)) {
        tell(s->problems, "ledger: the partitions of seat %s are not a document", slot);
        return;
    }
    while (bson_iter_next(&at))
        check_entry(s, slot, &at);
}

/* Checks that the seats are there which the ledger names. */
static void check_from(const struct seating *s, const char *key, const bson_t *partition)
{
    for (size_t i = 0; i < MONGO_SLOTS; i++) {
        if (!s->after.has[i] && mongo_is_from(partition, mongo_slots[i]))
            tell(s->problems,
                 "ledger: seat %s is missing, which may have the position of partition \"%s\": restore the "
                 "database from a backup",
                 mongo_slots[i], key);
    }
}

static void compare_seats(const struct seating *s)
{
    bson_iter_t at;
    bson_t partition;
    for (size_t i = 0; i < MONGO_SLOTS; i++) {
        if (s->before.has[i])
            check_seat(s, i);
    }
    for (bool more = mongo_begin_members(&s->home, "partitions", &at);
         more && mongo_next_document(&at, &partition);)
        check_from(s, bson_iter_key(&at), &partition);
}

/* Names damaged seats, missing seats, and seats that are newer than the ledger. */
static bool check_seats(struct mongo_store *m, const struct problems *problems, struct err *e)
{
    struct seating s = {.problems = problems};
    bool good = mongo_read_seats(m->client, true, &s.before, e);
    if (good) {
        good = mongo_read_home(m, &s.home, e) && mongo_read_seats(m->client, false, &s.after, e);
        if (good && mongo_number_at(&s.home, "v", 1) >= MONGO_SEATS_FORMAT)
            compare_seats(&s);
        bson_destroy(&s.home);
    }
    mongo_seats_fini(&s.after);
    mongo_seats_fini(&s.before);
    return good;
}

/* ---- all */

static bool check_all(struct checking *g, struct err *e)
{
    bson_t after;
    if (!mongo_find_weeks(g->m, &g->m->with_weeks, e) || !mongo_each_collection(g->m, see_collection, g, e))
        return false;
    bool good = mongo_read_ledger(g->m, &after, e) && check_ledger(g, &after, e) &&
                check_seats(g->m, &g->problems, e);
    for (size_t i = 0; good && i < g->count; i++) {
        check_lost(g, i);
        good = check_ahead(g, i, &after, e) && check_fence(g, i, e);
    }
    if (good)
        check_behind(g);
    bson_destroy(&after);
    return good;
}

bool mongo_check(struct store *st, check_fn *problem, void *context, struct err *e)
{
    struct checking g = {.m = mongo_of(st), .problems = {problem, context}};
    bool good = mongo_read_ledger(g.m, &g.before, e);
    for (int slot = 0; slot < MONGO_SLOTS; slot++)
        mongo_gaps_of(&g.before, mongo_slots[slot], g.gaps[slot]);
    good = good && check_all(&g, e);
    bson_destroy(&g.before);
    text_fini(&g.key);
    text_fini(&g.id);
    free(g.collections);
    return good;
}
