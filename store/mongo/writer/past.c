#include "store/mongo/writer/past.h"

#include "base/failpoint.h"
#include "base/mem.h"
#include "store/mongo/ledger/identity.h"
#include "store/mongo/wire/command.h"
#include "store/mongo/wire/field.h"
#include "store/mongo/writer/position.h"

#include <stdlib.h>

/* A file may be in `past`, a partition of a topic never is. */
static bool may_be_past(const struct mongo_partition *p)
{
    return p->partition[0] == '\0';
}

struct slice mongo_past_id(struct mongo_store *m, const char *source)
{
    text_clear(&m->id);
    text_printf(&m->id, "%s/", source);
    return text_slice(&m->id);
}

struct returning {
    struct mongo_store *m;
    const struct mongo_partition *partitions; /* in the order of numbers of `ids` that are theirs */
    struct mongo_names ids;
    size_t *at; /* by number, from 1: index in partitions */
    const bson_t *ledger;
    bson_t query, set;
    size_t count;
};

/* Or was its position taken out there? Then none in `past` holds. */
static bool has_position(struct mongo_store *m, const bson_t *ledger, const struct mongo_partition *p)
{
    return mongo_number_at(ledger, mongo_partition_member(m, p, "next"), -1) >= 0 ||
           mongo_number_at(ledger, mongo_partition_member(m, p, "held"), 0) > 0;
}

/* Only this claim can bring it back, and only once. */
static void add_claim(struct returning *g, const struct mongo_partition *p)
{
    struct mongo_store *m = g->m;
    BSON_APPEND_UTF8(&g->query, mongo_partition_member(m, p, "owner"), m->writer.slot);
    BSON_APPEND_INT64(&g->query, mongo_partition_member(m, p, "claim"), p->claim);
    mongo_match_nothing(&g->query, mongo_partition_member(m, p, "next"));
    mongo_match_nothing(&g->query, mongo_partition_member(m, p, "held"));
}

static bool add_past(void *context, const bson_t *past)
{
    struct returning *g = context;
    bson_iter_t it;
    const char *id = mongo_text_at(past, "_id");
    uint32_t number = mongo_names_find(&g->ids, slice_text(id));
    if (number == 0 || mongo_number_at(past, "next", -1) < 0)
        return true;
    const struct mongo_partition *p = &g->partitions[g->at[number - 1]];
    int64_t epoch = mongo_number_at(g->ledger, mongo_partition_member(g->m, p, "epoch"), 0) +
                    mongo_number_at(past, "epoch", 0);
    add_claim(g, p);
    BSON_APPEND_INT64(&g->set, mongo_partition_member(g->m, p, "epoch"), epoch);
    BSON_APPEND_INT64(&g->set, mongo_partition_member(g->m, p, "held"), mongo_number_at(past, "epoch", 0));
    for (bool more = bson_iter_init(&it, past); more && bson_iter_next(&it);) {
        const char *name = bson_iter_key(&it);
        if (strcmp(name, "_id") != 0 && strcmp(name, "epoch") != 0 && strcmp(name, "source") != 0 &&
            strcmp(name, "partition") != 0 && strcmp(name, "held") != 0 && strcmp(name, "from") != 0)
            bson_append_iter(&g->set, mongo_partition_member(g->m, p, name), -1, &it);
    }
    g->count++;
    return true;
}

static bool read_past(struct mongo_store *m, const struct mongo_names *ids, mongo_document_fn *fn,
                      void *context, struct err *e)
{
    struct mongo_ids list;
    if (ids->count == 0)
        return true;
    mongo_ids_begin(&list, bson_new());
    for (uint32_t i = 1; i <= ids->count; i++)
        mongo_ids_add(&list, mongo_names_at(ids, i)->key);
    return mongo_look(m->client, MONGO_PAST, mongo_ids_end(&list), NULL, fn, context, e);
}

static bool write_returns(struct returning *g, bson_t *ledger, bool *held, struct err *e)
{
    bson_t update = BSON_INITIALIZER, after;
    struct mongo_store *m = g->m;
    mongo_add_own(m, &g->query);
    BSON_APPEND_DOCUMENT(&update, "$set", &g->set);
    bool good = mongo_modify(m->client, MONGO_LEDGER, bson_copy(&g->query), &update, held, &after, e);
    if (good && *held) {
        bson_destroy(ledger);
        bson_copy_to(&after, ledger);
    }
    bson_destroy(&after);
    return good;
}

bool mongo_return(struct mongo_store *m, const struct mongo_partition *partitions, size_t count,
                  bson_t *ledger, bool *held, struct err *e)
{
    struct returning g = {.m = m,
                          .partitions = partitions,
                          .at = xcalloc(count + 1, sizeof *g.at),
                          .ledger = ledger,
                          .query = BSON_INITIALIZER,
                          .set = BSON_INITIALIZER};
    mongo_names_init(&g.ids);
    for (size_t i = 0; i < count; i++) {
        if (may_be_past(&partitions[i]) && !has_position(m, ledger, &partitions[i]))
            g.at[mongo_names_add(&g.ids, mongo_past_id(m, partitions[i].source)) - 1] = i;
    }
    failpoint(FAILPOINT_PAST_CLAIMED);
    *held = true;
    bool good = read_past(m, &g.ids, add_past, &g, e) && (g.count == 0 || write_returns(&g, ledger, held, e));
    bson_destroy(&g.set);
    bson_destroy(&g.query);
    mongo_names_fini(&g.ids);
    free(g.at);
    return good;
}

bool mongo_epoch_of(struct mongo_store *m, const bson_t *ledger, const struct mongo_partition *p,
                    int64_t *epoch, struct err *e)
{
    bson_t past;
    *epoch = mongo_number_at(ledger, mongo_partition_member(m, p, "epoch"), -1);
    if (!may_be_past(p) || has_position(m, ledger, p))
        return true;
    (void)mongo_past_id(m, p->source);
    bool good = mongo_read_document(m->client, MONGO_PAST, m->id.ptr, &past, e);
    if (good && mongo_number_at(&past, "next", -1) >= 0)
        *epoch = mongo_number_at(&past, "epoch", 0) + (*epoch > 0 ? *epoch : 0);
    bson_destroy(&past);
    return good;
}

bool mongo_void_past(struct mongo_store *m, const struct mongo_partition *p, struct err *e)
{
    if (!may_be_past(p))
        return true;
    (void)mongo_past_id(m, p->source);
    bson_t *filter = BCON_NEW("_id", BCON_UTF8(m->id.ptr), "epoch", "{", "$lte", BCON_INT64(p->epoch), "}");
    bson_t *update = BCON_NEW("$set", "{", "source", BCON_UTF8(p->source), "partition", "", "epoch",
                              BCON_INT64(p->epoch), "next", BCON_INT64(-1), "}");
    bool good = mongo_change(m->client, MONGO_PAST, filter, update, true, NULL, e);
    failpoint(FAILPOINT_PAST_VOID);
    return good;
}
