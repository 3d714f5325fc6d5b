#include "base/check.h"
#include "base/mem.h"
#include "daemon/account.h"
#include "daemon/commands.h"
#include "daemon/options.h"
#include "daemon/source.h"
#include "daemon/verify.h"

#include <getopt.h>
#include <stdlib.h>

static const char usage[] =
    "usage: tallyd verify [OPTIONS] FILE…\n"
    "\n"
    "Reads the sources of a store again, counts them naively, and compares every bucket of every report and "
    "the\n"
    "books. Give it every file that was counted, under any name and packed or not; what was not given is "
    "named.\n"
    "\n"
    "  -c FILE          configuration (default: built in); limits and format as when the files were counted\n"
    "      --store URL  store to verify (default: sqlite:tallyd.db)\n"
    "      --source-id ID  the FILE was imported under this name\n"
    "  -h, --help       this text\n"
    "\n"
    "Exit status: 0 all equal, 1 differences (they are printed), 2 a source was not given.\n";

#define EXIT_DIFFERENCES 1
#define EXIT_NOT_GIVEN   2

struct known {
    struct position *positions;
    bool *given;
    size_t count, capacity;
};

static bool note_position(void *context, const struct position *p)
{
    struct known *k = context;
    k->positions = xgrow(k->positions, &k->capacity, k->count + 1, sizeof *k->positions);
    k->positions[k->count++] = *p;
    return true;
}

/* Which of the known sources is this file? */
static bool verify_file(struct verify *v, struct known *k, const char *path, const char *source_id,
                        struct err *e)
{
    struct source src;
    struct source_options options = {
        .line_max = (size_t)v->config->limits.line_max, .last_line = LAST_LINE_LEAVE, .source_id = source_id};
    if (!source_open(&src, path, v->store, &options, e))
        return false;
    struct range range = src.range;
    bool is_known = src.is_known;
    source_close(&src);
    for (size_t i = 0; is_known && i < k->count; i++) {
        if (strcmp(k->positions[i].range.source, range.source) != 0)
            continue;
        if (!k->given[i] && !verify_source(v, path, &k->positions[i], e))
            return false;
        k->given[i] = true;
        return true;
    }
    fprintf(stderr, "tallyd verify: %s was never counted into this store\n", path);
    return true;
}

/* Sources that were not given: nothing can be said of the buckets then. */
static int name_missing(const struct known *k)
{
    int missing = 0;
    for (size_t i = 0; i < k->count; i++) {
        if (k->given[i])
            continue;
        fprintf(stderr, "tallyd verify: not given: %s (%s), of which %lld bytes were counted\n",
                k->positions[i].range.label, k->positions[i].range.source,
                (long long)k->positions[i].range.to);
        missing++;
    }
    return missing;
}

static int verify_all(struct verify *v, char **paths, const char *source_id)
{
    struct known k = {0};
    struct err e = {0};
    char a[ACCOUNT_NUMBER_BYTES], b[ACCOUNT_NUMBER_BYTES], c[ACCOUNT_NUMBER_BYTES];
    bool good = store_positions(v->store, note_position, &k, &e);
    k.given = xcalloc(k.count, sizeof *k.given);
    for (; good && *paths != NULL; paths++)
        good = verify_file(v, &k, *paths, source_id, &e);
    int missing = good ? name_missing(&k) : 0;
    if (good && missing == 0)
        good = verify_buckets(v, &e);
    free(k.positions);
    free(k.given);
    if (!good) {
        fprintf(stderr, "tallyd verify: %s\n", e.text);
        return e.code;
    }
    if (missing > 0)
        return EXIT_NOT_GIVEN;
    printf("%s lines of %zu sources recounted, %s figures compared: %s differences\n",
           account_number((int64_t)v->lines, a), k.count, account_number((int64_t)v->compared, b),
           account_number((int64_t)v->differences, c));
    return v->differences > 0 ? EXIT_DIFFERENCES : 0;
}

static int verify_store(const struct config *config, char **paths, const char *source_id)
{
    struct err e;
    struct verify v;
    struct store *store = store_open(config->store.url, STORE_READ, NULL, 0, &e);
    if (store == NULL) {
        fprintf(stderr, "tallyd verify: %s\n", e.text);
        return e.code;
    }
    verify_init(&v, config, store, stdout);
    int status = verify_all(&v, paths, source_id);
    verify_fini(&v);
    store_close(store);
    return status;
}

int cmd_verify(int argc, char **argv)
{
    enum { OPT_STORE = 256, OPT_SOURCE_ID };
    static const struct option long_options[] = {{"config", required_argument, NULL, 'c'},
                                                 {"store", required_argument, NULL, OPT_STORE},
                                                 {"source-id", required_argument, NULL, OPT_SOURCE_ID},
                                                 {"help", no_argument, NULL, 'h'},
                                                 {NULL, 0, NULL, 0}};
    const char *file = NULL, *store_url = NULL, *source_id = NULL;
    for (int o; (o = getopt_long(argc, argv, "c:h", long_options, NULL)) != -1;) {
        switch (o) {
        case 'c':
            file = optarg;
            break;
        case OPT_STORE:
            store_url = optarg;
            break;
        case OPT_SOURCE_ID:
            source_id = optarg;
            break;
        case 'h':
            fputs(usage, stdout);
            return 0;
        default:
            fputs(usage, stderr);
            return EX_USAGE;
        }
    }
    if (optind == argc) {
        fputs("tallyd verify: which FILE? `tallyd verify --help` tells more\n", stderr);
        return EX_USAGE;
    }
    int status;
    struct config *config = options_load(file, store_url, &status);
    if (config == NULL)
        return status;
    status = verify_store(config, argv + optind, source_id);
    config_free(config);
    return status;
}
