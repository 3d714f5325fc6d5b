/* naive.c - what the literature does: updates for every event, by a straight program with libmongoc.
 *
 *     build/mongo_naive URL CONNECTIONS SECONDS         as fast as it goes: of each event two upserts, of the
 *                                                       documents of its page's day and month
 *     build/mongo_naive URL CONNECTIONS SECONDS 0 bytes  the same, of hits and bytes
 *     build/mongo_naive URL CONNECTIONS SECONDS RATE    so many updates a second: of each event one upsert,
 * of the document of its page's minute, a counter for each second
 *
 * Each connection has a thread. It prints how many events were counted within SECONDS (a second has gone
 * before, unmeasured), and how many of the updates took how long:
 *
 *     EVENTS SECONDS
 *     MEAN_MS P50_MS P95_MS P99_MS MAX_MS
 */
#include "bench/mongo/visits.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <time.h>

enum { CONNECTIONS_MAX = 64, UPDATES_MAX = 1000000, ID_BYTES = 2048, WARM_S = 1, TRIES = 5 };

struct worker {
    mongoc_client_pool_t *pool;
    const char *database;
    pthread_t thread;
    uint64_t seed;
    double begin_s, seconds, every_s; /* every_s 0: as fast as it goes */
    bool with_bytes;
    float *took_ms;
    size_t updates, events;
};

/* "20101010/%2Fapache_pb.gif" */
static void write_id(char *id, const char *time, struct slice path)
{
    char *out = stpcpy(stpcpy(id, time), "/");
    for (size_t i = 0; i < path.len && out - id < ID_BYTES - 4; i++) {
        if (path.ptr[i] == '/' || path.ptr[i] == '%')
            out += sprintf(out, "%%%02X", (unsigned char)path.ptr[i]);
        else
            *out++ = path.ptr[i];
    }
    *out = '\0';
}

/* Two that make the same document at once: one is to try again. */
static void upsert(struct worker *w, mongoc_client_t *client, const char *collection, const bson_t *filter,
                   const bson_t *update)
{
    bson_error_t error;
    mongoc_collection_t *to = mongoc_client_get_collection(client, w->database, collection);
    bson_t *options = BCON_NEW("upsert", BCON_BOOL(true));
    double begun_s = visits_now_s();
    int tries = 0;
    while (!mongoc_collection_update_one(to, filter, update, options, NULL, &error)) {
        if (error.code != 11000 || ++tries == TRIES)
            visits_fail(collection, error.message);
    }
    double now_s = visits_now_s();
    if (now_s >= w->begin_s && w->updates < UPDATES_MAX)
        w->took_ms[w->updates++] = (float)((now_s - begun_s) * 1000);
    bson_destroy(options);
    mongoc_collection_destroy(to);
}

static void add(struct worker *w, mongoc_client_t *client, const char *collection, const char *id,
                int64_t date_s, struct slice path, bson_t *increments)
{
    bson_t filter, update;
    bson_init(&filter);
    BSON_APPEND_UTF8(&filter, "_id", id);
    BSON_APPEND_DATE_TIME(&filter, "metadata.date", date_s * 1000);
    bson_append_utf8(&filter, "metadata.path", -1, path.ptr, (int)path.len);
    bson_init(&update);
    BSON_APPEND_DOCUMENT(&update, "$inc", increments);
    upsert(w, client, collection, &filter, &update);
    bson_destroy(&update);
    bson_destroy(&filter);
    bson_destroy(increments);
}

/* A hit of a bucket, and its bytes. */
static void count(const struct worker *w, bson_t *increments, const char *bucket, int64_t bytes)
{
    char name[48];
    bson_append_int64(increments, bucket, -1, 1);
    snprintf(name, sizeof(name), "bytes.%s", bucket);
    if (w->with_bytes)
        bson_append_int64(increments, name, -1, bytes);
}

static void add_day(struct worker *w, mongoc_client_t *client, const struct tm *at, struct slice path,
                    int64_t bytes)
{
    char time[16], name[32], id[ID_BYTES];
    struct tm day = {.tm_year = at->tm_year, .tm_mon = at->tm_mon, .tm_mday = at->tm_mday};
    bson_t increments;
    bson_init(&increments);
    count(w, &increments, "daily", bytes);
    snprintf(name, sizeof(name), "hourly.%d", at->tm_hour);
    count(w, &increments, name, bytes);
    snprintf(name, sizeof(name), "minute.%d.%d", at->tm_hour, at->tm_min);
    count(w, &increments, name, bytes);
    strftime(time, sizeof(time), "%Y%m%d", at);
    write_id(id, time, path);
    add(w, client, "pages.day", id, timegm(&day), path, &increments);
}

