#include "store/mongo/send/chunk.h"

#include "base/check.h"
#include "base/failpoint.h"
#include "store/mongo/ledger/identity.h"
#include "store/mongo/send/new.h"
#include "store/mongo/send/saturate.h"
#include "store/mongo/send/together.h"
#include "store/mongo/wire/command.h"
#include "store/mongo/wire/field.h"

#include <stdio.h>
#include <stdlib.h>

#define CHUNK_TRIES 5
#define NEW_SHARE   16 /* if one of so many documents was new, the next chunk looks for new ones */

/* Writes an update command for the `n` updates of `which`. */
static void write_command(const struct mongo_chunk *c, const size_t *which, size_t n, bool upsert,
                          bson_t *command)
{
    bson_t updates, one;
    mongo_chunk_begin_command(c, command, &updates);
    for (size_t i = 0; i < n; i++) {
        char room[MONGO_KEY_BYTES];
        bson_append_document_begin(&updates, mongo_array_key(i, room), -1, &one);
        mongo_chunk_write_upsert(c, which[i], upsert, &one);
        bson_append_document_end(&updates, &one);
    }
    bson_append_array_end(command, &updates);
}

static const char *id_of(const bson_t *update)
{
    return mongo_text_at(update, "f._id");
}

/* Saturates a sum that would overflow; else fails, and names the document. */
static bool settle_refused(const struct mongo_chunk *c, size_t index, const bson_iter_t *failure,
                           struct err *e)
{
    char what[MONGO_NAME_BYTES + 256];
    bson_t update;
    bool done;
    mongo_chunk_update(c, index, &update);
    if (!mongo_saturate(c->client, c->of, c->collection, &update, &done, e))
        return false;
    snprintf(what, sizeof what, "an update of %s \"%.200s\"", c->collection, id_of(&update));
    return done || mongo_check_write(c->client, failure, what, e);
}

/* Keeps those of `which` whose mark is `marked`; *n of them afterwards. */
static void keep(size_t *which, size_t *n, const bool *mark, bool marked)
{
    size_t kept = 0;
    for (size_t i = 0; i < *n; i++) {
        if (mark[which[i]] == marked)
            which[kept++] = which[i];
    }
    *n = kept;
}

/* The index of the document, of `n` in a command, that an error is about; `n`: none. */
static size_t index_of(const bson_iter_t *failure, size_t n)
{
    bson_iter_t member;
    int64_t index = mongo_find_in(failure, "index", &member) ? bson_iter_as_int64(&member) : -1;
    return index >= 0 && index < (int64_t)n ? (size_t)index : n;
}

/* Keeps those of `which` that met a duplicate key; *n of them afterwards. */
static bool take_failures(const struct mongo_chunk *c, size_t *which, size_t *n, const bson_t *reply,
                          struct err *e)
{
    bson_iter_t at, member;
    bool is_duplicate[MONGO_CHUNK_UPDATES] = {false};
    for (bool more = mongo_begin_members(reply, "writeErrors", &at); more && bson_iter_next(&at);) {
        size_t index = index_of(&at, *n);
        if (index == *n)
            return err_set(e, EX_IOERR, "%s answers an update with an error of none of its documents",
                           mongo_client_name(c->client));
        if (mongo_find_in(&at, "code", &member) && bson_iter_as_int64(&member) == MONGO_DUPLICATE_KEY)
            is_duplicate[which[index]] = true;
        else if (!settle_refused(c, which[index], &at, e))
            return false;
    }
    keep(which, n, is_duplicate, true);
    return true;
}

static size_t count_upserted(const bson_t *reply)
{
    bson_iter_t at;
    size_t count = 0;
    for (bool more = mongo_begin_members(reply, "upserted", &at); more && bson_iter_next(&at);)
        count++;
    return count;
}

static bool send(struct mongo_chunk *c, size_t *which, size_t *n, bool upsert, int64_t *matched,
                 struct err *e)
{
    bson_t command, reply;
    write_command(c, which, *n, upsert, &command);
    bool good = mongo_write(c->client, &command, &reply, e);
    *matched = good ? mongo_number_at(&reply, "n", 0) : 0;
    c->made += good ? count_upserted(&reply) : 0;
    good = good && take_failures(c, which, n, &reply, e);
    bson_destroy(&reply);
    bson_destroy(&command);
    return good;
}

