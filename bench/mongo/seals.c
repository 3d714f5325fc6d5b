/* seals.c - how many seals a second a ledger or seats take: the compare-and-set of
 * store/mongo/writer/commit.c by a straight program with libmongoc, from many writers at once.
 *
 *     build/mongo_seals URL 0 LEDGERS IDLE                  makes the ledgers
 *     build/mongo_seals URL WRITERS LEDGERS IDLE SECONDS    seals, once, in ledgers so made
 *
 * SLOTS slots with PARTITIONS partitions each are divided among LEDGERS documents, and IDLE more
 * partitions that nobody seals. WRITERS of the slots seal as fast as they can, each over a connection of
 * its own: a seal moves all positions of its slot.
 *
 * LEDGERS of `seats` is the protocol (docs/LEDGER.md, "Seats"): a document for each
 * slot, and one ledger, which has the IDLE partitions. Before the writers seal, each claims its partitions:
 * the ledger is told, the seat that had them is recalled, the first batch is sealed, and the ledger told
 * that it is.
 *
 * It prints how many seals there were within SECONDS, and with those before (a second) and after; how many
 * attempts the server refused with an error or did not match; how long a seal took; the size of a document
 * that is sealed, at the end; how long the claims took, or 0; and the size of the ledger that was claimed in:
 *
 *     SEALS SECONDS ALL_SEALS ERRORS UNMATCHED P50_MS P99_MS BYTES CLAIM_P50_MS CLAIM_MAX_MS LEDGER_BYTES
 *
 * Errors: an update that fails is sent again, as tallyd does. At the end each slot must say as many
 *         seals as its writer was told; otherwise the program ends with a message.
 */
#include "bench/mongo/visits.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sysexits.h>
#include <time.h>

enum { SEATS = 0 /* for LEDGERS */ };
enum { SLOTS = 64, PARTITIONS = 4, SEALS_MAX = 200000, WARM_S = 1, TRIES = 1000, NAME_BYTES = 64 };
static const char collection_name[] = "ledger";
static const char witness[] =
    "three witnesses of a partition, as long as tallyd packs them: some ninety bytes in all of them.";

static pthread_barrier_t all_claimed;

struct writer {
    mongoc_client_pool_t *pool;
    const char *database;
    pthread_t thread;
    int slot, ledgers;
    double begin_s, seconds;
    int64_t seq, seals, errors, unmatched;
    int64_t epoch; /* of its claim of its partitions */
    double claim_ms;
    uint32_t ledger_bytes;
    float *took_ms;
};

static bool has_seat(const struct writer *w)
{
    return w->ledgers == SEATS;
}

static const char *member(char *to, int slot, int partition, const char *name)
{
    if (partition < 0)
        snprintf(to, NAME_BYTES, "writers.w%d.%s", slot, name);
    else
        snprintf(to, NAME_BYTES, "partitions.visits:%d.%s", slot * PARTITIONS + partition, name);
    return to;
}

static void append_position(bson_t *set, int slot, int partition, int64_t next)
{
    char name[NAME_BYTES];
    BSON_APPEND_INT64(set, member(name, slot, partition, "next"), next);
    BSON_APPEND_UTF8(set, member(name, slot, partition, "label"), "partition 17 of topic visits");
    BSON_APPEND_INT64(set, member(name, slot, partition, "tail_hash"), next * 2654435761);
    BSON_APPEND_INT64(set, member(name, slot, partition, "tail_len"), 1024);
    BSON_APPEND_INT64(set, member(name, slot, partition, "latest_ms"), 1767225600000 + next);
    BSON_APPEND_BINARY(set, member(name, slot, partition, "witnesses"), BSON_SUBTYPE_BINARY,
                       (const uint8_t *)witness, sizeof(witness) - 1);
}

