#include "base/check.h"
#include "base/mem.h"
#include "daemon/account.h"
#include "daemon/audit.h"
#include "daemon/commands.h"
#include "daemon/options.h"
#include "daemon/setup.h"
#include "daemon/source.h"
#include "daemon/verify_kafka.h"

#include <stdlib.h>

static const char usage[] =
    "usage: tallyd verify [OPTIONS] [FILE…]\n"
    "\n"
    "Reads the sources of a store again, counts them naively, and compares every bucket of every report and\n"
    "the books. Give it every file that was counted, under any name and packed or not; topics are those of\n"
    "the configuration. What was not given is named.\n"
    "\n"
    "  -c FILE          configuration (default: built in); limits and decoding as when the files were "
    "counted\n"
    "      --store URL  store to verify (default: sqlite:tallyd.db)\n"
    "      --decode STEPS  the FILEs were imported with this\n"
    "      --source-id ID  the FILE was imported under this name\n"
    "      --store-only needs no source: compares books, spans, and what else the store says twice\n"
    "  -h, --help       this text\n"
    "\n"
    "Exit status: 0 all equal, 1 differences (they are printed), 2 a source was not given, or --store-only\n"
    "could not judge all of it, since it was written all the while.\n";

#define EXIT_DIFFERENCES 1
#define EXIT_NOT_GIVEN   2
#define EXIT_NOT_JUDGED  2

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

/* What was asked for. */
struct request {
    struct config *config;
    const char *source_id; /* NULL: by its content */
    bool store_only;
    bool has_decode; /* else as configured */
    struct decode decode;
    char **paths;
};

/* Which of the known sources is this file? */
static bool find_file(struct verify *v, struct known *k, const struct request *rq, const char *path,
                      struct err *e)
{
    struct source src;
    struct source_options options = {.line_max = (size_t)v->config->limits.line_max,
                                     .last_line = LAST_LINE_LEAVE,
                                     .source_id = rq->source_id};
    if (!source_open(&src, path, v->store, &options, e))
        return false;
    struct range range = src.range;
    bool is_known = src.is_known;
    source_close(&src);
    for (size_t i = 0; is_known && i < k->count; i++) {
        if (strcmp(k->positions[i].range.source, range.source) != 0)
            continue;
        const struct position *p = &k->positions[i];
        const struct decode *decode =
            rq->has_decode ? &rq->decode : setup_decode(v->config, path, p->range.label);
        if (!k->given[i] && !verify_file(v, path, decode, p, e))
            return false;
        k->given[i] = true;
        return true;
    }
    fprintf(stderr, "tallyd verify: %s was never counted into this store\n", path);
    return true;
}

static bool is_topic(const struct range *r)
{
    return strncmp(r->source, "kafka:", strlen("kafka:")) == 0;
}

/* Sources that were not given: nothing can be said of the buckets then. */
static int name_missing(const struct known *k)
{
    int missing = 0;
    for (size_t i = 0; i < k->count; i++) {
        if (k->given[i])
            continue;
        const struct range *r = &k->positions[i].range;
        if (is_topic(r))
            fprintf(stderr, "tallyd verify: not given: %s, partition %s, counted up to offset %lld\n",
                    r->source, r->partition, (long long)r->to);
        else
            fprintf(stderr, "tallyd verify: not given: %s (%s), of which %lld bytes were counted\n", r->label,
                    r->source, (long long)r->to);
        missing++;
    }
    return missing;
}

