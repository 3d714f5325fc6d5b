/* chart.c - one page's last hour by the minute: the store's way, in turn with a bare find of the same
 * document.
 *
 *     build/mongo_chart URL REPORT PATH TIMES
 *
 * The bare find has the document's `_id` and the projection that the store has, too. It prints
 *
 *     STORE_US BARE_US DOCUMENTS HITS       the medians; what the store read for one chart, and how much it
 * found
 */
#include "base/civil.h"
#include "base/clock.h"
#include "bench/mongo/visits.h"
#include "store/backend/backend.h"
#include "store/reader.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

enum { ID_BYTES = 2048 };

struct chart {
    struct store *store;
    struct scan scan;
    mongoc_collection_t *collection;
    bson_t *filter, *options;
    int64_t hits;
    uint64_t documents;
};

static void add(void *context, uint32_t series, int64_t bucket_ms, const int64_t *values)
{
    struct chart *c = context;
    (void)series, (void)bucket_ms;
    c->hits += values[0];
}

/* Not into another day: that would be a chart of two documents. */
static void choose_hour(struct scan *scan)
{
    int64_t to_ms = span_floor(SPAN_MINUTE, clock_wall_ms(&clock_system)) + MINUTE_MS;
    int64_t day_ms = span_floor(SPAN_DAY, to_ms - 1);
    scan->from_ms = to_ms - HOUR_MS > day_ms ? to_ms - HOUR_MS : day_ms;
    scan->to_ms = to_ms;
}

static void open_store(struct chart *c, const char *url, const char *report, const char *path)
{
    struct err e;
    uint32_t series;
    bool found;
    c->store = store_open(url, STORE_READ, NULL, 0, &e);
    if (!c->store)
        visits_fail("the store", e.text);
    int index = store_find_report(c->store, slice_text(report));
    if (index < 0)
        visits_fail(report, "there is no such report");
    if (!store_series_find(c->store, (size_t)index, slice_text(path), &series, &found, &e) || !found)
        visits_fail(path, "there is no such series");
    c->scan = (struct scan){.report = (size_t)index,
                            .resolution = SPAN_MINUTE,
                            .series = {.kind = SERIES_ONE, .one = series},
                            .rows_max = 1000};
    choose_hour(&c->scan);
}

static void prepare_bare(struct chart *c, const char *path)
{
    char id[ID_BYTES], name[32];
    bson_t projection;
    struct civil civil = civil_from_ms(c->scan.from_ms);
    char *out = id + snprintf(id, sizeof(id), "%04d%02d%02d/", civil.year, civil.month, civil.day);
    for (; *path && out - id < ID_BYTES - 4; path++)
        out += sprintf(out, *path == '/' || *path == '%' ? "%%%02X" : "%c", (unsigned char)*path);
    c->filter = BCON_NEW("_id", BCON_UTF8(id));
    c->options = BCON_NEW("limit", BCON_INT64(1), "singleBatch", BCON_BOOL(true));
    BSON_APPEND_DOCUMENT_BEGIN(c->options, "projection", &projection);
    BSON_APPEND_BOOL(&projection, "_id", false);
    BSON_APPEND_BOOL(&projection, "metadata", true);
    for (int64_t at_ms = span_floor(SPAN_HOUR, c->scan.from_ms); at_ms < c->scan.to_ms; at_ms += HOUR_MS) {
        snprintf(name, sizeof(name), "minute.%d", (int)(at_ms / HOUR_MS % 24));
        BSON_APPEND_BOOL(&projection, name, true);
    }
    bson_append_document_end(c->options, &projection);
}

static double time_store(struct chart *c)
{
    struct scan_stats stats = {0};
    struct err e;
    double begun_s = visits_now_s();
    c->hits = 0;
    if (!store_scan(c->store, &c->scan, add, c, &stats, &e))
        visits_fail("the store", e.text);
    c->documents = stats.rows;
    return (visits_now_s() - begun_s) * 1e6;
}

static double time_bare(struct chart *c)
{
    const bson_t *document;
    bson_error_t error;
    double begun_s = visits_now_s();
    mongoc_cursor_t *cursor = mongoc_collection_find_with_opts(c->collection, c->filter, c->options, NULL);
    bool found = mongoc_cursor_next(cursor, &document);
    if (mongoc_cursor_error(cursor, &error))
        visits_fail("the bare find", error.message);
    mongoc_cursor_destroy(cursor);
    if (!found)
        visits_fail("the bare find", "there is no such document");
    return (visits_now_s() - begun_s) * 1e6;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    static struct chart c;
    char *database, name[256];
    if (argc != 5) {
        fputs("usage: mongo_chart URL REPORT PATH TIMES\n", stderr);
        return EX_USAGE;
    }
    size_t times = strtoull(argv[4], NULL, 10);
    double *took_us = calloc(2 * times + 1, sizeof(*took_us));
    if (times == 0 || !took_us)
        visits_fail("TIMES", "out of range");
    open_store(&c, argv[1], argv[2], argv[3]);
    mongoc_client_pool_t *pool = visits_pool(argv[1], &database);
    mongoc_client_t *client = mongoc_client_pool_pop(pool);
    snprintf(name, sizeof(name), "%s.day", argv[2]);
    c.collection = mongoc_client_get_collection(client, database, name);
    prepare_bare(&c, argv[3]);
    for (size_t i = 0; i < times; i++) {
        took_us[i] = time_store(&c);
        took_us[times + i] = time_bare(&c);
    }
    qsort(took_us, times, sizeof(*took_us), compare);
    qsort(took_us + times, times, sizeof(*took_us), compare);
    printf("%.1f %.1f %" PRIu64 " %" PRId64 "\n", took_us[times / 2], took_us[times + times / 2], c.documents,
           c.hits);
    bson_destroy(c.filter);
    bson_destroy(c.options);
    mongoc_collection_destroy(c.collection);
    mongoc_client_pool_push(pool, client);
    mongoc_client_pool_destroy(pool);
    store_close(c.store);
    free(took_us);
    free(database);
    return EX_OK;
}