static void append_open(bson_t *set, const struct writer *w, int64_t seq)
{
    char name[NAME_BYTES], partition[NAME_BYTES];
    bson_t open, ranges, one;
    BSON_APPEND_DOCUMENT_BEGIN(set, member(name, w->slot, -1, "open"), &open);
    BSON_APPEND_INT64(&open, "seq", seq);
    BSON_APPEND_INT64(&open, "prev", seq - 1);
    BSON_APPEND_INT64(&open, "inc", 1);
    BSON_APPEND_INT64(&open, "bytes", 100000);
    BSON_APPEND_ARRAY_BEGIN(&open, "ranges", &ranges);
    for (int i = 0; i < PARTITIONS; i++) {
        char index[12];
        snprintf(index, sizeof(index), "%d", i);
        snprintf(partition, sizeof(partition), "visits:%d", w->slot * PARTITIONS + i);
        BSON_APPEND_DOCUMENT_BEGIN(&ranges, index, &one);
        BSON_APPEND_UTF8(&one, "partition", partition);
        BSON_APPEND_INT64(&one, "from", seq - 1);
        BSON_APPEND_INT64(&one, "to", seq);
        bson_append_document_end(&ranges, &one);
    }
    bson_append_array_end(&open, &ranges);
    bson_append_document_end(set, &open);
}

/* The seat of a slot; `was`: the one that had the positions before the claim. */
static void append_seat_id(bson_t *to, int slot, bool was)
{
    char name[NAME_BYTES];
    snprintf(name, sizeof(name), "%s%d", was ? "before-w" : "w", slot);
    BSON_APPEND_UTF8(to, "_id", name);
}

static void append_id(bson_t *to, const struct writer *w)
{
    if (has_seat(w))
        append_seat_id(to, w->slot, false);
    else
        BSON_APPEND_INT32(to, "_id", w->slot % w->ledgers);
}

/* In a seat, no later claim may have recalled the position. */
static void compare_fence(bson_t *filter, int slot, int partition, int64_t epoch)
{
    char name[NAME_BYTES];
    bson_t not, above;
    BSON_APPEND_DOCUMENT_BEGIN(filter, member(name, slot, partition, "fence"), &not );
    BSON_APPEND_DOCUMENT_BEGIN(&not, "$not", &above);
    BSON_APPEND_INT64(&above, "$gt", epoch);
    bson_append_document_end(&not, &above);
    bson_append_document_end(filter, &not );
}

/* Adds the conditions of a partition. The first seal after a claim finds none in the seat. */
static void compare_partition(const struct writer *w, int partition, bson_t *filter, bson_t *set)
{
    char name[NAME_BYTES];
    bool is_first = has_seat(w) && w->seq == 0;
    if (!has_seat(w)) {
        BSON_APPEND_INT64(filter, member(name, w->slot, partition, "owner"), w->slot);
        BSON_APPEND_INT64(filter, member(name, w->slot, partition, "epoch"), 1);
    } else {
        compare_fence(filter, w->slot, partition, w->epoch);
        if (is_first)
            BSON_APPEND_INT64(set, member(name, w->slot, partition, "held"), w->epoch);
        else
            BSON_APPEND_INT64(filter, member(name, w->slot, partition, "held"), w->epoch);
    }
    if (!is_first)
        BSON_APPEND_INT64(filter, member(name, w->slot, partition, "next"), w->seq);
}

/* The slot's next seal: its numbers and positions are compared, and all of them move. */
static void prepare(const struct writer *w, bson_t *filter, bson_t *update)
{
    char name[NAME_BYTES];
    bson_t set;
    bson_init(filter);
    append_id(filter, w);
    BSON_APPEND_INT64(filter, "epoch", 1);
    BSON_APPEND_INT64(filter, member(name, w->slot, -1, "inc"), 1);
    BSON_APPEND_INT64(filter, member(name, w->slot, -1, "seq"), w->seq);
    bson_init(update);
    BSON_APPEND_DOCUMENT_BEGIN(update, "$set", &set);
    BSON_APPEND_INT64(&set, member(name, w->slot, -1, "seq"), w->seq + 1);
    BSON_APPEND_DATE_TIME(&set, member(name, w->slot, -1, "lease"), time(NULL) * 1000);
    for (int i = 0; i < PARTITIONS; i++) {
        compare_partition(w, i, filter, &set);
        append_position(&set, w->slot, i, w->seq + 1);
    }
    append_open(&set, w, w->seq + 1);
    bson_append_document_end(update, &set);
}