static int verify_all(struct verify *v, const struct request *rq)
{
    struct known k = {0};
    struct err e = {0};
    char a[ACCOUNT_NUMBER_BYTES], b[ACCOUNT_NUMBER_BYTES], c[ACCOUNT_NUMBER_BYTES];
    /* Positions, books and buckets must be of one moment: a daemon may be counting. */
    bool good = store_hold(v->store, &e) && store_positions(v->store, note_position, &k, &e);
    k.given = xcalloc(k.count, sizeof *k.given);
    for (char **path = rq->paths; good && *path != NULL; path++)
        good = find_file(v, &k, rq, *path, &e);
    if (good && setup_has_topics(v->config)) {
        struct kafka_options options = setup_kafka(v->config);
        good = verify_kafka(v, &options, k.positions, k.given, k.count, &e);
    }
    int missing = good ? name_missing(&k) : 0;
    if (good && missing == 0)
        good = verify_buckets(v, &e);
    free(k.positions);
    free(k.given);
    if (!good)
        return options_complain("verify", &e);
    if (missing > 0)
        return EXIT_NOT_GIVEN;
    printf("%s events of %zu sources recounted, %s figures compared: %s differences\n",
           account_number((int64_t)v->events, a), k.count, account_number((int64_t)v->compared, b),
           account_number((int64_t)v->differences, c));
    return v->differences > 0 ? EXIT_DIFFERENCES : 0;
}

/* No source, only the store. */
static int audit(const struct request *rq)
{
    struct err e;
    struct audit a;
    char figures[ACCOUNT_NUMBER_BYTES], partitions[ACCOUNT_NUMBER_BYTES], differences[ACCOUNT_NUMBER_BYTES];
    struct store *store = store_open(rq->config->store.url, STORE_READ, NULL, 0, &e);
    if (store == NULL)
        return options_complain("verify", &e);
    audit_init(&a, store, stdout);
    bool good = (store->is_shared || store_hold(store, &e)) && audit_store(&a, &e);
    if (good)
        printf("%s figures of %zu reports and the books of %s partitions compared with each other: %s "
               "differences\n",
               account_number((int64_t)a.compared, figures), store->report_count,
               account_number((int64_t)a.partitions, partitions),
               account_number((int64_t)a.differences, differences));
    int status = good ? 0 : options_complain("verify", &e);
    if (a.differences > 0)
        status = EXIT_DIFFERENCES;
    else if (good && a.unjudged > 0)
        status = EXIT_NOT_JUDGED;
    audit_fini(&a);
    store_close(store);
    return status;
}

static int verify_store(const struct request *rq)
{
    const struct config *config = rq->config;
    struct err e;
    struct verify v;
    struct store *store = store_open(config->store.url, STORE_READ, NULL, 0, &e);
    if (store == NULL)
        return options_complain("verify", &e);
    verify_init(&v, config, store, stdout);
    int status = verify_all(&v, rq);
    verify_fini(&v);
    store_close(store);
    return status;
}

static bool take_decode(void *context, const char *name, const char *value, struct err *e)
{
    struct request *rq = context;
    rq->has_decode = true;
    return setup_parse_decode(value, &rq->decode, e) || err_prefix(e, "--%s", name);
}

int cmd_verify(int argc, char **argv)
{
    const char *file = NULL, *store_url = NULL;
    struct request rq = {0};
    const struct option_word words[] = {{"config", 'c', .text = &file},
                                        {"store", .text = &store_url},
                                        {"decode", .take = take_decode},
                                        {"source-id", .text = &rq.source_id},
                                        {"store-only", .flag = &rq.store_only}};
    const struct command command = {"verify", usage, words, COUNT_OF(words), &rq};
    int status = options_parse(&command, &argc, &argv);
    if (status != 0)
        return status == OPTIONS_DONE ? EX_OK : status;
    rq.paths = argv;
    rq.config = options_load(file, store_url, &status);
    if (rq.config == NULL)
        return status;
    if (rq.store_only && (argc > 0 || rq.has_decode || rq.source_id != NULL))
        status = options_bad_usage("verify", "--store-only takes no source");
    else if (rq.store_only)
        status = audit(&rq);
    else if (argc == 0 && !setup_has_topics(rq.config))
        status = options_bad_usage("verify", "which FILE?");
    else
        status = verify_store(&rq);
    config_free(rq.config);
    return status;
}
