/* apply.c - batches of the imaginary site applied by tallyd's store, in turn with a bare loop of the same
 * upserts.
 *
 *     build/mongo_apply URL EVENTS ROUNDS CONNECTIONS [WARM [bytes]]
 *
 * The report counts hits, and with `bytes` their bytes, too: then most updates of a batch differ. Both begin
 * with documents that are there: of a batch of WARM events (1,000,000), which the bare loop inserts. A round
 * is a batch of EVENTS, first applied by store_apply() into URL's database, then by the bare loop into
 * DATABASE_bare, every other time the other way round. The bare loop has the updates of the very same log,
 * but for the guard and `applied`, in unordered bulks of 1,000 by libmongoc, over as many connections. It
 * prints for each round
 *
 *     round DOCUMENTS TALLYD_SECONDS BARE_SECONDS BARE_1_SECONDS LOG_BYTES
 *     protocol ROUND_TRIPS SECONDS                  of store_apply(), all but the updates: log and seal
 *     house ROUND_TRIPS SECONDS                     of store_housekeep(): lease, roll-up, logs that go
 *     asked TIMES                                   which of a chunk are there, or were updated: some are new
 *
 * where BARE_1 is the same loop over one connection. The linker puts the functions below in front of those of
 * mongo/wire/client.c: that is how round trips are counted.
 */
#include "aggregate/shard.h"
#include "base/check.h"
#include "base/mem.h"
#include "bench/mongo/visits.h"
#include "store/backend/backend.h"
#include "store/mongo/send/new.h"
#include "store/mongo/writer/torn.h"
#include "store/mongo/writer/update.h"
#include "store/writer.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

enum { CONNECTIONS_MAX = 64, BULK = 1000, WARM_EVENTS = 1000000, SEED = 1 };

/* ---- what the store asks of the server, beside updates of documents */

static struct cost {
    size_t round_trips;
    double seconds;
} protocol, house, *cost = &protocol;

static atomic_size_t
    asked; /* which updates of a chunk had been applied, since not all documents were there */

#define REAL(name) __typeof__(name) __real_##name, __wrap_##name; /* NOLINT(bugprone-reserved-identifier) */
REAL(mongo_read)
REAL(mongo_write)
REAL(mongo_make)
REAL(mongo_update_one)
REAL(mongo_find)

static bool note(double begun_s, bool good)
{
    cost->round_trips++;
    cost->seconds += visits_now_s() - begun_s;
    return good;
}

bool __wrap_mongo_read(struct mongo_client *c, const bson_t *command, bson_t *reply, struct err *e)
{
    double begun_s = visits_now_s();
    return note(begun_s, __real_mongo_read(c, command, reply, e));
}

/* Updates come from several threads, and only they. */
bool __wrap_mongo_write(struct mongo_client *c, const bson_t *command, bson_t *reply, struct err *e)
{
    double begun_s = visits_now_s();
    bool good = __real_mongo_write(c, command, reply, e);
    bool is_apply = bson_has_field(command, "updates") || bson_has_field(command, "documents");
    return is_apply ? good : note(begun_s, good);
}

bool __wrap_mongo_make(struct mongo_client *c, const char *collection, const bson_t *document, struct err *e)
{
    double begun_s = visits_now_s();
    return note(begun_s, __real_mongo_make(c, collection, document, e));
}

bool __wrap_mongo_update_one(struct mongo_client *c, const char *collection, const bson_t *filter,
                             const bson_t *update, bool upsert, bool *matched, struct err *e)
{
    double begun_s = visits_now_s();
    return note(begun_s, __real_mongo_update_one(c, collection, filter, update, upsert, matched, e));
}

/* Which documents a chunk has been applied to is asked by several threads, too: a part of applying. */
bool __wrap_mongo_find(struct mongo_client *c, const char *collection, const bson_t *filter,
                       const bson_t *options, mongo_document_fn *fn, void *context, struct err *e)
{
    double begun_s = visits_now_s();
    bool good = __real_mongo_find(c, collection, filter, options, fn, context, e);
    if (strncmp(collection, "pages.", strlen("pages.")) != 0)
        return note(begun_s, good);
    atomic_fetch_add(&asked, 1);
    return good;
}

/* ---- batches */

struct bench {
    struct report report;
    struct store *store;
    struct shard *shard;
    struct visits *visits;
    struct books books;
    struct range range;
    int64_t at_s;
};