static void seal(struct writer *w, mongoc_collection_t *ledger)
{
    bson_t filter, update, reply;
    bson_error_t error;
    prepare(w, &filter, &update);
    double begun_s = visits_now_s();
    for (int tries = 1;; tries++) {
        bson_iter_t at;
        bool good = mongoc_collection_update_one(ledger, &filter, &update, NULL, &reply, &error);
        bool is_sealed =
            good && bson_iter_init_find(&at, &reply, "matchedCount") && bson_iter_as_int64(&at) == 1;
        bson_destroy(&reply);
        if (is_sealed)
            break;
        w->errors += !good;
        w->unmatched += good;
        if (tries == TRIES)
            visits_fail("a seal", good ? "it does not match" : error.message);
    }
    w->seq++;
    double now_s = visits_now_s();
    if (now_s >= w->begin_s && now_s < w->begin_s + w->seconds && w->seals < SEALS_MAX)
        w->took_ms[w->seals++] = (float)((now_s - begun_s) * 1000);
    bson_destroy(&update);
    bson_destroy(&filter);
}

/* One update by `_id`, whose reply is the document after it. */
static void modify(mongoc_collection_t *in, const bson_t *filter, const bson_t *update, bson_t *reply,
                   bson_t *found)
{
    bson_error_t error;
    bson_iter_t at;
    uint32_t len;
    const uint8_t *bytes;
    mongoc_find_and_modify_opts_t *opts = mongoc_find_and_modify_opts_new();
    mongoc_find_and_modify_opts_set_update(opts, update);
    mongoc_find_and_modify_opts_set_flags(opts, MONGOC_FIND_AND_MODIFY_RETURN_NEW);
    if (!mongoc_collection_find_and_modify_with_opts(in, filter, opts, reply, &error))
        visits_fail("a claim", error.message);
    if (!bson_iter_init_find(&at, reply, "value") || !BSON_ITER_HOLDS_DOCUMENT(&at))
        visits_fail("a claim", "its document is not there");
    bson_iter_document(&at, &len, &bytes);
    if (!bson_init_static(found, bytes, len))
        visits_fail("a claim", "no document");
    mongoc_find_and_modify_opts_destroy(opts);
}

static int64_t number_at(const bson_t *document, const char *path)
{
    bson_iter_t at, found;
    if (!bson_iter_init(&at, document) || !bson_iter_find_descendant(&at, path, &found))
        visits_fail(path, "it is missing");
    return bson_iter_as_int64(&found);
}

/* Tells the ledger whose the partitions are: raises their epochs, and adds this seat to those that may have
 * them. */
static void own(struct writer *w, mongoc_collection_t *ledger)
{
    char name[NAME_BYTES], seat[NAME_BYTES];
    bson_t update, part, reply, found, *filter = BCON_NEW("_id", BCON_UTF8(collection_name));
    snprintf(seat, sizeof(seat), "w%d", w->slot);
    bson_init(&update);
    BSON_APPEND_DOCUMENT_BEGIN(&update, "$inc", &part);
    for (int i = 0; i < PARTITIONS; i++)
        BSON_APPEND_INT64(&part, member(name, w->slot, i, "epoch"), 1);
    bson_append_document_end(&update, &part);
    BSON_APPEND_DOCUMENT_BEGIN(&update, "$set", &part);
    for (int i = 0; i < PARTITIONS; i++) {
        BSON_APPEND_INT64(&part, member(name, w->slot, i, "owner"), w->slot);
        BSON_APPEND_INT64(&part, member(name, w->slot, i, "claim"), 1);
    }
    bson_append_document_end(&update, &part);
    BSON_APPEND_DOCUMENT_BEGIN(&update, "$addToSet", &part);
    for (int i = 0; i < PARTITIONS; i++)
        BSON_APPEND_UTF8(&part, member(name, w->slot, i, "from"), seat);
    bson_append_document_end(&update, &part);
    modify(ledger, filter, &update, &reply, &found);
    w->epoch = number_at(&found, member(name, w->slot, 0, "epoch"));
    w->ledger_bytes = found.len;
    bson_destroy(&reply);
    bson_destroy(&update);
    bson_destroy(filter);
}