static void add_month(struct worker *w, mongoc_client_t *client, const struct tm *at, struct slice path,
                      int64_t bytes)
{
    char time[16], name[32], id[ID_BYTES];
    struct tm month = {.tm_year = at->tm_year, .tm_mon = at->tm_mon, .tm_mday = 1};
    bson_t increments;
    bson_init(&increments);
    count(w, &increments, "total", bytes);
    snprintf(name, sizeof(name), "daily.%d", at->tm_mday);
    count(w, &increments, name, bytes);
    strftime(time, sizeof(time), "%Y%m", at);
    write_id(id, time, path);
    add(w, client, "pages.month", id, timegm(&month), path, &increments);
}

static void add_minute(struct worker *w, mongoc_client_t *client, const struct tm *at, struct slice path)
{
    char time[16], name[32], id[ID_BYTES];
    struct tm minute = *at;
    bson_t increments;
    minute.tm_sec = 0;
    bson_init(&increments);
    BSON_APPEND_INT64(&increments, "total", 1);
    snprintf(name, sizeof(name), "seconds.%d", at->tm_sec);
    BSON_APPEND_INT64(&increments, name, 1);
    strftime(time, sizeof(time), "%Y%m%d%H%M", at);
    write_id(id, time, path);
    add(w, client, "pages.minute", id, timegm(&minute), path, &increments);
}

static void sleep_until(double at_s)
{
    struct timespec at = {.tv_sec = (time_t)at_s, .tv_nsec = (long)((at_s - (double)(time_t)at_s) * 1e9)};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
}

static void *run(void *context)
{
    struct worker *w = context;
    struct visits *visits = visits_new(w->seed);
    mongoc_client_t *client = mongoc_client_pool_pop(w->pool);
    double due_s = visits_now_s();
    while (visits_now_s() < w->begin_s + w->seconds) {
        time_t now = time(NULL);
        struct tm at;
        gmtime_r(&now, &at);
        const struct event *visit = visits_next(visits, now);
        struct slice path = visit->field[FIELD_PATH];
        int64_t bytes = event_has(visit, FIELD_BYTES) ? visit->number[FIELD_BYTES] : 0;
        if (w->every_s > 0) {
            sleep_until(due_s += w->every_s);
            add_minute(w, client, &at, path);
        } else {
            add_day(w, client, &at, path, bytes);
            add_month(w, client, &at, path, bytes);
        }
        double now_s = visits_now_s();
        w->events += now_s >= w->begin_s && now_s < w->begin_s + w->seconds;
    }
    mongoc_client_pool_push(w->pool, client);
    visits_free(visits);
    return NULL;
}

static int compare(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

static void print(const struct worker *workers, int count)
{
    size_t n = 0, events = 0;
    double sum = 0;
    for (int i = 0; i < count; i++) {
        n += workers[i].updates;
        events += workers[i].events;
    }
    float *all = malloc((n + 1) * sizeof(*all));
    if (!all || n == 0)
        visits_fail("the updates", "there are none");
    for (int i = 0, at = 0; i < count; at += (int)workers[i].updates, i++)
        memcpy(all + at, workers[i].took_ms, workers[i].updates * sizeof(*all));
    for (size_t i = 0; i < n; i++)
        sum += (double)all[i];
    qsort(all, n, sizeof(*all), compare);
    printf("%zu %g\n", events, workers[0].seconds);
    printf("%.3f %.3f %.3f %.3f %.3f\n", sum / (double)n, (double)all[n / 2], (double)all[n * 95 / 100],
           (double)all[n * 99 / 100], (double)all[n - 1]);
    free(all);
}

int main(int argc, char **argv)
{
    static struct worker workers[CONNECTIONS_MAX];
    char *database;
    if (argc < 4) {
        fputs("usage: mongo_naive URL CONNECTIONS SECONDS [RATE [bytes]]\n", stderr);
        return EX_USAGE;
    }
    int count = atoi(argv[2]);
    double rate = argc > 4 ? atof(argv[4]) : 0, begin_s = visits_now_s() + WARM_S;
    if (count < 1 || count > CONNECTIONS_MAX)
        visits_fail("CONNECTIONS", "out of range");
    mongoc_client_pool_t *pool = visits_pool(argv[1], &database);
    for (int i = 0; i < count; i++) {
        workers[i] = (struct worker){.pool = pool,
                                     .database = database,
                                     .seed = (uint64_t)i + 1,
                                     .begin_s = begin_s,
                                     .seconds = atof(argv[3]),
                                     .every_s = rate > 0 ? count / rate : 0,
                                     .with_bytes = argc > 5,
                                     .took_ms = malloc(UPDATES_MAX * sizeof(float))};
        if (!workers[i].took_ms || pthread_create(&workers[i].thread, NULL, run, &workers[i]) != 0)
            visits_fail("a thread", "it cannot be made");
    }
    for (int i = 0; i < count; i++)
        pthread_join(workers[i].thread, NULL);
    print(workers, count);
    for (int i = 0; i < count; i++)
        free(workers[i].took_ms);
    free(database);
    mongoc_client_pool_destroy(pool);
    return EX_OK;
}
