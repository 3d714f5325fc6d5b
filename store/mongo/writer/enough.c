#include "store/mongo/writer/enough.h"

#include "base/check.h"
#include "base/clock.h"
#include "store/mongo/doc/decimal.h"
#include "store/mongo/wire/command.h"
#include "store/mongo/wire/field.h"

#include <stdio.h>

#define PAGE 100 /* documents that are read at a time; each has at most some 100 KiB */

/* Updates of one collection whose documents are to be read. */
struct enough {
    struct mongo_store *m;
    bson_t *updates[PAGE];
    bool is_found[PAGE];
    size_t count;
    char collection[MONGO_NAME_BYTES];
    int64_t may_be_gone_ms; /* documents of an earlier time may have expired */
    struct err *e;
    bool good;
};

static bool lacks(struct enough *n, const bson_t *update, const char *path)
{
    n->good = false;
    return err_set(
        n->e, EX_DATAERR,
        "%s: the document \"%.300s\" of %s%s%s has less than is to be taken out: the lines were "
        "counted in another way, or another program has changed the document. `tallyd verify` says "
        "more",
        mongo_client_name(n->m->client), mongo_text_at(update, "f._id"), n->collection,
        path != NULL ? ", at " : "", path != NULL ? path : ", which is missing,");
}

/* Is it a number of events? Those of a report's first count, and of histograms, have no name of their own
 * in front. */
static bool is_plain(const char *path)
{
    const size_t len = strcspn(path, ".");
    const char *last = strrchr(path, '.');
    if (last != NULL && (strcmp(last, ".units") == 0 || strcmp(last, ".micros") == 0))
        return false;
    for (enum span s = 0; s < SPAN_COUNT; s++) {
        if (strlen(mongo_member(s)) == len && strncmp(mongo_member(s), path, len) == 0)
            return true;
    }
    return false;
}

/* The number of a member, in whole units if it is a decimal; 0: it is missing. */
static int64_t operand_at(const bson_t *document, const char *path)
{
    bson_iter_t value;
    return mongo_find_member(document, path, &value) ? mongo_decimal_units(mongo_decimal(&value)) : 0;
}

/* A sum at the end of int64 may stand for any larger one. */
static bool check_document(struct enough *n, const bson_t *update, const bson_t *document)
{
    bson_iter_t at;
    ASSERT(mongo_begin_members(update, "u.$inc", &at));
    while (bson_iter_next(&at)) {
        const char *path = bson_iter_key(&at);
        const int64_t has = operand_at(document, path), less = bson_iter_as_int64(&at);
        if (has == INT64_MAX || has == INT64_MIN || (is_plain(path) && has < -less))
            return lacks(n, update, path);
    }
    return true;
}

static bool see_document(void *context, const bson_t *document)
{
    struct enough *n = context;
    const char *id = mongo_text_at(document, "_id");
    for (size_t i = 0; i < n->count; i++) {
        if (strcmp(mongo_text_at(n->updates[i], "f._id"), id) != 0)
            continue;
        n->is_found[i] = true;
        return check_document(n, n->updates[i], document);
    }
    return true;
}

/* The start of the period of an update's document; INT64_MIN: it has none. */
static int64_t date_of(const bson_t *update)
{
    bson_iter_t filter, at;
    bool found = mongo_find_member(update, "f", &filter) && mongo_find_in(&filter, "metadata.date", &at) &&
                 BSON_ITER_HOLDS_DATE_TIME(&at);
    return found ? bson_iter_date_time(&at) : INT64_MIN;
}

/* Reads the documents of the updates, and forgets the updates. */
static bool read_page(struct enough *n)
{
    struct mongo_ids ids;
    if (n->count == 0)
        return true;
    mongo_ids_begin(&ids, bson_new());
    for (size_t i = 0; i < n->count; i++)
        mongo_ids_add(&ids, slice_text(mongo_text_at(n->updates[i], "f._id")));
    bool good =
        mongo_look(n->m->client, n->collection, mongo_ids_end(&ids), NULL, see_document, n, n->e) && n->good;
    for (size_t i = 0; i < n->count; i++) {
        const bson_t *update = n->updates[i];
        if (good && !n->is_found[i] && date_of(update) >= n->may_be_gone_ms)
            good = lacks(n, update, NULL);
        bson_destroy(n->updates[i]);
    }
    n->count = 0;
    return good;
}

/* Does the update take counts out of a document? Rankings and version stamps only grow. */
static bool takes(const bson_t *update)
{
    bson_iter_t at;
    return date_of(update) != INT64_MIN && mongo_begin_members(update, "u.$inc", &at) &&
           bson_iter_next(&at) && strcmp(bson_iter_key(&at), "written") != 0;
}

static bool add_update(void *context, const bson_t *update, struct err *e)
{
    struct enough *n = context;
    const char *collection = mongo_text_at(update, "c");
    (void)e;
    if (!takes(update))
        return true;
    if ((n->count == PAGE || strcmp(collection, n->collection) != 0) && !read_page(n))
        return false;
    snprintf(n->collection, sizeof n->collection, "%s", collection);
    n->is_found[n->count] = false;
    n->updates[n->count++] = bson_copy(update);
    return true;
}

/* The end of the time that has expired in any report, or that the server may have deleted by now. */
static int64_t find_may_be_gone(const struct mongo_store *m)
{
    int64_t now_ms = clock_wall_ms(m->store.clock), until_ms = 0;
    for (size_t r = 0; r < m->store.report_count; r++) {
        for (int s = 0; s < SPAN_COUNT; s++) {
            int64_t age_ms = m->more[r].ttl.age_ms[s], before_ms = m->more[r].watermarks.before_ms[s];
            until_ms = before_ms > until_ms ? before_ms : until_ms;
            if (age_ms > 0 && now_ms - age_ms > until_ms)
                until_ms = now_ms - age_ms;
        }
    }
    return until_ms;
}

bool mongo_check_enough(struct mongo_store *m, struct err *e)
{
    struct enough n = {.m = m, .may_be_gone_ms = find_may_be_gone(m), .e = e, .good = true};
    if (mongo_log_each(text_slice(&m->batch.log.packed), add_update, &n, e) &&
        mongo_log_each(text_slice(&m->batch.longer.packed), add_update, &n, e))
        return read_page(&n);
    for (size_t i = 0; i < n.count; i++)
        bson_destroy(n.updates[i]);
    return false;
}