/* Raises the fences of the seat that had the partitions; its position is where this seat begins. */
static void recall(struct writer *w, mongoc_collection_t *ledger)
{
    char name[NAME_BYTES];
    bson_t filter, update, part, reply, found;
    bson_init(&filter);
    append_seat_id(&filter, w->slot, true);
    bson_init(&update);
    BSON_APPEND_DOCUMENT_BEGIN(&update, "$max", &part);
    for (int i = 0; i < PARTITIONS; i++)
        BSON_APPEND_INT64(&part, member(name, w->slot, i, "fence"), w->epoch);
    bson_append_document_end(&update, &part);
    modify(ledger, &filter, &update, &reply, &found);
    for (int i = 0; i < PARTITIONS; i++) {
        if (number_at(&found, member(name, w->slot, i, "fence")) != w->epoch ||
            number_at(&found, member(name, w->slot, i, "next")) != 0)
            visits_fail("a recall", "the seat is another's");
    }
    bson_destroy(&reply);
    bson_destroy(&update);
    bson_destroy(&filter);
}

/* The ledger forgets the seat that was recalled, if the claim still holds. */
static void settle(const struct writer *w, mongoc_collection_t *ledger)
{
    char name[NAME_BYTES], seat[NAME_BYTES];
    bson_t update, set, list, reply, found, *filter = BCON_NEW("_id", BCON_UTF8(collection_name));
    snprintf(seat, sizeof(seat), "w%d", w->slot);
    bson_init(&update);
    BSON_APPEND_DOCUMENT_BEGIN(&update, "$set", &set);
    for (int i = 0; i < PARTITIONS; i++) {
        BSON_APPEND_INT64(filter, member(name, w->slot, i, "epoch"), w->epoch);
        BSON_APPEND_INT64(filter, member(name, w->slot, i, "claim"), 1);
        BSON_APPEND_ARRAY_BEGIN(&set, member(name, w->slot, i, "from"), &list);
        BSON_APPEND_UTF8(&list, "0", seat);
        bson_append_array_end(&set, &list);
    }
    bson_append_document_end(&update, &set);
    modify(ledger, filter, &update, &reply, &found);
    bson_destroy(&reply);
    bson_destroy(&update);
    bson_destroy(filter);
}

static void claim(struct writer *w, mongoc_collection_t *ledger)
{
    double begun_s = visits_now_s();
    own(w, ledger);
    recall(w, ledger);
    seal(w, ledger);
    w->claim_ms = (visits_now_s() - begun_s) * 1000;
    settle(w, ledger);
}

static void *run(void *context)
{
    struct writer *w = context;
    mongoc_client_t *client = mongoc_client_pool_pop(w->pool);
    mongoc_collection_t *ledger = mongoc_client_get_collection(client, w->database, collection_name);
    if (has_seat(w)) {
        claim(w, ledger);
        pthread_barrier_wait(&all_claimed);
        w->begin_s = visits_now_s() + WARM_S;
    }
    while (visits_now_s() < w->begin_s + w->seconds)
        seal(w, ledger);
    mongoc_collection_destroy(ledger);
    mongoc_client_pool_push(w->pool, client);
    return NULL;
}

static void put(mongoc_collection_t *to, const bson_t *filter, const bson_t *set)
{
    bson_error_t error;
    bson_t *update = BCON_NEW("$set", BCON_DOCUMENT(set)), *upsert = BCON_NEW("upsert", BCON_BOOL(true));
    if (!mongoc_collection_update_one(to, filter, update, upsert, NULL, &error))
        visits_fail("the ledger", error.message);
    bson_destroy(upsert);
    bson_destroy(update);
}