static void fail(const struct err *e)
{
    visits_fail("the store", e->text);
}

static void open_bench(struct bench *b, const char *url, size_t connections, bool with_bytes)
{
    static const struct shard_limits limits = {1 << 20, 1 << 20, (size_t)64 << 20, 512,
                                               NULL,    0,       (size_t)32 << 20};
    const struct store_options options = {.validation = VALIDATION_WARN, .connections = connections};
    struct err e;
    if (!report_init(&b->report, slice_text("pages"), 1, &e) ||
        !report_add_dimension(&b->report, slice_text("path"), &e) ||
        !report_add_measure(&b->report, slice_text("hits"), slice_text("count"), &e) ||
        (with_bytes && !report_add_measure(&b->report, slice_text("bytes"), slice_text("sum(bytes)"), &e)) ||
        !report_finish(&b->report, &e))
        fail(&e);
    b->store = store_open_with(url, STORE_WRITE, &options, &b->report, 1, &e);
    if (!b->store)
        fail(&e);
    b->shard = shard_new(0, &b->report, 1, &limits);
    b->visits = visits_new(SEED);
    b->at_s = time(NULL);
    books_init(&b->books, 1);
    strcpy(b->range.source, "bench");
    strcpy(b->range.label, "bench");
}

static void close_bench(struct bench *b)
{
    store_close(b->store);
    shard_free(b->shard);
    visits_free(b->visits);
    books_fini(&b->books);
    report_fini(&b->report);
}

static struct part *gather(struct bench *b, int64_t events)
{
    for (int64_t i = 0; i < events; i++)
        shard_add(b->shard, visits_next(b->visits, b->at_s), 1);
    b->at_s++;
    struct part *part = shard_seal(b->shard);
    books_clear(&b->books);
    books_add(&b->books, &part->books);
    b->range.from = b->range.to;
    b->range.to += events;
    return part;
}

static struct batch batch_of(struct bench *b, struct part **part)
{
    return (struct batch){
        .ranges = &b->range, .books = &b->books, .range_count = 1, .parts = part, .part_count = 1};
}

/* Seconds. Months are rolled up at once, since the bare loop writes them, too. */
static double apply(struct bench *b, struct part *part)
{
    struct batch batch = batch_of(b, &part);
    struct err e;
    double begun_s = visits_now_s();
    cost = &protocol;
    if (!store_apply(b->store, &batch, &e))
        fail(&e);
    cost = &house;
    if (!store_housekeep(b->store, true, &e))
        fail(&e);
    return visits_now_s() - begun_s;
}

/* ---- the bare loop */

struct update {
    bson_t *document; /* as its upsert makes it, which is then inserted; NULL: upserted */
    bson_t *filter, *set;
    bool is_month;
};

struct bare {
    mongoc_client_pool_t *pool;
    char *database;
    struct update *updates;
    size_t count, capacity;
    pthread_mutex_t lock;
    size_t next;
};

static void copy_all_but(const bson_iter_t *of, const char *stem, bson_t *to)
{
    bson_iter_t at;
    ASSERT(bson_iter_recurse(of, &at));
    while (bson_iter_next(&at)) {
        if (strncmp(bson_iter_key(&at), stem, strlen(stem)) != 0)
            bson_append_iter(to, NULL, -1, &at);
    }
}

/* Documents that the loop begins with. */
static void make(const bson_t *logged, struct update *u)
{
    bson_t document;
    mongo_new_document(logged, &document);
    u->document = bson_copy(&document);
    bson_destroy(&document);
}

/* Without guard and `applied`. */
static void strip(const bson_t *logged, struct update *u)
{
    bson_iter_t it, operator;
    u->filter = bson_new();
    ASSERT(bson_iter_init_find(&it, logged, "f"));
    copy_all_but(&it, "applied.", u->filter);
    u->set = bson_new();
    ASSERT(bson_iter_init_find(&it, logged, "u") && bson_iter_recurse(&it, &operator));
    while (bson_iter_next(&operator)) {
        bson_t of;
        bson_append_document_begin(u->set, bson_iter_key(&operator), -1, &of);
        copy_all_but(&operator, "applied.", &of);
        bson_append_document_end(u->set, &of);
    }
}

/* A handle notes the documents that it wrote, and sends others last. It must know no more of the batch's when
 * store_apply() writes them than it knew before. */
