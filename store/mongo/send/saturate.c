/* Keeps sums at the ends of int64, where the server would refuse the update. This is so rare that it may
 * read, add and compare-and-set. */
#include "store/mongo/send/saturate.h"

#include "base/check.h"
#include "store/mongo/doc/decimal.h"
#include "store/mongo/ledger/identity.h"

#include <stdio.h>

#define TRIES 10

struct found {
    bson_t document;
    bool is_there;
};

static bool keep(void *context, const bson_t *document)
{
    struct found *f = context;
    bson_copy_to(document, &f->document);
    f->is_there = true;
    return false;
}

static bool find_value(const bson_t *document, const char *path, bson_iter_t *value)
{
    bson_iter_t it;
    return bson_iter_init(&it, document) && bson_iter_find_descendant(&it, path, value);
}

static int64_t value_at(const bson_t *document, const char *path)
{
    bson_iter_t value;
    return find_value(document, path, &value) ? bson_iter_as_int64(&value) : 0;
}

/* Decimals do not overflow. */
static void add_decimals(const bson_t *document, const bson_iter_t *inc, bson_t *set)
{
    bson_iter_t old;
    const int128 has = find_value(document, bson_iter_key(inc), &old) ? mongo_decimal(&old) : 0;
    mongo_append_decimal(set, bson_iter_key(inc), has + mongo_decimal(inc));
}

/* Writes $inc as $set; *overflows: a sum really overflows. */
static void add_sums(const bson_t *document, const bson_iter_t *inc, bson_t *set, bool *overflows)
{
    bson_iter_t at;
    if (!bson_iter_recurse(inc, &at))
        return;
    while (bson_iter_next(&at)) {
        if (BSON_ITER_HOLDS_DECIMAL128(&at)) {
            add_decimals(document, &at, set);
            continue;
        }
        int64_t old = value_at(document, bson_iter_key(&at)), more = bson_iter_as_int64(&at), sum;
        *overflows |= __builtin_add_overflow(old, more, &sum);
        bson_append_int64(set, bson_iter_key(&at), -1, value_add(old, more));
    }
}

/* Writes the update with sums instead of increments. Returns whether a sum overflows. */
static bool rewrite(const bson_t *document, const bson_iter_t *update, bson_t *to)
{
    bson_iter_t operator, at;
    bson_t set;
    bool overflows = false;
    bson_init(&set);
    bson_init(to);
    ASSERT(bson_iter_recurse(update, &operator));
    while (bson_iter_next(&operator)) {
        if (strcmp(bson_iter_key(&operator), "$inc") == 0) {
            add_sums(document, &operator, & set, &overflows);
        } else if (strcmp(bson_iter_key(&operator), "$set") == 0) {
            ASSERT(bson_iter_recurse(&operator, & at));
            while (bson_iter_next(&at))
                bson_append_iter(&set, NULL, -1, &at);
        } else if (strcmp(bson_iter_key(&operator), "$setOnInsert") != 0) {
            bson_append_iter(to, NULL, -1, &operator);
        }
    }
    BSON_APPEND_DOCUMENT(to, "$set", &set);
    bson_destroy(&set);
    return overflows;
}

/* Writes the update's filter, with the condition that nothing was applied since the document was read. */
static void guard(const bson_t *document, const bson_iter_t *filter, bson_t *to)
{
    bson_iter_t at;
    bson_init(to);
    ASSERT(bson_iter_recurse(filter, &at));
    while (bson_iter_next(&at))
        bson_append_iter(to, NULL, -1, &at);
    if (bson_iter_init_find(&at, document, "applied"))
        bson_append_iter(to, "applied", -1, &at);
}

static const char *id_text(const bson_iter_t *id)
{
    return BSON_ITER_HOLDS_UTF8(id) ? bson_iter_utf8(id, NULL) : "?";
}

bool mongo_saturate(struct mongo_client *client, const struct mongo_open *of, const char *collection,
                    const bson_t *logged, bool *done, struct err *e)
{
    bson_iter_t filter, update, id;
    char applied[MONGO_SLOT_BYTES + 16];
    const int64_t above = of->prev < 0 ? of->seq - 1 : of->prev;
    bool good = true, overflows = true;
    snprintf(applied, sizeof applied, "applied.%s", of->slot);
    *done = false;
    ASSERT(bson_iter_init_find(&filter, logged, "f") && bson_iter_init_find(&update, logged, "u"));
    ASSERT(bson_iter_recurse(&filter, &id) && bson_iter_find(&id, "_id"));
    for (int tries = 0; good && overflows && !*done && tries < TRIES; tries++) {
        struct found f = {.is_there = false};
        bson_t by_id, q, u;
        bson_init(&by_id);
        bson_append_iter(&by_id, "_id", -1, &id);
        good = mongo_find(client, collection, &by_id, NULL, keep, &f, e);
        overflows = good && f.is_there;
        int64_t number = overflows ? value_at(&f.document, applied) : 0;
        *done = number > above; /* another recovered the batch */
        good = good && (!*done || mongo_check_applied(client, of, collection, id_text(&id), number, e));
        if (good && overflows && !*done) {
            overflows = rewrite(&f.document, &update, &u);
            guard(&f.document, &filter, &q);
            good = !overflows || mongo_update_one(client, collection, &q, &u, false, done, e);
            bson_destroy(&q);
            bson_destroy(&u);
        }
        if (f.is_there)
            bson_destroy(&f.document);
        bson_destroy(&by_id);
    }
    return good;
}
