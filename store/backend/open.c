#include "store/backend/backend.h"
#include "store/mem/mem.h"
#include "store/mongo/admin/admin.h"
#include "store/mongo/admin/backup.h"
#include "store/mongo/mongo.h"
#include "store/sqlite/sqlite.h"

#include <string.h>

static const char sqlite_prefix[] = "sqlite:";

static struct store *open_store(const char *url, enum store_mode mode, const struct store_options *options,
                                const struct report *reports, size_t report_count, struct err *e)
{
    const size_t prefix = strlen(sqlite_prefix);
    if (options->raw_count > 0 && !mongo_is_url(url)) {
        err_set(e, EX_CONFIG,
                "found raw events (sources.%s.raw) with a store that takes none, expected store.url to be "
                "mongodb://HOST/DATABASE, or raw: off",
                options->raws[options->raw_count - 1]->source);
        return NULL;
    }
    if (options->ttl && !mongo_is_url(url)) {
        err_set(e, EX_CONFIG,
                "found store.ttl: true with a store whose server ends nothing, expected store.url to be "
                "mongodb://HOST/DATABASE, or ttl: false");
        return NULL;
    }
    if (strcmp(url, "mem:") == 0 && mode == STORE_FILL) {
        err_set(e, EX_USAGE, "found the store mem:, expected sqlite:PATH or mongodb://HOST/DATABASE");
        return NULL;
    }
    if (strcmp(url, "mem:") == 0)
        return mem_open(mode, reports, report_count, e);
    if (strncmp(url, sqlite_prefix, prefix) == 0 && sqlite_is_path(slice_text(url + prefix))) {
        if (mode == STORE_FILL)
            return sqlite_open_fill(url + prefix, options->watermarks, reports, report_count, e);
        if (mode == STORE_WORK)
            mode = STORE_READ; /* batches do the work of jobs */
        return sqlite_open(url + prefix, mode, reports, report_count, e);
    }
    if (mongo_is_url(url))
        return mongo_open(url, mode, options, reports, report_count, e);
    err_set(e, EX_USAGE,
            "unknown store '%s': expected sqlite:PATH (of a file: no URI and not :memory:), "
            "mongodb://HOST/DATABASE or mem:",
            url);
    return NULL;
}

struct store *store_open(const char *url, enum store_mode mode, const struct report *reports,
                         size_t report_count, struct err *e)
{
    return store_open_with(url, mode, &(struct store_options){0}, reports, report_count, e);
}

struct store *store_open_with(const char *url, enum store_mode mode, const struct store_options *options,
                              const struct report *reports, size_t report_count, struct err *e)
{
    struct store_options given = *options;
    if (given.clock == NULL)
        given.clock = &clock_system;
    struct store *st = open_store(url, mode, &given, reports, report_count, e);
    if (st != NULL)
        st->clock = given.clock;
    return st;
}

static bool refuse(const char *url, struct err *e)
{
    return err_set(e, EX_USAGE, "found the store %s, expected sqlite:PATH or mongodb://HOST/DATABASE", url);
}

bool store_backup(const struct backup *b, struct text *said, struct err *e)
{
    if (strncmp(b->url, sqlite_prefix, strlen(sqlite_prefix)) == 0)
        return sqlite_backup(b->url + strlen(sqlite_prefix), b, said, e);
    return mongo_is_url(b->url) ? mongo_backup(b, said, e) : refuse(b->url, e);
}

bool store_upgrade(const char *url, bool dry, struct text *said, struct err *e)
{
    if (strncmp(url, sqlite_prefix, strlen(sqlite_prefix)) == 0)
        return sqlite_upgrade(url + strlen(sqlite_prefix), dry, said, e);
    return mongo_is_url(url) ? mongo_upgrade(url, dry, said, e) : refuse(url, e);
}

bool store_restore(const struct backup *b, struct text *said, struct err *e)
{
    if (strncmp(b->url, sqlite_prefix, strlen(sqlite_prefix)) == 0)
        return sqlite_restore(b->url + strlen(sqlite_prefix), b, said, e);
    return mongo_is_url(b->url) ? mongo_restore(b, said, e) : refuse(b->url, e);
}
