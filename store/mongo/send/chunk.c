#include "store/mongo/send/chunk.h"

#include "base/check.h"
#include "base/failpoint.h"
#include "store/mongo/ledger/identity.h"
#include "store/mongo/send/new.h"
#include "store/mongo/send/saturate.h"
#include "store/mongo/wire/field.h"
#include "store/mongo/wire/id.h"

#define XXH_INLINE_ALL
#include <stdio.h>
#include <stdlib.h>
#include <xxhash.h>

#define CHUNK_TRIES 5
#define ALIKE_MIN   4  /* fewer alike updates go one by one */
#define NEW_SHARE   16 /* if one of so many documents was new, the next chunk looks for new ones */

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

static void begin_command(const struct mongo_chunk *c, bson_t *command, bson_t *updates)
{
    bson_init(command);
    BSON_APPEND_UTF8(command, "update", c->collection);
    BSON_APPEND_BOOL(command, "ordered", false);
    BSON_APPEND_ARRAY_BEGIN(command, "updates", updates);
}

static void write_upsert(const struct mongo_chunk *c, size_t i, bool upsert, bson_t *one)
{
    bson_t update;
    update_at(c, i, &update);
    append_member(one, "q", &update, "f");
    append_member(one, "u", &update, "u");
    BSON_APPEND_BOOL(one, "upsert", upsert);
}

/* Writes an update command for the `n` updates of `which`. */
static void write_command(const struct mongo_chunk *c, const size_t *which, size_t n, bool upsert,
                          bson_t *command)
{
    bson_t updates, one;
    begin_command(c, command, &updates);
    for (size_t i = 0; i < n; i++) {
        char room[16];
        const char *key;
        size_t len = bson_uint32_to_string((uint32_t)i, &key, room, sizeof room);
        bson_append_document_begin(&updates, key, (int)len, &one);
        write_upsert(c, which[i], upsert, &one);
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

/* Saturates a sum that would overflow; else fails, and names the document. */
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
    int64_t index = bson_iter_recurse(failure, &member) && bson_iter_find(&member, "index")
                        ? bson_iter_as_int64(&member)
                        : -1;
    return index >= 0 && index < (int64_t)n ? (size_t)index : n;
}

/* Keeps those of `which` that met a duplicate key; *n of them afterwards. */
static bool take_failures(const struct mongo_chunk *c, size_t *which, size_t *n, const bson_t *reply,
                          struct err *e)
{
    bson_iter_t errors, at, member;
    bool is_duplicate[MONGO_CHUNK_UPDATES] = {false};
    if (!bson_iter_init_find(&errors, reply, "writeErrors") || !bson_iter_recurse(&errors, &at)) {
        *n = 0;
        return true;
    }
    while (bson_iter_next(&at)) {
        size_t index = index_of(&at, *n);
        if (index == *n)
            return err_set(e, EX_IOERR, "%s answers an update with an error of none of its documents",
                           mongo_client_name(c->client));
        if (bson_iter_recurse(&at, &member) && bson_iter_find(&member, "code") &&
            bson_iter_as_int64(&member) == MONGO_DUPLICATE_KEY)
            is_duplicate[which[index]] = true;
        else if (!settle_refused(c, which[index], &at, e))
            return false;
    }
    keep(which, n, is_duplicate, true);
    return true;
}

static size_t count_upserted(const bson_t *reply)
{
    bson_iter_t it, upserted;
    size_t count = 0;
    if (bson_iter_init_find(&it, reply, "upserted") && bson_iter_recurse(&it, &upserted)) {
        while (bson_iter_next(&upserted))
            count++;
    }
    return count;
}

static bool send(struct mongo_chunk *c, size_t *which, size_t *n, bool upsert, int64_t *matched,
                 struct err *e)
{
    bson_t command, reply;
    bson_iter_t it;
    write_command(c, which, *n, upsert, &command);
    bool good = mongo_write(c->client, &command, &reply, e);
    *matched = good && bson_iter_init_find(&it, &reply, "n") ? bson_iter_as_int64(&it) : 0;
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
    bson_iter_t it;
    const char *id = bson_iter_init_find(&it, document, "_id") && BSON_ITER_HOLDS_UTF8(&it)
                         ? bson_iter_utf8(&it, NULL)
                         : "";
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
    struct mongo_ids ids;
    bson_t of;
    bson_init(filter);
    mongo_ids_begin(&ids, filter);
    for (size_t i = 0; i < l->count; i++)
        mongo_ids_add(&ids, slice_text(c->ids[l->sorted[i]]));
    mongo_ids_end(&ids, filter);
    if (l->applied[0] == '\0')
        return;
    BSON_APPEND_DOCUMENT_BEGIN(filter, l->applied, &of);
    BSON_APPEND_INT64(&of, "$gte", c->of->prev < 0 ? c->of->seq : c->of->prev + 1);
    bson_append_document_end(filter, &of);
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
    bool good = mongo_find(c->client, c->collection, &filter, options, take_found, &looking, e);
    bson_destroy(options);
    bson_destroy(&filter);
    return good && (looking.other == NULL || mongo_check_applied(c->client, c->of, c->collection,
                                                                 looking.other, looking.other_number, e));
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
        char room[16];
        const char *key;
        size_t len = bson_uint32_to_string((uint32_t)i, &key, room, sizeof room);
        update_at(c, which[i], &update);
        mongo_new_document(&update, &document);
        bson_append_document(&documents, key, (int)len, &document);
        bson_destroy(&document);
    }
    bson_append_array_end(command, &documents);
}