static struct mongo_name *keep_notes(struct mongo_store *m, size_t *count)
{
    const struct mongo_names *names = &m->more[0].names;
    *count = names->count;
    struct mongo_name *kept = xcalloc(*count + 1, sizeof *kept);
    if (*count > 0)
        memcpy(kept, names->names, *count * sizeof *kept);
    return kept;
}

static void restore_notes(struct mongo_store *m, struct mongo_name *kept, size_t count)
{
    const struct mongo_names *names = &m->more[0].names;
    for (size_t i = 0; i < names->count; i++) {
        if (i < count)
            memcpy(names->names[i].written, kept[i].written, sizeof kept[i].written);
        else
            memset(names->names[i].written, 0, sizeof names->names[i].written);
    }
    free(kept);
}

/* Adds the updates of a log; `new`: none of the documents is there yet. */
static void add_updates(struct slice packed, struct bare *bare, bool new)
{
    struct mongo_log_reader reader;
    const bson_t *update;
    struct err e;
    mongo_log_open(&reader, packed);
    while (mongo_log_next(&reader, &update, &e) && update != NULL) {
        bson_iter_t it;
        ASSERT(bson_iter_init_find(&it, update, "c"));
        const char *collection = bson_iter_utf8(&it, NULL);
        if (strcmp(collection, "pages.day") != 0 && strcmp(collection, "pages.month") != 0)
            continue;
        bare->updates = xgrow(bare->updates, &bare->capacity, bare->count + 1, sizeof(*bare->updates));
        struct update *u = &bare->updates[bare->count++];
        *u = (struct update){.is_month = strcmp(collection, "pages.month") == 0};
        if (new)
            make(update, u);
        else
            strip(update, u);
    }
    mongo_log_close(&reader);
}

/* The updates of the batch's documents, as store_apply() will log them. Returns the bytes of the logs. */
static size_t take_updates(struct bench *b, struct part *part, struct bare *bare, bool new)
{
    size_t known;
    struct mongo_store *m = mongo_of(b->store);
    struct batch batch = batch_of(b, &part);
    struct err e;
    if (!mongo_resolve(m, &batch, &e))
        fail(&e);
    struct mongo_name *notes = keep_notes(m, &known);
    mongo_write_updates(m, &batch);
    restore_notes(m, notes, known);
    add_updates(text_slice(&m->batch.log.packed), bare, new);
    add_updates(text_slice(&m->batch.longer.packed), bare, new);
    return m->batch.log.packed.len + m->batch.longer.packed.len;
}

static void forget_updates(struct bare *bare)
{
    for (size_t i = 0; i < bare->count; i++) {
        bson_destroy(bare->updates[i].document);
        bson_destroy(bare->updates[i].filter);
        bson_destroy(bare->updates[i].set);
    }
    bare->count = 0;
}

/* Up to BULK of one collection. */
static size_t take_some(struct bare *bare, size_t *from)
{
    pthread_mutex_lock(&bare->lock);
    size_t to = *from = bare->next;
    while (to < bare->count && to - *from < BULK &&
           bare->updates[to].is_month == bare->updates[*from].is_month)
        to++;
    bare->next = to;
    pthread_mutex_unlock(&bare->lock);
    return to;
}

static void *run_bare(void *context)
{
    struct bare *bare = context;
    mongoc_client_t *client = mongoc_client_pool_pop(bare->pool);
    bson_t *unordered = BCON_NEW("ordered", BCON_BOOL(false)), *upsert = BCON_NEW("upsert", BCON_BOOL(true));
    bson_error_t error;
    for (size_t from, to; (to = take_some(bare, &from)) > from;) {
        mongoc_collection_t *collection = mongoc_client_get_collection(
            client, bare->database, bare->updates[from].is_month ? "pages.month" : "pages.day");
        mongoc_bulk_operation_t *bulk =
            mongoc_collection_create_bulk_operation_with_opts(collection, unordered);
        for (size_t i = from; i < to; i++) {
            const struct update *u = &bare->updates[i];
            if (u->document != NULL
                    ? !mongoc_bulk_operation_insert_with_opts(bulk, u->document, NULL, &error)
                    : !mongoc_bulk_operation_update_one_with_opts(bulk, u->filter, u->set, upsert, &error))
                visits_fail("the bare loop", error.message);
        }
        if (!mongoc_bulk_operation_execute(bulk, NULL, &error))
            visits_fail("the bare loop", error.message);
        mongoc_bulk_operation_destroy(bulk);
        mongoc_collection_destroy(collection);
    }
    bson_destroy(upsert);
    bson_destroy(unordered);
    mongoc_client_pool_push(bare->pool, client);
    return NULL;
}

