#include "store/mongo/writer/retire.h"

#include "base/clock.h"
#include "base/failpoint.h"
#include "base/mem.h"
#include "store/mongo/ledger/copies.h"
#include "store/mongo/ledger/identity.h"
#include "store/mongo/ledger/ledger.h"
#include "store/mongo/ledger/slots.h"
#include "store/mongo/wire/command.h"
#include "store/mongo/wire/field.h"
#include "store/mongo/writer/partition.h"
#include "store/mongo/writer/past.h"
#include "store/mongo/writer/position.h"

#include <stdio.h>
#include <stdlib.h>

#define RETIRE_MS 20000

struct candidate {
    const char *source; /* borrowed from the ledger */
    bool stays;
};

struct retiring {
    struct mongo_store *m;
    struct mongo_names ids; /* of the candidates, from 1 */
    struct candidate *list;
    size_t count, capacity, staying;
    struct range *ranges; /* the candidates that go */
    size_t range_count;
    int64_t noted; /* number of backups that ever began */
};

static bool was_just_counted(struct mongo_store *m, const char *source)
{
    struct range r = {0};
    snprintf(r.source, sizeof r.source, "%s", source);
    const struct mongo_partition *p = mongo_known_partition(m, &r);
    return p != NULL && p->counted_in > 0 && p->counted_in == m->writer.committed;
}

static void see_partition(struct retiring *g, const bson_t *ledger, const bson_t *partition)
{
    struct mongo_store *m = g->m;
    const char *source = mongo_text_at(partition, "source"), *owner = mongo_text_at(partition, "owner");
    bool is_own = strcmp(owner, m->writer.slot) == 0;
    if (source[0] == '\0' || mongo_text_at(partition, "partition")[0] != '\0' ||
        mongo_number_at(partition, "next", -1) < 0 || (is_own && was_just_counted(m, source)) ||
        (!is_own && mongo_slot_lives(ledger, owner, clock_wall_ms(m->store.clock))))
        return;
    g->list = xgrow(g->list, &g->capacity, g->count + 1, sizeof *g->list);
    g->list[g->count++] = (struct candidate){source, false};
    (void)mongo_names_add(&g->ids, mongo_past_id(m, source));
}

static void find_candidates(struct retiring *g, const bson_t *ledger)
{
    bson_iter_t at;
    bson_t partition;
    bool more = mongo_begin_members(ledger, "partitions", &at);
    while (more && mongo_next_document(&at, &partition))
        see_partition(g, ledger, &partition);
}

static bool see_state(void *context, const bson_t *book)
{
    struct retiring *g = context;
    uint32_t number = mongo_names_find(&g->ids, slice_text(mongo_text_at(book, "_id")));
    bool follows = number > 0 && mongo_number_at(book, "entries.state", 0) % RANGE_STATES == RANGE_FOLLOWED;
    if (follows) {
        g->list[number - 1].stays = true;
        g->staying++;
    }
    return true;
}

/* Files that are followed stay. */
static bool read_states(struct retiring *g, struct err *e)
{
    struct mongo_ids list;
    bson_t *options = BCON_NEW("projection", "{", "entries.state", BCON_BOOL(true), "}");
    mongo_ids_begin(&list, bson_new());
    for (uint32_t i = 1; i <= g->ids.count; i++)
        mongo_ids_add(&list, mongo_names_at(&g->ids, i)->key);
    return mongo_look(g->m->client, MONGO_BOOKS, mongo_ids_end(&list), options, see_state, g, e);
}

static void choose(struct retiring *g)
{
    size_t going = g->count - g->staying;
    g->m->writer.staying = g->staying;
    if (going < MONGO_RETIRED_MIN)
        return;
    g->ranges = xcalloc(MONGO_RETIRED_MAX, sizeof *g->ranges);
    for (size_t i = 0; i < g->count && g->range_count < MONGO_RETIRED_MAX; i++) {
        if (!g->list[i].stays)
            snprintf(g->ranges[g->range_count++].source, RANGE_SOURCE_BYTES, "%s", g->list[i].source);
    }
}

/* Chooses files, unless a backup is under way: it copies `past` before the ledger. No picture is needed: the
 * claim finds the position itself, and `noted` and the backups are of the ledger alone. */
static bool find_ended(struct retiring *g, struct err *e)
{
    bson_t ledger;
    bool good = mongo_read_all(g->m, &ledger, e);
    g->noted = mongo_number_at(&ledger, "noted", 0);
    if (good && !mongo_has_hold(&ledger, clock_wall_ms(g->m->store.clock)))
        find_candidates(g, &ledger);
    if (good && g->count >= g->m->writer.staying + MONGO_RETIRED_MIN) {
        good = read_states(g, e);
        choose(g);
    }
    bson_destroy(&ledger);
    return good;
}

/* Adds the update that writes one document of `past`. */
static void add_document(struct retiring *g, const bson_t *partition, const char *source, int64_t epoch,
                         const char *key, bson_t *updates)
{
    bson_t set = BSON_INITIALIZER;
    (void)mongo_past_id(g->m, source);
    bson_copy_to_excluding_noinit(partition, &set, "owner", "claim", "from", "held", NULL);
    BCON_APPEND(updates, key, "{", "q", "{", "_id", BCON_UTF8(g->m->id.ptr), "epoch", "{", "$lt",
                BCON_INT64(epoch), "}", "}", "u", "{", "$set", BCON_DOCUMENT(&set), "}", "upsert",
                BCON_BOOL(true), "}");
    bson_destroy(&set);
}

