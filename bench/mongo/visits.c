#include "bench/mongo/visits.h"

#include "bench/site.h"
#include "ingest/decode/clf.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <time.h>

struct visits {
    struct site *site;
    struct clf clf;
    struct event event;
    char line[SITE_LINE_BYTES_MAX];
};

_Noreturn void visits_fail(const char *what, const char *why)
{
    fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what, why);
    exit(EX_SOFTWARE);
}

struct visits *visits_new(uint64_t seed)
{
    struct visits *v = calloc(1, sizeof(*v));
    if (!v)
        visits_fail("calloc", "out of memory");
    v->site = site_new(seed);
    clf_init(&v->clf, CLF_COMBINED);
    return v;
}

void visits_free(struct visits *v)
{
    site_free(v->site);
    free(v);
}

const struct event *visits_next(struct visits *v, int64_t at_s)
{
    struct reject why;
    size_t length = site_encode(v->site, at_s, v->line);
    if (!decoder_decode(&v->clf.decoder, slice_of(v->line, length - 1), &v->event, &why))
        visits_fail("a line of the site", "it is no event");
    return &v->event;
}

mongoc_client_pool_t *visits_pool(const char *url, char **database)
{
    bson_error_t error;
    mongoc_init();
    mongoc_uri_t *uri = mongoc_uri_new_with_error(url, &error);
    if (!uri)
        visits_fail(url, error.message);
    if (!mongoc_uri_get_database(uri))
        visits_fail(url, "it names no database");
    *database = strdup(mongoc_uri_get_database(uri));
    mongoc_client_pool_t *pool = mongoc_client_pool_new_with_error(uri, &error);
    if (!pool)
        visits_fail(url, error.message);
    mongoc_client_pool_set_error_api(pool, MONGOC_ERROR_API_VERSION_2);
    mongoc_uri_destroy(uri);
    return pool;
}

double visits_now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}