/* Seconds. */
static double run_loop(struct bare *bare, size_t connections)
{
    pthread_t threads[CONNECTIONS_MAX];
    double begun_s = visits_now_s();
    bare->next = 0;
    for (size_t i = 1; i < connections; i++) {
        if (pthread_create(&threads[i], NULL, run_bare, bare) != 0)
            visits_fail("a thread", "it cannot be made");
    }
    run_bare(bare);
    for (size_t i = 1; i < connections; i++)
        pthread_join(threads[i], NULL);
    return visits_now_s() - begun_s;
}

/* ---- both */

static void run_round(struct bench *b, struct bare *bare, int64_t events, size_t connections, bool bare_first)
{
    struct part *part = gather(b, events);
    size_t bytes = take_updates(b, part, bare, false);
    double tallyd_s = 0, bare_s = 0, bare_1_s;
    if (!bare_first)
        tallyd_s = apply(b, part);
    bare_s = run_loop(bare, connections);
    if (bare_first)
        tallyd_s = apply(b, part);
    bare_1_s = run_loop(bare, 1);
    printf("round %zu %.4f %.4f %.4f %zu\n", bare->count, tallyd_s, bare_s, bare_1_s, bytes);
    fflush(stdout);
    shard_give_back(b->shard, part);
    forget_updates(bare);
}

/* Documents, a claim of the partition, and the batches that are checked after it. */
static void warm(struct bench *b, struct bare *bare, int64_t events, size_t connections)
{
    for (int i = 0; i < MONGO_BATCHES_ASKED; i++) {
        struct part *first = gather(b, 1);
        apply(b, first);
        shard_give_back(b->shard, first);
    }
    struct part *part = gather(b, events);
    (void)take_updates(b, part, bare, true);
    apply(b, part);
    run_loop(bare, connections);
    shard_give_back(b->shard, part);
    forget_updates(bare);
}

static void create_index(struct bare *bare, const char *collection)
{
    bson_error_t error;
    mongoc_client_t *client = mongoc_client_pool_pop(bare->pool);
    bson_t *command = BCON_NEW("createIndexes", BCON_UTF8(collection), "indexes", "[", "{", "key", "{",
                               "metadata.path", BCON_INT32(1), "metadata.date", BCON_INT32(1), "}", "name",
                               BCON_UTF8("path_date"), "}", "]");
    if (!mongoc_client_write_command_with_opts(client, bare->database, command, NULL, NULL, &error))
        visits_fail(collection, error.message);
    bson_destroy(command);
    mongoc_client_pool_push(bare->pool, client);
}

int main(int argc, char **argv)
{
    struct bench b = {0};
    struct bare bare = {.lock = PTHREAD_MUTEX_INITIALIZER};
    char *database;
    if (argc < 5) {
        fputs("usage: mongo_apply URL EVENTS ROUNDS CONNECTIONS [WARM [bytes]]\n", stderr);
        return EX_USAGE;
    }
    int64_t events = atoll(argv[2]);
    size_t connections = strtoull(argv[4], NULL, 10);
    if (events < 1 || connections < 1 || connections > CONNECTIONS_MAX)
        visits_fail("EVENTS or CONNECTIONS", "out of range");
    bare.pool = visits_pool(argv[1], &database);
    bare.database = bson_strdup_printf("%s_bare", database);
    create_index(&bare, "pages.day");
    create_index(&bare, "pages.month");
    open_bench(&b, argv[1], connections, argc > 6 && strcmp(argv[6], "bytes") == 0);
    warm(&b, &bare, argc > 5 ? atoll(argv[5]) : WARM_EVENTS, connections);
    protocol = house = (struct cost){0};
    asked = 0;
    for (int round = 0; round < atoi(argv[3]); round++)
        run_round(&b, &bare, events, connections, round % 2 == 1);
    printf("protocol %zu %.4f\n", protocol.round_trips, protocol.seconds);
    printf("house %zu %.4f\n", house.round_trips, house.seconds);
    printf("asked %zu\n", atomic_load(&asked));
    close_bench(&b);
    free(bare.updates);
    bson_free(bare.database);
    free(database);
    mongoc_client_pool_destroy(bare.pool);
    return EX_OK;
}