/* The seat of a slot, which has no position yet; and the one that has them. */
static void make_seat(mongoc_collection_t *to, int slot, bool was)
{
    char name[NAME_BYTES];
    bson_t filter, set;
    bson_init(&filter);
    append_seat_id(&filter, slot, was);
    bson_init(&set);
    BSON_APPEND_INT64(&set, "epoch", 1);
    BSON_APPEND_INT64(&set, member(name, slot, -1, "inc"), 1);
    BSON_APPEND_INT64(&set, member(name, slot, -1, "seq"), 0);
    for (int i = 0; was && i < PARTITIONS; i++) {
        BSON_APPEND_INT64(&set, member(name, slot, i, "held"), 1);
        append_position(&set, slot, i, 0);
    }
    put(to, &filter, &set);
    bson_destroy(&set);
    bson_destroy(&filter);
}

/* The ledger beside the seats: whose the partitions are; and the positions of the idle ones. */
static void make_owners(mongoc_collection_t *to, int idle)
{
    char name[NAME_BYTES], seat[NAME_BYTES];
    bson_t set, list, *filter = BCON_NEW("_id", BCON_UTF8(collection_name));
    bson_init(&set);
    BSON_APPEND_INT64(&set, "epoch", 1);
    for (int i = 0; i < SLOTS * PARTITIONS + idle; i++) {
        int slot = i / PARTITIONS;
        BSON_APPEND_INT64(&set, member(name, slot, i % PARTITIONS, "owner"), slot);
        BSON_APPEND_INT64(&set, member(name, slot, i % PARTITIONS, "epoch"), 1);
        BSON_APPEND_INT64(&set, member(name, slot, i % PARTITIONS, "claim"), 1);
        if (slot >= SLOTS) {
            append_position(&set, slot, i % PARTITIONS, 0);
            continue;
        }
        snprintf(seat, sizeof(seat), "before-w%d", slot);
        BSON_APPEND_ARRAY_BEGIN(&set, member(name, slot, i % PARTITIONS, "from"), &list);
        BSON_APPEND_UTF8(&list, "0", seat);
        bson_append_array_end(&set, &list);
    }
    put(to, filter, &set);
    bson_destroy(&set);
    bson_destroy(filter);
}

/* A ledger with its slots and their partitions, and its share of the idle ones. */
static void make_ledger(mongoc_collection_t *to, int number, int ledgers, int idle)
{
    char name[NAME_BYTES];
    bson_t filter, set;
    bson_init(&filter);
    BSON_APPEND_INT32(&filter, "_id", number);
    bson_init(&set);
    BSON_APPEND_INT64(&set, "epoch", 1);
    for (int slot = number; slot < SLOTS; slot += ledgers) {
        BSON_APPEND_INT64(&set, member(name, slot, -1, "inc"), 1);
        BSON_APPEND_INT64(&set, member(name, slot, -1, "seq"), 0);
    }
    for (int i = 0; i < SLOTS * PARTITIONS + idle; i++) {
        int slot = i / PARTITIONS;
        if (slot % ledgers != number)
            continue;
        BSON_APPEND_INT64(&set, member(name, slot, i % PARTITIONS, "owner"), slot);
        BSON_APPEND_INT64(&set, member(name, slot, i % PARTITIONS, "epoch"), 1);
        append_position(&set, slot, i % PARTITIONS, 0);
    }
    put(to, &filter, &set);
    bson_destroy(&set);
    bson_destroy(&filter);
}

static void make(mongoc_collection_t *to, int ledgers, int idle)
{
    for (int i = 0; i < ledgers; i++)
        make_ledger(to, i, ledgers, idle);
    if (ledgers > 0)
        return;
    make_owners(to, idle);
    for (int i = 0; i < SLOTS; i++) {
        make_seat(to, i, true);
        make_seat(to, i, false);
    }
}

/* The size of the writer's ledger, which must have all its seals. */
static uint32_t check(mongoc_collection_t *from, const struct writer *w)
{
    char name[NAME_BYTES];
    const bson_t *found;
    bson_iter_t at, seq;
    bson_t filter;
    bson_init(&filter);
    append_id(&filter, w);
    mongoc_cursor_t *cursor = mongoc_collection_find_with_opts(from, &filter, NULL, NULL);
    if (!mongoc_cursor_next(cursor, &found))
        visits_fail("the ledger", "it is gone");
    uint32_t bytes = found->len;
    if (!bson_iter_init(&at, found) ||
        !bson_iter_find_descendant(&at, member(name, w->slot, -1, "seq"), &seq) ||
        bson_iter_as_int64(&seq) != w->seq)
        visits_fail(name, "it is not the number of acknowledged seals");
    mongoc_cursor_destroy(cursor);
    bson_destroy(&filter);
    return bytes;
}