/* ---- which documents exist? */

struct looking {
    const struct mongo_chunk *chunk;
    const size_t *sorted; /* sorted by `_id` */
    size_t count;
    bool *is_found;                      /* by index in the chunk */
    char applied[MONGO_SLOT_BYTES + 16]; /* path of the number that is read, "applied.w0"; "": none */
    const char *other;                   /* a document with a number other than the batch's; NULL: none */
    int64_t other_number;
};

/* Notes a document that the ledger may not know; of several, the one with the lowest number. */
static void note_number(struct looking *l, const bson_t *document, size_t index)
{
    int64_t number = mongo_number_at(document, l->applied, 0);
    if (number == l->chunk->of->seq || (l->other != NULL && l->other_number <= number))
        return;
    l->other = l->chunk->ids[index];
    l->other_number = number;
}

static bool take_found(void *context, const bson_t *document)
{
    struct looking *l = context;
    const char *id = mongo_text_at(document, "_id");
    for (size_t low = 0, high = l->count; low < high;) {
        size_t middle = (low + high) / 2;
        int order = strcmp(id, l->chunk->ids[l->sorted[middle]]);
        if (order == 0) {
            l->is_found[l->sorted[middle]] = true;
            if (l->applied[0] != '\0')
                note_number(l, document, l->sorted[middle]);
            break;
        }
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return true;
}

static void write_look(const struct looking *l, bson_t *filter)
{
    const struct mongo_chunk *c = l->chunk;
    const int64_t first = c->of->prev < 0 ? c->of->seq : c->of->prev + 1;
    struct mongo_ids ids;
    bson_init(filter);
    mongo_ids_begin(&ids, filter);
    for (size_t i = 0; i < l->count; i++)
        mongo_ids_add(&ids, slice_text(c->ids[l->sorted[i]]));
    (void)mongo_ids_end(&ids);
    if (l->applied[0] != '\0')
        BCON_APPEND(filter, l->applied, "{", "$gte", BCON_INT64(first), "}");
}

/* Sets is_found for those of `which` whose documents exist; with `applied`, for those that are applied. */
static bool look(const struct mongo_chunk *c, const size_t *which, size_t n, bool applied, bool *is_found,
                 struct err *e)
{
    struct looking looking = {.chunk = c, .sorted = which, .count = n, .is_found = is_found};
    bson_t filter;
    if (applied)
        snprintf(looking.applied, sizeof looking.applied, "applied.%s", c->of->slot);
    memset(is_found, 0, c->count * sizeof *is_found);
    write_look(&looking, &filter);
    bson_t *options = BCON_NEW("projection", "{", applied ? looking.applied : "_id", BCON_BOOL(true), "}",
                               "batchSize", BCON_INT32((int32_t)n));
    return mongo_look(c->client, c->collection, &filter, options, take_found, &looking, e) &&
           (looking.other == NULL ||
            mongo_check_applied(c->client, c->of, c->collection, looking.other, looking.other_number, e));
}

/* Keeps those of `which` that are not applied, after asking the ledger in doubt; *n of them afterwards. */
static bool drop_applied(const struct mongo_chunk *c, size_t *which, size_t *n, struct err *e)
{
    bool is_applied[MONGO_CHUNK_UPDATES];
    if (!look(c, which, *n, true, is_applied, e))
        return false;
    keep(which, n, is_applied, false);
    return true;
}

/* ---- new documents */

static void write_insert(const struct mongo_chunk *c, const size_t *which, size_t n, bson_t *command)
{
    bson_t documents, update, document;
    bson_init(command);
    BSON_APPEND_UTF8(command, "insert", c->collection);
    BSON_APPEND_BOOL(command, "ordered", false);
    BSON_APPEND_ARRAY_BEGIN(command, "documents", &documents);
    for (size_t i = 0; i < n; i++) {
        char room[MONGO_KEY_BYTES];
        mongo_chunk_update(c, which[i], &update);
        mongo_new_document(&update, &document);
        bson_append_document(&documents, mongo_array_key(i, room), -1, &document);
        bson_destroy(&document);
    }
    bson_append_array_end(command, &documents);
}

/* Marks those of `n` documents that the server reports as refused; returns their number. */
static size_t mark_refused(const bson_t *reply, const size_t *which, size_t n, bool *is_left)
{
    bson_iter_t at;
    size_t count = 0;
    for (bool more = mongo_begin_members(reply, "writeErrors", &at); more && bson_iter_next(&at); count++) {
        size_t index = index_of(&at, n);
        if (index < n)
            is_left[which[index]] = true;
    }
    return count;
}

/* Inserts the documents of `which`. Documents that the server did not take, for any reason, are left, *n of
 * them. If the numbers in the reply do not add up, all are left: their guards find out. */
static bool insert(struct mongo_chunk *c, size_t *which, size_t *n, struct err *e)
{
    bool is_left[MONGO_CHUNK_UPDATES] = {false};
    bson_t command, reply;
    write_insert(c, which, *n, &command);
    bool good = mongo_write(c->client, &command, &reply, e);
    if (good) {
        size_t left = mark_refused(&reply, which, *n, is_left), before = *n;
        int64_t taken = mongo_number_at(&reply, "n", -1);
        if (taken >= 0 && (size_t)taken + left == before)
            keep(which, n, is_left, true);
        c->made += before - *n;
    }
    bson_destroy(&reply);
    bson_destroy(&command);
    return good;
}

/* Inserts those documents of `which` that do not exist; the others are left. */
static bool insert_missing(struct mongo_chunk *c, size_t *which, size_t *n, struct err *e)
{
    bool is_there[MONGO_CHUNK_UPDATES];
    size_t missing[MONGO_CHUNK_UPDATES], count = *n;
    if (!look(c, which, *n, false, is_there, e))
        return false;
    memcpy(missing, which, *n * sizeof *which);
    keep(missing, &count, is_there, false);
    if (count > 0 && !insert(c, missing, &count, e))
        return false;
    for (size_t i = 0; i < count; i++)
        is_there[missing[i]] = true; /* another writer made it, or it is refused */
    keep(which, n, is_there, true);
    return true;
}

/* ---- one by one */

/* A duplicate key has two causes: the update was applied already, or another writer made the document in the
 * same moment. */
static bool settle_duplicates(struct mongo_chunk *c, size_t *which, size_t *n, struct err *e)
{
    size_t all[MONGO_CHUNK_UPDATES], failed = *n;
    int64_t matched;
    memcpy(all, which, *n * sizeof *all);
    if (!send(c, all, &failed, false, &matched, e))
        return false;
    if ((size_t)matched == *n) {
        *n = 0;
        return true;
    }
    return drop_applied(c, which, n, e);
}

static bool refuse_id(const struct mongo_chunk *c, size_t index, struct err *e)
{
    bson_t update;
    mongo_chunk_update(c, index, &update);
    return err_set(e, EX_DATAERR, "%s: %s has a document \"%.300s\" with other metadata than its `_id` says",
                   mongo_client_name(c->client), c->collection, id_of(&update));
}

/* ---- together */

/* Does the chunk add to documents? If not, they only have to be there, as series and preallocated documents;
 * or they are set, as years. */
static bool adds(const struct mongo_chunk *c)
{
    static const char *const operators[] = {"u.$inc", "u.$min", "u.$max", "u.$push"};
    bson_t update;
    bson_iter_t found;
    mongo_chunk_update(c, 0, &update);
    for (size_t i = 0; i < COUNT_OF(operators); i++) {
        if (mongo_find_member(&update, operators[i], &found))
            return true;
    }
    return false;
}

/* Learns from the errors of the first pipelines whether the server takes them. */
static void learn(struct mongo_chunk *c, const struct mongo_together *t, const bson_t *reply)
{
    bson_iter_t at;
    size_t refused = 0;
    if (c->pipelines != MONGO_PIPELINES_UNKNOWN || t->pipelines == 0)
        return;
    for (bool more = mongo_begin_members(reply, "writeErrors", &at); more && bson_iter_next(&at);) {
        size_t index = index_of(&at, t->count);
        refused += index < t->count && t->is_pipeline[index];
    }
    c->pipelines = refused == t->pipelines ? MONGO_PIPELINES_REFUSED : MONGO_PIPELINES_TAKEN;
}

/* Applies the chunk by updates of many documents where some go together. *many: some do; *whole: all of the
 * chunk is applied now. */
static bool send_many(struct mongo_chunk *c, bool *many, bool *whole, struct err *e)
{
    struct mongo_together together;
    bson_t command, reply;
    bool good = true;
    mongo_together_write(c, c->pipelines != MONGO_PIPELINES_REFUSED, &command, &together);
    *many = together.many > 0;
    *whole = false;
    if (*many) {
        good = mongo_write(c->client, &command, &reply, e);
        if (good) {
            *whole = mongo_number_at(&reply, "n", 0) == (int64_t)c->count &&
                     !bson_has_field(&reply, "writeErrors");
            c->made += count_upserted(&reply);
            learn(c, &together, &reply);
        } else if (e->code == EX_IOERR && c->pipelines == MONGO_PIPELINES_UNKNOWN && together.pipelines > 0) {
            c->pipelines = MONGO_PIPELINES_REFUSED; /* with the whole command */
            good = true;
        }
        bson_destroy(&reply);
    }
    bson_destroy(&command);
    return good;
}

/* Updates of many documents make none, and return only how many they found. So this asks which updates are
 * missing, and leaves *n of `which` for the functions that can deal with each. */
static bool send_together(struct mongo_chunk *c, size_t *which, size_t *n, bool *together, struct err *e)
{
    bool whole;
    if (!send_many(c, together, &whole, e))
        return false;
    if (whole)
        *n = 0;
    return whole || !*together || drop_applied(c, which, n, e);
}

static int compare_ids(const void *a, const void *b, void *chunk)
{
    const struct mongo_chunk *c = chunk;
    return strcmp(c->ids[*(const size_t *)a], c->ids[*(const size_t *)b]);
}

/* Sorts the chunk by `_id`: writers that update the same documents take them in the same order, so a server
 * with locks has no deadlock to resolve. */
static void list(struct mongo_chunk *c, size_t *which)
{
    for (size_t i = 0; i < c->count; i++) {
        bson_t update;
        mongo_chunk_update(c, i, &update);
        c->ids[i] = id_of(&update);
        which[i] = i;
    }
    qsort_r(which, c->count, sizeof *which, compare_ids, c);
}

/* Is inserting the documents worth the try before anything else? A server takes long to refuse those that
 * exist: of series, most do after a restart. */
static bool is_new(const struct mongo_chunk *c)
{
    return c->is_ahead || (!adds(c) && (c->one_by_one || c->makes_most));
}

/* First tries the ways that apply many updates at once. They leave *n of `which`, which go one by one. */
static bool apply_many(struct mongo_chunk *c, size_t *which, size_t *n, struct err *e)
{
    bool together = false, tried = is_new(c);
    if (tried && !insert(c, which, n, e))
        return false;
    if (*n == 0 || c->is_ahead)
        return true;
    if (!c->one_by_one && !send_together(c, which, n, &together, e))
        return false;
    if (*n == 0 || tried)
        return true;
    if (together)
        return insert(c, which, n, e);
    /* A single update, as those of books often are, makes its document by an upsert. */
    return !c->finds_new || c->count == 1 || insert_missing(c, which, n, e);
}

bool mongo_chunk_apply(struct mongo_chunk *c, struct err *e)
{
    size_t which[MONGO_CHUNK_UPDATES], n = c->count;
    int64_t matched;
    list(c, which);
    c->made = 0;
    if (!apply_many(c, which, &n, e))
        return false;
    for (int tries = 0; n > 0 && tries < CHUNK_TRIES; tries++) {
        if (!send(c, which, &n, true, &matched, e) || (n > 0 && !settle_duplicates(c, which, &n, e)))
            return false;
    }
    if (n > 0)
        return refuse_id(c, which[0], e);
    if (!c->is_ahead) {
        c->finds_new = c->made * NEW_SHARE > c->count;
        c->makes_most = 2 * c->made > c->count;
    }
    c->count = 0;
    text_clear(&c->raw);
    failpoint(FAILPOINT_MONGO_APPLYING);
    return true;
}
