/* Keeps sums at the ends of int64, where the server would refuse the update. This is so rare that it may
 * read, add and compare-and-set. */
#include "store/mongo/send/saturate.h"

#include "base/check.h"
#include "store/mongo/doc/decimal.h"
#include "store/mongo/ledger/identity.h"
#include "store/mongo/wire/command.h"
#include "store/mongo/wire/field.h"

#include <stdio.h>

#define TRIES 10

/* Decimals do not overflow. */
static void add_decimals(const bson_t *document, const bson_iter_t *inc, bson_t *set)
{
    bson_iter_t old;
    const int128 has = mongo_find_member(document, bson_iter_key(inc), &old) ? mongo_decimal(&old) : 0;
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
        int64_t old = mongo_number_at(document, bson_iter_key(&at), 0), more = bson_iter_as_int64(&at), sum;
        *overflows |= __builtin_add_overflow(old, more, &sum);
        bson_append_int64(set, bson_iter_key(&at), -1, value_add(old, more));
    }
}

/* Writes the update with sums instead of increments. Returns whether a sum overflows. */
static bool rewrite(const bson_t *document, const bson_iter_t *update, bson_t *to)
{
    bson_iter_t operator;
    bson_t set = BSON_INITIALIZER;
    bool overflows = false;
    bson_init(to);
    ASSERT(bson_iter_recurse(update, &operator));
    while (bson_iter_next(&operator)) {
        if (strcmp(bson_iter_key(&operator), "$inc") == 0) {
            add_sums(document, &operator, & set, &overflows);
        } else if (strcmp(bson_iter_key(&operator), "$set") == 0) {
            mongo_append_members(&set, &operator);
        } else if (strcmp(bson_iter_key(&operator), "$setOnInsert") != 0) {
            bson_append_iter(to, NULL, -1, &operator);
        }
    }
    mongo_add_operator(to, "$set", &set);
    return overflows;
}

/* Writes the update's filter, with the condition that nothing was applied since the document was read. */
static void guard(const bson_t *document, const bson_iter_t *filter, bson_t *to)
{
    bson_iter_t at;
    bson_init(to);
    mongo_append_members(to, filter);
    if (bson_iter_init_find(&at, document, "applied"))
        bson_append_iter(to, "applied", -1, &at);
}

bool mongo_saturate(struct mongo_client *client, const struct mongo_open *of, const char *collection,
                    const bson_t *logged, bool *done, struct err *e)
{
    bson_iter_t filter, update;
    char applied[MONGO_SLOT_BYTES + 16];
    const char *id = mongo_text_at(logged, "f._id");
    const int64_t above = of->prev < 0 ? of->seq - 1 : of->prev;
    bool good = true, overflows = true;
    snprintf(applied, sizeof applied, "applied.%s", of->slot);
    *done = false;
    ASSERT(bson_iter_init_find(&filter, logged, "f") && bson_iter_init_find(&update, logged, "u"));
    for (int tries = 0; good && overflows && !*done && tries < TRIES; tries++) {
        bson_t document, q, u;
        good = mongo_read_document(client, collection, id, &document, e);
        overflows = good && !bson_empty(&document);
        int64_t number = mongo_number_at(&document, applied, 0);
        *done = number > above; /* another recovered the batch */
        good = good && (!*done || mongo_check_applied(client, of, collection, id, number, e));
        if (good && overflows && !*done) {
            overflows = rewrite(&document, &update, &u);
            guard(&document, &filter, &q);
            good = !overflows || mongo_update_one(client, collection, &q, &u, false, done, e);
            bson_destroy(&q);
            bson_destroy(&u);
        }
        bson_destroy(&document);
    }
    return good;
}
