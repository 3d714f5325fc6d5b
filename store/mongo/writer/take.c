#include "store/mongo/writer/take.h"

#include "base/check.h"
#include "base/failpoint.h"
#include "store/mongo/ledger/peers.h"
#include "store/mongo/raw/place.h"
#include "store/mongo/wire/command.h"
#include "store/mongo/wire/field.h"
#include "store/mongo/writer/apply.h"
#include "store/mongo/writer/behind.h"
#include "store/mongo/writer/enough.h"
#include "store/mongo/writer/partition.h"
#include "store/mongo/writer/prealloc.h"
#include "store/mongo/writer/update.h"

#include <inttypes.h>
#include <stdio.h>

/* ---- raw events */

struct raw_look {
    struct mongo_store *m;
    bson_t *filter;           /* `_id`s of the source */
    const char *database;     /* in which it looks */
    struct mongo_place found; /* a collection with raw events of it; its name is "": none */
    bool good;
    struct err *e;
};

static bool see_raw(void *context, const bson_t *document)
{
    (void)document;
    *(bool *)context = true;
    return false;
}

static bool look_at_collection(void *context, const bson_t *listed)
{
    struct raw_look *l = context;
    const char *name = mongo_text_at(listed, "name");
    bool is = false;
    if (strncmp(name, "raw.", strlen("raw.")) != 0)
        return true;
    bson_t *command =
        BCON_NEW("find", BCON_UTF8(name), "filter", BCON_DOCUMENT(l->filter), "projection", "{", "_id",
                 BCON_BOOL(true), "}", "limit", BCON_INT64(1), "singleBatch", BCON_BOOL(true));
    l->good = mongo_list(l->m->client, l->database, command, MONGO_BATCH, see_raw, &is, l->e);
    if (is) {
        snprintf(l->found.database, sizeof l->found.database, "%s", l->database);
        snprintf(l->found.collection, sizeof l->found.collection, "%s", name);
    }
    return l->good && !is;
}

/* False: the walk ends. */
static bool look_at_database(void *context, const char *database, struct err *e)
{
    struct raw_look *l = context;
    bson_t *command = BCON_NEW("listCollections", BCON_INT32(1), "nameOnly", BCON_BOOL(true), "cursor", "{",
                               "batchSize", BCON_INT32(MONGO_LIST_MAX), "}");
    l->database = database;
    l->good = mongo_list(l->m->client, database, command, MONGO_BATCH, look_at_collection, l, e) && l->good;
    return l->good && l->found.collection[0] == '\0';
}

/* Their `_id`s begin with source and partition. They are in the store's database or in those of months. */
static bool check_raw(struct mongo_store *m, const struct range *of, struct err *e)
{
    char from[RANGE_SOURCE_BYTES + 2], to[RANGE_SOURCE_BYTES + 2];
    snprintf(from, sizeof from, "%s/", of->source);
    snprintf(to, sizeof to, "%s0", of->source); /* 0 follows / */
    struct raw_look l = {.m = m, .good = true, .e = e};
    l.filter = BCON_NEW("_id", "{", "$gte", BCON_UTF8(from), "$lt", BCON_UTF8(to), "}");
    bool good = (look_at_database(&l, mongo_client_database(m->client), e) &&
                 mongo_raw_each_database(m, look_at_database, &l, e)) ||
                (l.good && l.found.collection[0] != '\0');
    bson_destroy(l.filter);
    return good && (l.found.collection[0] == '\0' ||
                    err_set(e, EX_UNAVAILABLE,
                            "its raw events are stored in %s of database %s, and only counts can be taken "
                            "out: delete these documents first, by their _id: from \"%s\" up to \"%s\"",
                            l.found.collection, l.found.database, from, to));
}

/* ---- generations that count no more */

static bool has_key(const struct mongo_store *m, const char *key)
{
    for (size_t r = 0; r < m->store.report_count; r++) {
        if (strcmp(m->more[r].key, key) == 0)
            return true;
    }
    return false;
}

/* Refuse because of counts in a generation that is not open. */
static bool refuse_generation(struct mongo_store *m, const char *key, struct err *e)
{
    bson_t document;
    bool good = mongo_read_document(m->client, MONGO_REPORTS, key, &document, e);
    if (good) {
        const char *name = bson_empty(&document) ? key : mongo_text_at(&document, "name");
        err_set(e, EX_CONFIG,
                "it was counted in %s~%" PRId64
                ", a generation that counts no more: `tallyd forget %s~%" PRId64
                "` drops that generation first",
                name, mongo_number_at(&document, "generation", 1), name,
                mongo_number_at(&document, "generation", 1));
    }
    bson_destroy(&document);
    return false;
}

static bool check_generations(struct mongo_store *m, const struct range *of, struct err *e)
{
    char id[RANGE_SOURCE_BYTES + RANGE_PARTITION_BYTES];
    bson_t book;
    bson_iter_t at, entry;
    snprintf(id, sizeof id, "%s/%s", of->source, of->partition);
    bool good = mongo_read_document(m->client, MONGO_BOOKS, id, &book, e);
    bool more = good && mongo_begin_members(&book, "reports", &at);
    while (good && more && bson_iter_next(&at)) {
        const char *key = bson_iter_key(&at);
        if (!has_key(m, key) && mongo_find_in(&at, "counted", &entry) && bson_iter_as_int64(&entry) > 0)
            good = refuse_generation(m, key, e);
    }
    bson_destroy(&book);
    return good;
}

static bool claim(struct mongo_store *m, const struct range *of, struct err *e)
{
    struct range range = *of;
    return mongo_claim_home(m, &range, 1, e) &&
           (range.to == of->to ||
            err_set(e, EX_TEMPFAIL,
                    "another program has just counted more of it: run the same command again"));
}

bool mongo_take_begin(struct store *st, const struct range *of, struct err *e)
{
    struct mongo_store *m = mongo_of(st);
    if (!mongo_check_alone(m, e) || !mongo_settle(st, e) || !check_raw(m, of, e) ||
        !check_generations(m, of, e) || !claim(m, of, e))
        return false;
    for (size_t r = 0; r < st->report_count; r++) {
        if (!mongo_note_zeros(m, r, e))
            return false;
    }
    return true;
}

/* Writes the opposites as a log that is not sent. */
bool mongo_take_check(struct store *st, const struct batch *batch, const bool *reports, struct err *e)
{
    struct mongo_store *m = mongo_of(st);
    ASSERT(m->batch.step == STEP_NONE && batch->range_count == 0);
    m->batch.taken = reports;
    bool good = mongo_resolve(m, batch, e);
    if (good) {
        mongo_write_opposites(m, batch);
        good = mongo_check_enough(m, e);
    }
    m->batch.taken = NULL;
    return good;
}

bool mongo_take_stripe(struct store *st, const struct batch *batch, const bool *reports, struct err *e)
{
    struct mongo_store *m = mongo_of(st);
    m->batch.taken = reports;
    bool good = mongo_apply(st, batch, e) && mongo_housekeep(st, false, e);
    m->batch.taken = NULL;
    if (good)
        failpoint(FAILPOINT_FORGET_TAKEN);
    return good;
}