/* The positions as the claim left them, as updates of `past` and as the removal from the ledger, if they are
 * as they were copied. */
static void write_moves(struct retiring *g, const bson_t *ledger, bson_t *updates, bson_t *query,
                        bson_t *unset)
{
    for (size_t i = 0; i < g->range_count; i++) {
        const struct mongo_partition *p = mongo_own_partition(g->m, &g->ranges[i]);
        bson_t partition;
        char room[MONGO_KEY_BYTES];
        if (!mongo_find_entry(g->m, ledger, p->key, &partition))
            continue; /* another writer has it by now: the removal finds out */
        add_document(g, &partition, p->source, p->epoch, mongo_array_key(i, room), updates);
        mongo_add_claim(g->m, p, query);
        BSON_APPEND_INT64(query, mongo_partition_member(g->m, p, "next"),
                          mongo_number_at(&partition, "next", -1));
        BSON_APPEND_UTF8(unset, mongo_entry_path(g->m, p->key), "");
    }
}

/* *are_all: each document was written. If not, `past` has a later one: the position stays where it is. */
static bool insert(struct retiring *g, const bson_t *updates, bool *are_all, struct err *e)
{
    int64_t count;
    bool good = mongo_upsert_all(g->m->client, MONGO_PAST, updates, &count, e);
    *are_all = good && count == (int64_t)g->range_count;
    failpoint(FAILPOINT_PAST_WRITTEN);
    return good;
}

static bool take_out(struct retiring *g, bson_t *query, const bson_t *unset, bool *moved, struct err *e)
{
    struct mongo_store *m = g->m;
    mongo_add_own(m, query);
    mongo_add_restored(query);
    mongo_match_number(query, "noted", g->noted, g->noted > 0);
    bson_t *update = BCON_NEW("$unset", BCON_DOCUMENT(unset));
    bool good = mongo_change(m->client, MONGO_LEDGER, bson_copy(query), update, false, moved, e);
    failpoint(FAILPOINT_PAST_MOVED);
    return good;
}

/* Removes the entries of files that have moved from the seat. A later claim of this writer raises the fence,
 * and a batch under it `held`: then the entry stays. */
static bool clear_seat(struct mongo_store *m, const struct range *ranges, size_t count, struct err *e)
{
    bson_t unset = BSON_INITIALIZER, update = BSON_INITIALIZER;
    bson_t *query = BCON_NEW("_id", BCON_UTF8(m->writer.slot), "inc", BCON_INT64(m->writer.inc));
    for (size_t i = 0; i < count; i++) {
        static const char *const names[] = {"fence", "held"};
        const struct mongo_partition *p = mongo_known_partition(m, &ranges[i]);
        for (size_t k = 0; k < COUNT_OF(names); k++)
            BCON_APPEND(query, mongo_partition_member(m, p, names[k]), "{", "$not", "{", "$gt",
                        BCON_INT64(p->epoch), "}", "}");
        BSON_APPEND_UTF8(&unset, mongo_entry_path(m, p->key), "");
    }
    mongo_add_operator(&update, "$unset", &unset);
    return mongo_change(m->client, MONGO_LEDGER, query, &update, false, NULL, e);
}

/* Their positions are not in the seat any more: a batch claims them again. */
static bool let_go(struct retiring *g, bool moved, struct err *e)
{
    struct mongo_store *m = g->m;
    for (size_t i = 0; i < g->range_count; i++)
        mongo_own_partition(m, &g->ranges[i])->is_claimed = false;
    if (!moved)
        return true;
    bool good = clear_seat(m, g->ranges, g->range_count, e);
    mongo_drop_partitions(m, g->ranges, g->range_count);
    return good;
}

/* Nobody else changes a position that is claimed: so it is read after the claim. */
static bool move(struct retiring *g, bool *moved, struct err *e)
{
    bson_t ledger, updates = BSON_INITIALIZER;
    bson_t query = BSON_INITIALIZER, unset = BSON_INITIALIZER;
    bool are_all;
    struct err ignored; /* of let_go() after another error */
    if (!mongo_claim_home(g->m, g->ranges, g->range_count, e))
        return false;
    bool good = mongo_read_home(g->m, &ledger, e);
    if (good) {
        write_moves(g, &ledger, &updates, &query, &unset);
        if (!bson_empty(&unset)) /* it took these for ended: if one goes on, it finds out */
            BSON_APPEND_UTF8(&unset, "backups", "");
        good = insert(g, &updates, &are_all, e) && (!are_all || take_out(g, &query, &unset, moved, e));
    }
    good = let_go(g, good && *moved, good ? e : &ignored) && good;
    bson_destroy(&unset);
    bson_destroy(&query);
    bson_destroy(&updates);
    bson_destroy(&ledger);
    return good;
}

static bool retire_some(struct mongo_store *m, bool *moved, struct err *e)
{
    struct retiring g = {.m = m};
    *moved = false;
    mongo_names_init(&g.ids);
    bool good = find_ended(&g, e) && (g.range_count == 0 || move(&g, moved, e));
    mongo_names_fini(&g.ids);
    free(g.ranges);
    free(g.list);
    return good;
}

bool mongo_retire(struct mongo_store *m, bool all, struct err *e)
{
    int64_t now_ms = clock_mono_ms(m->store.clock);
    bool good, moved;
    if (!all && m->writer.retired_ms > 0 && now_ms - m->writer.retired_ms < RETIRE_MS)
        return true;
    m->writer.retired_ms = now_ms;
    do
        good = retire_some(m, &moved, e);
    while (good && moved && all);
    return good;
}