static int compare(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

static void print_claims(const struct writer *writers, int count)
{
    float took_ms[SLOTS];
    for (int i = 0; i < count; i++)
        took_ms[i] = (float)writers[i].claim_ms;
    qsort(took_ms, (size_t)count, sizeof(*took_ms), compare);
    printf(" %.3f %.3f %u\n", (double)took_ms[count / 2], (double)took_ms[count - 1],
           writers[0].ledger_bytes);
}

static void print(const struct writer *writers, int count, uint32_t bytes)
{
    int64_t n = 0, sealed = 0, errors = 0, unmatched = 0;
    for (int i = 0; i < count; i++) {
        n += writers[i].seals;
        sealed += writers[i].seq;
        errors += writers[i].errors;
        unmatched += writers[i].unmatched;
    }
    float *all = malloc((size_t)(n + 1) * sizeof(*all)), *end = all;
    if (!all || n == 0)
        visits_fail("the seals", "there are none");
    for (int i = 0; i < count; i++) {
        for (int64_t k = 0; k < writers[i].seals; k++)
            *end++ = writers[i].took_ms[k];
    }
    qsort(all, (size_t)n, sizeof(*all), compare);
    printf("%" PRId64 " %g %" PRId64 " %" PRId64 " %" PRId64 " %.3f %.3f %u", n, writers[0].seconds, sealed,
           errors, unmatched, (double)all[n / 2], (double)all[n * 99 / 100], bytes);
    free(all);
    print_claims(writers, count);
}

int main(int argc, char **argv)
{
    static struct writer writers[SLOTS];
    char *database;
    if (argc != 5 && argc != 6) {
        fputs("usage: mongo_seals URL 0|WRITERS LEDGERS|seats IDLE [SECONDS]\n", stderr);
        return EX_USAGE;
    }
    int count = atoi(argv[2]), ledgers = strcmp(argv[3], "seats") == 0 ? SEATS : atoi(argv[3]);
    if (count < 0 || (count > 0) != (argc == 6) || count > SLOTS || ledgers < 0 || ledgers > SLOTS)
        visits_fail("WRITERS or LEDGERS", "out of range");
    mongoc_client_pool_t *pool = visits_pool(argv[1], &database);
    mongoc_client_t *client = mongoc_client_pool_pop(pool);
    mongoc_collection_t *collection = mongoc_client_get_collection(client, database, collection_name);
    if (count == 0)
        make(collection, ledgers, atoi(argv[4]));
    else if (pthread_barrier_init(&all_claimed, NULL, (unsigned)count) != 0)
        visits_fail("a barrier", "it cannot be made");
    double begin_s = visits_now_s() + WARM_S;
    for (int i = 0; i < count; i++) {
        writers[i] = (struct writer){.pool = pool,
                                     .database = database,
                                     .slot = i,
                                     .ledgers = ledgers,
                                     .begin_s = begin_s,
                                     .seconds = atof(argv[5]),
                                     .took_ms = malloc(SEALS_MAX * sizeof(float))};
        if (!writers[i].took_ms || pthread_create(&writers[i].thread, NULL, run, &writers[i]) != 0)
            visits_fail("a thread", "it cannot be made");
    }
    for (int i = 0; i < count; i++)
        pthread_join(writers[i].thread, NULL);
    uint32_t bytes = 0;
    for (int i = 0; i < count; i++)
        bytes = check(collection, &writers[i]);
    if (count > 0)
        print(writers, count, bytes);
    for (int i = 0; i < count; i++)
        free(writers[i].took_ms);
    mongoc_collection_destroy(collection);
    mongoc_client_pool_push(pool, client);
    free(database);
    mongoc_client_pool_destroy(pool);
    return EX_OK;
}
