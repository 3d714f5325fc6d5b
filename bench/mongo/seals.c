/* seals.c - how many seals a second the ledger takes: the compare-and-set of store/mongo/writer/commit.c by a
 * straight program with libmongoc, from many writers at once.
 *
 *     build/mongo_seals URL 0 LEDGERS IDLE                  makes the ledgers
 *     build/mongo_seals URL WRITERS LEDGERS IDLE SECONDS    seals, once, in ledgers so made
 *
 * SLOTS slots with PARTITIONS partitions each are divided among LEDGERS documents, and IDLE more
 * partitions that nobody seals. WRITERS of the slots seal as fast as they can, each over a connection of
 * its own: a seal moves all positions of its slot. It prints how many seals there were within SECONDS, and
 * with those before (a second) and after; how many attempts the server refused with an error or did not
 * match; how long a seal took; and a ledger's size at the end:
 *
 *     SEALS SECONDS ALL_SEALS ERRORS UNMATCHED P50_MS P99_MS BYTES
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

enum { SLOTS = 64, PARTITIONS = 4, SEALS_MAX = 200000, WARM_S = 1, TRIES = 1000, NAME_BYTES = 64 };
static const char collection_name[] = "ledger";
static const char witness[] =
    "three witnesses of a partition, as long as tallyd packs them: some ninety bytes in all of them.";

struct writer {
    mongoc_client_pool_t *pool;
    const char *database;
    pthread_t thread;
    int slot, ledgers;
    double begin_s, seconds;
    int64_t seq, seals, errors, unmatched;
    float *took_ms;
};

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

/* The slot's next seal: its numbers and positions are compared, and all of them move. */
static void prepare(const struct writer *w, bson_t *filter, bson_t *update)
{
    char name[NAME_BYTES];
    bson_t set;
    bson_init(filter);
    BSON_APPEND_INT32(filter, "_id", w->slot % w->ledgers);
    BSON_APPEND_INT64(filter, "epoch", 1);
    BSON_APPEND_INT64(filter, member(name, w->slot, -1, "inc"), 1);
    BSON_APPEND_INT64(filter, member(name, w->slot, -1, "seq"), w->seq);
    bson_init(update);
    BSON_APPEND_DOCUMENT_BEGIN(update, "$set", &set);
    BSON_APPEND_INT64(&set, member(name, w->slot, -1, "seq"), w->seq + 1);
    BSON_APPEND_DATE_TIME(&set, member(name, w->slot, -1, "lease"), time(NULL) * 1000);
    for (int i = 0; i < PARTITIONS; i++) {
        BSON_APPEND_INT64(filter, member(name, w->slot, i, "owner"), w->slot);
        BSON_APPEND_INT64(filter, member(name, w->slot, i, "epoch"), 1);
        BSON_APPEND_INT64(filter, member(name, w->slot, i, "next"), w->seq);
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

static void *run(void *context)
{
    struct writer *w = context;
    mongoc_client_t *client = mongoc_client_pool_pop(w->pool);
    mongoc_collection_t *ledger = mongoc_client_get_collection(client, w->database, collection_name);
    while (visits_now_s() < w->begin_s + w->seconds)
        seal(w, ledger);
    mongoc_collection_destroy(ledger);
    mongoc_client_pool_push(w->pool, client);
    return NULL;
}

/* A ledger with its slots and their partitions, and its share of the idle ones. */
static void make_ledger(mongoc_collection_t *to, int number, int ledgers, int idle)
{
    char name[NAME_BYTES];
    bson_error_t error;
    bson_t filter, update, set;
    bson_init(&filter);
    BSON_APPEND_INT32(&filter, "_id", number);
    bson_init(&update);
    BSON_APPEND_DOCUMENT_BEGIN(&update, "$set", &set);
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
    bson_append_document_end(&update, &set);
    bson_t *upsert = BCON_NEW("upsert", BCON_BOOL(true));
    if (!mongoc_collection_update_one(to, &filter, &update, upsert, NULL, &error))
        visits_fail("the ledger", error.message);
    bson_destroy(upsert);
    bson_destroy(&update);
    bson_destroy(&filter);
}

/* The size of the writer's ledger, which must have all its seals. */
static uint32_t check(mongoc_collection_t *from, const struct writer *w)
{
    char name[NAME_BYTES];
    const bson_t *found;
    bson_iter_t at, seq;
    bson_t *filter = BCON_NEW("_id", BCON_INT32(w->slot % w->ledgers));
    mongoc_cursor_t *cursor = mongoc_collection_find_with_opts(from, filter, NULL, NULL);
    if (!mongoc_cursor_next(cursor, &found))
        visits_fail("the ledger", "it is gone");
    uint32_t bytes = found->len;
    if (!bson_iter_init(&at, found) ||
        !bson_iter_find_descendant(&at, member(name, w->slot, -1, "seq"), &seq) ||
        bson_iter_as_int64(&seq) != w->seq)
        visits_fail(name, "it is not the number of acknowledged seals");
    mongoc_cursor_destroy(cursor);
    bson_destroy(filter);
    return bytes;
}

static int compare(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
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
    printf("%" PRId64 " %g %" PRId64 " %" PRId64 " %" PRId64 " %.3f %.3f %u\n", n, writers[0].seconds, sealed,
           errors, unmatched, (double)all[n / 2], (double)all[n * 99 / 100], bytes);
    free(all);
}

int main(int argc, char **argv)
{
    static struct writer writers[SLOTS];
    char *database;
    if (argc != 5 && argc != 6) {
        fputs("usage: mongo_seals URL 0|WRITERS LEDGERS IDLE [SECONDS]\n", stderr);
        return EX_USAGE;
    }
    int count = atoi(argv[2]), ledgers = atoi(argv[3]);
    if (count < 0 || (count > 0) != (argc == 6) || count > SLOTS || ledgers < 1 || ledgers > SLOTS)
        visits_fail("WRITERS or LEDGERS", "out of range");
    mongoc_client_pool_t *pool = visits_pool(argv[1], &database);
    mongoc_client_t *client = mongoc_client_pool_pop(pool);
    mongoc_collection_t *collection = mongoc_client_get_collection(client, database, collection_name);
    for (int i = 0; count == 0 && i < ledgers; i++)
        make_ledger(collection, i, ledgers, atoi(argv[4]));
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