/* Marks those of `n` documents that the server reports as refused; returns their number. */
static size_t mark_refused(const bson_t *reply, const size_t *which, size_t n, bool *is_left)
{
    bson_iter_t errors, at;
    size_t count = 0;
    if (!bson_iter_init_find(&errors, reply, "writeErrors") || !bson_iter_recurse(&errors, &at))
        return 0;
    for (; bson_iter_next(&at); count++) {
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
    bson_iter_t it;
    write_insert(c, which, *n, &command);
    bool good = mongo_write(c->client, &command, &reply, e);
    if (good) {
        size_t left = mark_refused(&reply, which, *n, is_left), before = *n;
        int64_t taken = bson_iter_init_find(&it, &reply, "n") ? bson_iter_as_int64(&it) : -1;
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
    update_at(c, index, &update);
    return err_set(e, EX_DATAERR, "%s: %s has a document \"%.300s\" with other metadata than its `_id` says",
                   mongo_client_name(c->client), c->collection, id_of(&update));
}

/* ---- together: updates that differ only in their document */

struct alike {
    uint64_t hash; /* hash of the update */
    size_t index;
};

static struct slice change_of(const struct mongo_chunk *c, size_t i)
{
    bson_t update;
    bson_iter_t it;
    uint32_t len;
    const uint8_t *bytes;
    update_at(c, i, &update);
    ASSERT(bson_iter_init_find(&it, &update, "u") && BSON_ITER_HOLDS_DOCUMENT(&it));
    bson_iter_document(&it, &len, &bytes);
    return slice_of((const char *)bytes, len);
}

static int compare_alike(const void *a, const void *b)
{
    const struct alike *x = a, *y = b;
    if (x->hash != y->hash)
        return x->hash < y->hash ? -1 : 1;
    return (x->index > y->index) - (x->index < y->index);
}

/* The end of the run of updates that are alike to the one at `from`. */
static size_t end_of_alike(const struct mongo_chunk *c, const struct alike *order, size_t from)
{
    size_t to = from + 1;
    struct slice change = change_of(c, order[from].index);
    while (to < c->count && order[to].hash == order[from].hash &&
           slice_equal(change, change_of(c, order[to].index)))
        to++;
    return to;
}

/* Appends the guard, which all alike updates share. */
static void append_guard(const struct mongo_chunk *c, size_t i, bson_t *to)
{
    bson_t update;
    bson_iter_t it, member;
    update_at(c, i, &update);
    ASSERT(bson_iter_init_find(&it, &update, "f") && bson_iter_recurse(&it, &member));
    while (bson_iter_next(&member)) {
        if (strncmp(bson_iter_key(&member), "applied.", strlen("applied.")) == 0)
            bson_append_iter(to, NULL, -1, &member);
    }
}

static void write_alike(const struct mongo_chunk *c, const struct alike *order, size_t n, bson_t *one)
{
    struct mongo_ids ids;
    bson_t q, update;
    BSON_APPEND_DOCUMENT_BEGIN(one, "q", &q);
    mongo_ids_begin(&ids, &q);
    for (size_t i = 0; i < n; i++)
        mongo_ids_add(&ids, slice_text(c->ids[order[i].index]));
    mongo_ids_end(&ids, &q);
    append_guard(c, order[0].index, &q);
    bson_append_document_end(one, &q);
    update_at(c, order[0].index, &update);
    append_member(one, "u", &update, "u");
    BSON_APPEND_BOOL(one, "multi", true);
}

static bool has_alike(const struct mongo_chunk *c, const struct alike *order)
{
    for (size_t from = 0, to; from < c->count; from = to) {
        to = end_of_alike(c, order, from);
        if (to - from >= ALIKE_MIN)
            return true;
    }
    return false;
}

/* Writes each run of alike updates as one update of several documents, unless it is too short. */
static void write_together(const struct mongo_chunk *c, const struct alike *order, bson_t *command)
{
    bson_t updates, one;
    uint32_t n = 0;
    begin_command(c, command, &updates);
    for (size_t from = 0, to; from < c->count; from = to) {
        char room[16];
        const char *key;
        to = end_of_alike(c, order, from);
        bool together = to - from >= ALIKE_MIN;
        for (size_t i = from; i < to; i = together ? to : i + 1) {
            size_t len = bson_uint32_to_string(n++, &key, room, sizeof room);
            bson_append_document_begin(&updates, key, (int)len, &one);
            if (together)
                write_alike(c, &order[from], to - from, &one);
            else
                write_upsert(c, order[i].index, true, &one);
            bson_append_document_end(&updates, &one);
        }
    }
    bson_append_array_end(command, &updates);
}

/* Does the chunk add to documents that may exist? If not, it makes new ones: series, or preallocated
 * documents. */
static bool adds(const struct mongo_chunk *c)
{
    static const char *const operators[] = {"u.$inc", "u.$min", "u.$max", "u.$push"};
    bson_t update;
    bson_iter_t it, found;
    update_at(c, 0, &update);
    for (size_t i = 0; i < COUNT_OF(operators); i++) {
        if (bson_iter_init(&it, &update) && bson_iter_find_descendant(&it, operators[i], &found))
            return true;
    }
    return false;
}

/* A server plans one update of a thousand documents once, which is several times as fast as a thousand
 * updates. It makes no document, and returns only how many it found. So this asks which updates are missing,
 * and leaves *n of `which` for the functions that can deal with each. */
static bool send_together(struct mongo_chunk *c, size_t *which, size_t *n, bool *together, struct err *e)
{
    struct alike order[MONGO_CHUNK_UPDATES];
    bson_t command, reply;
    bson_iter_t it;
    for (size_t i = 0; i < *n; i++) {
        struct slice change = change_of(c, i);
        order[i] = (struct alike){XXH3_64bits(change.ptr, change.len), i};
    }
    qsort(order, *n, sizeof *order, compare_alike);
    *together = has_alike(c, order);
    if (!*together)
        return true;
    write_together(c, order, &command);
    bool good = mongo_write(c->client, &command, &reply, e);
    int64_t done = good && bson_iter_init_find(&it, &reply, "n") ? bson_iter_as_int64(&it) : 0;
    c->made += good ? count_upserted(&reply) : 0;
    bool is_whole = done == (int64_t)*n && !bson_has_field(&reply, "writeErrors");
    bson_destroy(&reply);
    bson_destroy(&command);
    if (is_whole)
        *n = 0;
    return good && (is_whole || drop_applied(c, which, n, e));
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
        update_at(c, i, &update);
        c->ids[i] = id_of(&update);
        which[i] = i;
    }
    qsort_r(which, c->count, sizeof *which, compare_ids, c);
}

/* First tries the ways that apply many updates at once. They leave *n of `which`, which go one by one. */
static bool apply_many(struct mongo_chunk *c, size_t *which, size_t *n, struct err *e)
{
    bool together = false;
    if (!adds(c))
        return insert(c, which, n, e);
    if (!c->one_by_one && !send_together(c, which, n, &together, e))
        return false;
    if (*n == 0)
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
    if (!c->is_ahead)
        c->finds_new = c->made * NEW_SHARE > c->count;
    c->count = 0;
    text_clear(&c->raw);
    failpoint(FAILPOINT_MONGO_APPLYING);
    return true;
}
