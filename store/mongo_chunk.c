#include "store/mongo_chunk.h"

#include "base/check.h"
#include "base/failpoint.h"

#include <stdio.h>

#define CHUNK_TRIES 5

/* A bson_t points into itself: it cannot be returned. */
static void update_at(const struct mongo_chunk *c, size_t i, bson_t *update)
{
    uint32_t len;
    memcpy(&len, c->raw.ptr + c->at[i], sizeof len);
    ASSERT(bson_init_static(update, (const uint8_t *)c->raw.ptr + c->at[i], BSON_UINT32_FROM_LE(len)));
}

static void append_member(bson_t *to, const char *name, const bson_t *update, const char *member)
{
    bson_iter_t it;
    ASSERT(bson_iter_init_find(&it, update, member));
    bson_append_iter(to, name, -1, &it);
}

/* An update command for those of `which`, `n` of them. */
static void write_command(const struct mongo_chunk *c, const size_t *which, size_t n, bool upsert,
                          bson_t *command)
{
    bson_t updates, one;
    bson_init(command);
    BSON_APPEND_UTF8(command, "update", c->collection);
    BSON_APPEND_BOOL(command, "ordered", false);
    BSON_APPEND_ARRAY_BEGIN(command, "updates", &updates);
    for (size_t i = 0; i < n; i++) {
        char room[16];
        const char *key;
        bson_t update;
        update_at(c, which[i], &update);
        size_t len = bson_uint32_to_string((uint32_t)i, &key, room, sizeof room);
        bson_append_document_begin(&updates, key, (int)len, &one);
        append_member(&one, "q", &update, "f");
        append_member(&one, "u", &update, "u");
        BSON_APPEND_BOOL(&one, "upsert", upsert);
        bson_append_document_end(&updates, &one);
    }
    bson_append_array_end(command, &updates);
}

static const char *id_of(const bson_t *update)
{
    bson_iter_t it, id;
    return bson_iter_init(&it, update) && bson_iter_find_descendant(&it, "f._id", &id) &&
                   BSON_ITER_HOLDS_UTF8(&id)
               ? bson_iter_utf8(&id, NULL)
               : "?";
}

/* Perhaps a sum that is at its end; all else is said, by document. */
static bool settle_refused(const struct mongo_chunk *c, size_t index, const bson_iter_t *failure,
                           struct err *e)
{
    char what[MONGO_NAME_BYTES + 256];
    bson_t update;
    bool done;
    update_at(c, index, &update);
    if (!mongo_saturate(c->client, c->of, c->collection, &update, &done, e))
        return false;
    snprintf(what, sizeof what, "an update of %s \"%.200s\"", c->collection, id_of(&update));
    return done || mongo_check_write(c->client, failure, what, e);
}

/* Those of `which` that met a document that was not there when they looked: *n of them afterwards. */
static bool take_failures(const struct mongo_chunk *c, size_t *which, size_t *n, const bson_t *reply,
                          struct err *e)
{
    bson_iter_t errors, at, member;
    size_t duplicates[MONGO_CHUNK_UPDATES], count = 0;
    if (!bson_iter_init_find(&errors, reply, "writeErrors") || !bson_iter_recurse(&errors, &at)) {
        *n = 0;
        return true;
    }
    while (bson_iter_next(&at)) {
        int64_t index = bson_iter_recurse(&at, &member) && bson_iter_find(&member, "index")
                            ? bson_iter_as_int64(&member)
                            : -1;
        if (index < 0 || index >= (int64_t)*n || count == *n)
            return err_set(e, EX_IOERR, "%s answers an update with an error of none of its documents",
                           mongo_client_name(c->client));
        if (bson_iter_recurse(&at, &member) && bson_iter_find(&member, "code") &&
            bson_iter_as_int64(&member) == MONGO_DUPLICATE_KEY)
            duplicates[count++] = which[index];
        else if (!settle_refused(c, which[index], &at, e))
            return false;
    }
    memcpy(which, duplicates, count * sizeof *which);
    *n = count;
    return true;
}

