#include "tests/support/world.h"

#include "base/mem.h"
#include "store/mongo/wire/client.h"

#include <dirent.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct world_kind world_kinds[] = {
    {"mem", "mem", false, LAYOUT_DAY, {0}},
    {"sqlite", "sqlite", true, LAYOUT_DAY, {0}},
    {"mem of seconds", "mem", false, LAYOUT_MINUTE, {0}},
    {"mongodb", "mongodb", true, LAYOUT_DAY, {0}},
    /* These events make the next document, too. */
    {"mongodb of hours", "mongodb", true, LAYOUT_HOUR, {PREALLOC_CHANCE, 1, true}},
    {"mongodb of minutes", "mongodb", true, LAYOUT_MINUTE, {PREALLOC_CHANCE, 1, false}},
};
const struct world_kind *world_kind = &world_kinds[0];
const struct series_set world_every_series = {.kind = SERIES_ALL};

static const char *server(void)
{
    return getenv("TALLYD_TEST_MONGODB");
}

static bool is_wanted(const struct world_kind *kind)
{
    const char *only = getenv("TALLYD_TEST_KIND");
    if (strcmp(kind->scheme, "mongodb") != 0)
        return server() == NULL;
    return server() != NULL && (only == NULL || strcmp(only, kind->name) == 0);
}

size_t world_kind_count(void)
{
    static size_t count; /* of those that are wanted; they are moved to the front */
    if (count > 0)
        return count;
    for (size_t i = 0; i < COUNT_OF(world_kinds); i++) {
        if (is_wanted(&world_kinds[i]))
            world_kinds[count++] = world_kinds[i];
    }
    return count;
}

bool world_is_in_server(void)
{
    return strcmp(world_kind->scheme, "mongodb") == 0;
}

int64_t world_end_ms(void)
{
    return world_kind->layout == LAYOUT_MINUTE ? UINT32_MAX * (int64_t)SECOND_MS : CIVIL_END_MS;
}

static void must(bool ok, const struct err *e)
{
    if (!ok)
        fprintf(stderr, "the store says: %s\n", e->text);
    ASSERT(ok);
}

static int64_t mono_us(const struct clock *c)
{
    return clock_mono_us(&clock_system) + c->fake_mono_ms * 1000;
}

void world_pass(struct world *w, int64_t ms)
{
    w->clock.fake_mono_ms += ms;
}

static void open_store(struct world *w)
{
    const struct store_options options = {.clock = &w->clock,
                                          .validation = VALIDATION_ERROR, /* what is written must pass */
                                          .prealloc = world_kind->prealloc};
    struct err e;
    w->store = store_open_with(w->url, STORE_WRITE, &options, w->reports, FIXTURE_COUNT, &e);
    must(w->store != NULL, &e);
    w->batcher = batcher_new(w->reports, FIXTURE_COUNT, WORLD_SHARDS);
}

int world_setup(void **state)
{
    struct world *w = xcalloc(1, sizeof *w);
    w->clock = clock_system;
    w->clock.mono_us = mono_us;
    fixture_reports(w->reports);
    fixture_lay_out(w->reports, world_kind->layout);
    if (world_is_in_server()) {
        static int number;
        printf("mongodb: %s\n", server());
        snprintf(w->url, sizeof w->url, "%s/test_%d_%d", server(), getpid(), number++);
    } else if (world_kind->on_disk) {
        snprintf(w->dir, sizeof w->dir, "/tmp/tallyd-test-XXXXXX");
        ASSERT(mkdtemp(w->dir) != NULL);
        snprintf(w->url, sizeof w->url, "%s:%s/store.db", world_kind->scheme, w->dir);
    } else {
        snprintf(w->url, sizeof w->url, "%s:", world_kind->scheme);
    }
    open_store(w);
    *state = w;
    return 0;
}

static void remove_dir(const char *path)
{
    DIR *dir = opendir(path);
    ASSERT(dir != NULL);
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        if (entry->d_name[0] != '.')
            unlinkat(dirfd(dir), entry->d_name, 0);
    }
    closedir(dir);
    ASSERT(rmdir(path) == 0);
}

static void drop_database(const char *url)
{
    struct err e;
    bson_t *command = BCON_NEW("dropDatabase", BCON_INT32(1)), reply;
    struct mongo_client *client = mongo_client_open(url, true, 0, &e);
    must(client != NULL, &e);
    must(mongo_write(client, command, &reply, &e), &e);
    bson_destroy(&reply);
    bson_destroy(command);
    mongo_client_close(client);
}

int world_teardown(void **state)
{
    struct world *w = *state;
    store_close(w->store);
    batcher_free(w->batcher);
    fixture_free(w->reports);
    if (world_is_in_server())
        drop_database(w->url);
    else if (world_kind->on_disk)
        remove_dir(w->dir);
    free(w);
    return 0;
}

void world_reopen(struct world *w)
{
    store_close(w->store);
    batcher_free(w->batcher);
    open_store(w);
}

void world_apply(struct world *w, int64_t bytes)
{
    struct err e;
    must(store_apply(w->store, batcher_seal(w->batcher, "access", w->next, w->next + bytes), &e), &e);
    w->next += bytes;
    batcher_clear(w->batcher);
}

void world_hit(struct world *w, size_t report, const char *key, const char *at, int64_t bytes)
{
    batcher_add(w->batcher, 0, report, key, fixture_ms(at), (int64_t[]){1, bytes});
}

struct sum {
    size_t measure;
    int64_t value;
};

static void add_up(void *context, uint32_t series, int64_t bucket_ms, const int64_t *values)
{
    struct sum *sum = context;
    (void)series, (void)bucket_ms;
    sum->value = value_add(sum->value, values[sum->measure]);
}

int64_t world_sum(struct store *st, size_t report, enum span resolution, struct series_set series,
                  int64_t from_ms, int64_t to_ms, size_t measure)
{
    struct err e;
    struct scan_stats stats = {0};
    struct sum sum = {.measure = measure};
    struct scan scan = {report, resolution, from_ms, to_ms, series, UINT64_MAX, 0, NULL};
    must(store_scan(st, &scan, add_up, &sum, &stats, &e), &e);
    return sum.value;
}

struct series_set world_one_series(struct store *st, size_t report, const char *key)
{
    struct err e;
    bool found;
    struct series_set set = {.kind = SERIES_ONE};
    must(store_series_find(st, report, slice_text(key), &set.one, &found, &e), &e);
    ASSERT(found);
    return set;
}

struct wanted_book {
    const char *source, *report, *entry;
    int64_t value;
};

static bool take_book(void *context, const char *source, const char *partition, const char *report,
                      const char *entry, int64_t value)
{
    struct wanted_book *b = context;
    ASSERT(partition[0] == '\0');
    if (strcmp(b->source, source) == 0 && strcmp(b->report, report) == 0 && strcmp(b->entry, entry) == 0)
        b->value += value;
    return true;
}

int64_t world_book(struct store *st, const char *source, const char *report, const char *entry)
{
    struct err e;
    struct wanted_book b = {source, report, entry, 0};
    must(store_books(st, take_book, &b, &e), &e);
    return b.value;
}