static bool send(const struct mongo_chunk *c, size_t *which, size_t *n, bool upsert, int64_t *matched,
                 struct err *e)
{
    bson_t command, reply;
    bson_iter_t it;
    write_command(c, which, *n, upsert, &command);
    bool good = mongo_write(c->client, &command, &reply, e);
    *matched = good && bson_iter_init_find(&it, &reply, "n") ? bson_iter_as_int64(&it) : 0;
    good = good && take_failures(c, which, n, &reply, e);
    bson_destroy(&reply);
    bson_destroy(&command);
    return good;
}

static bool count_document(void *context, const bson_t *document)
{
    (void)document;
    ++*(size_t *)context;
    return true;
}

/* How many of these have been applied? */
static bool count_applied(const struct mongo_chunk *c, const size_t *which, size_t n, size_t *applied,
                          struct err *e)
{
    char path[MONGO_SLOT_BYTES + 16], name[16];
    bson_t filter, of, ids, options, projection;
    bson_init(&filter);
    BSON_APPEND_DOCUMENT_BEGIN(&filter, "_id", &of);
    BSON_APPEND_ARRAY_BEGIN(&of, "$in", &ids);
    for (size_t i = 0; i < n; i++) {
        bson_t update;
        update_at(c, which[i], &update);
        snprintf(name, sizeof name, "%u", (unsigned)i);
        BSON_APPEND_UTF8(&ids, name, id_of(&update));
    }
    bson_append_array_end(&of, &ids);
    bson_append_document_end(&filter, &of);
    snprintf(path, sizeof path, "applied.%s", c->of->slot);
    BSON_APPEND_DOCUMENT_BEGIN(&filter, path, &of);
    BSON_APPEND_INT64(&of, "$gte", c->of->seq);
    bson_append_document_end(&filter, &of);
    bson_init(&options);
    BSON_APPEND_DOCUMENT_BEGIN(&options, "projection", &projection);
    BSON_APPEND_BOOL(&projection, "_id", true);
    bson_append_document_end(&options, &projection);
    *applied = 0;
    bool good = mongo_find(c->client, c->collection, &filter, &options, count_document, applied, e);
    bson_destroy(&options);
    bson_destroy(&filter);
    return good;
}

/* A duplicate key has two causes: it had been applied, or another writer made the document in the same
 * moment. */
static bool settle_duplicates(const struct mongo_chunk *c, size_t *which, size_t *n, struct err *e)
{
    size_t applied, failed = *n;
    int64_t matched;
    if (!send(c, which, &failed, false, &matched, e))
        return false;
    if ((size_t)matched == *n) {
        *n = 0;
        return true;
    }
    if (!count_applied(c, which, *n, &applied, e))
        return false;
    if (applied == *n)
        *n = 0;
    return true;
}

static bool refuse_id(const struct mongo_chunk *c, size_t index, struct err *e)
{
    bson_t update;
    update_at(c, index, &update);
    return err_set(e, EX_DATAERR, "%s: %s has a document \"%.300s\" with other metadata than its `_id` says",
                   mongo_client_name(c->client), c->collection, id_of(&update));
}

bool mongo_chunk_apply(struct mongo_chunk *c, struct err *e)
{
    size_t which[MONGO_CHUNK_UPDATES], n = c->count;
    int64_t matched;
    for (size_t i = 0; i < n; i++)
        which[i] = i;
    for (int tries = 0; n > 0 && tries < CHUNK_TRIES; tries++) {
        if (!send(c, which, &n, true, &matched, e) || (n > 0 && !settle_duplicates(c, which, &n, e)))
            return false;
    }
    if (n > 0)
        return refuse_id(c, which[0], e);
    c->count = 0;
    text_clear(&c->raw);
    failpoint(FAILPOINT_MONGO_APPLYING);
    return true;
}
