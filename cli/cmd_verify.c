#include "base/check.h"
#include "base/mem.h"
#include "base/show.h"
#include "base/units.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/uncounted.h"
#include "config/source_path.h"
#include "daemon/setup.h"
#include "daemon/source.h"
#include "ingest/file/family.h"
#include "store/backend/backend.h"
#include "verify/audit.h"
#include "verify/builds.h"
#include "verify/kafka.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char usage[] =
    "usage: tallyd verify [OPTIONS] [FILE…]\n"
    "\n"
    "Reads the sources of a store again, counts them naively, and compares every bucket of every report and\n"
    "the books. Topics and files come from the configuration. If FILEs are given, give every file that was\n"
    "counted, under any name, compressed or not. It lists sources that were not\n"
    "given and records that are gone, and compares the rest. It also lists lines and rotated files that "
    "were\n"
    "never counted, and followed files whose rest was lost.\n"
    "\n"
    "  -c FILE          configuration (default: built in); limits and decoding as when the files were "
    "counted\n"
    "      --store URL  store to verify (default: sqlite:tallyd.db)\n"
    "      --decode STEPS  steps with which the FILEs were imported\n"
    "      --source-id ID  name under which the FILE was imported\n"
    "      --store-only read no source: compare books, resolutions, and what else the store says twice\n"
    "  -h, --help       this text\n"
    "\n"
    "Exit status: 0 all equal; 1 differences, which are printed; 2 a source was not given, or --store-only\n"
    "could not judge everything, since daemons kept writing; 3 records of a topic are gone, perhaps\n"
    "before they were counted (compaction), and what is left agrees with the store; 4 lines or files are\n"
    "not counted, or lost. The first that applies of 1, 2, 3, 4.\n";

#define EXIT_DIFFERENCES 1
#define EXIT_NOT_GIVEN   2
#define EXIT_NOT_JUDGED  2
#define EXIT_EXPIRED     3
#define EXIT_NOT_COUNTED 4

struct seen {
    struct position *positions;
    struct verify_source *sources; /* the result for each */
    size_t count, capacity;
    struct uncounted uncounted;
};

static bool note_position(void *context, const struct position *p)
{
    struct seen *k = context;
    k->positions = xgrow(k->positions, &k->capacity, k->count + 1, sizeof *k->positions);
    k->positions[k->count++] = *p;
    return true;
}

/* The arguments. */
struct request {
    struct config *config;
    const char *source_id; /* NULL: the file is recognised by its content */
    bool store_only;
    struct option_decode decode;
    char **paths;
};

/* Find the known source that is this file, and recount it. *found: it was counted, or is empty. */
static bool find_file(struct verify *v, struct seen *k, const struct request *rq, const char *path,
                      bool *found, struct err *e)
{
    struct source src;
    struct source_options options = {.line_max = (size_t)v->config->limits.line_max,
                                     .last_line = LAST_LINE_LEAVE,
                                     .source_id = rq->source_id};
    if (!source_open(&src, path, v->store, &options, e))
        return false;
    struct range range = src.range;
    int64_t now_ms = clock_wall_ms(v->store->clock);
    bool is_known = src.is_known, is_plain = !src.is_empty && input_can_grow(src.in);
    *found = is_known || src.is_empty;
    source_close(&src);
    for (size_t i = 0; is_known && i < k->count; i++) {
        if (strcmp(k->positions[i].range.source, range.source) != 0)
            continue;
        const struct position *p = &k->positions[i];
        const struct decode *decode =
            rq->decode.text != NULL ? &rq->decode.steps : setup_decode(v->config, p->range.label, path);
        struct constants constants;
        setup_constants(v->config, p->range.label, path, &constants);
        bool has_more = false, good = k->sources[i].is != SOURCE_NOT_GIVEN ||
                                      verify_file(v, path, decode, &constants, p, &has_more, e);
        constants_fini(&constants);
        if (!good)
            return false;
        k->sources[i].is = SOURCE_WHOLE;
        if (is_plain)
            uncounted_add_tail(&k->uncounted, path, range.to, now_ms);
        else if (has_more)
            uncounted_add_packed(&k->uncounted, path, range.to, now_ms);
        return true;
    }
    return true;
}

static bool is_topic(const struct range *r)
{
    return strncmp(r->source, "kafka:", strlen("kafka:")) == 0;
}

static const char *why_not_given(const struct config *c, const struct range *r)
{
    struct stat status;
    if (is_topic(r))
        return "its topic is not in the configuration";
    for (size_t i = 0; i < c->source_count; i++) {
        if (source_path_match(&c->sources[i], r->label, NULL))
            return "no file of this log has it any more";
    }
    if (r->label[0] == '/' && stat(r->label, &status) != 0 && errno == ENOENT)
        return "it no longer exists";
    return "it is neither among the FILEs nor in the configuration";
}

/* Sources that were not recounted: note which events only their books have. */
static bool take_missing(struct verify *v, const struct seen *k, size_t *not_given, size_t *expired,
                         struct err *e)
{
    *not_given = *expired = 0;
    for (size_t i = 0; i < k->count; i++) {
        struct verify_source *source = &k->sources[i];
        *not_given += source->is == SOURCE_NOT_GIVEN;
        *expired += source->is == SOURCE_IN_PART || source->is == SOURCE_GONE;
        if (source->is != SOURCE_NOT_GIVEN)
            continue;
        snprintf(source->why, sizeof source->why, "not given: %s",
                 why_not_given(v->config, &k->positions[i].range));
        if (!verify_gone(v, &k->positions[i], &source->missing, e))
            return false;
    }
    return true;
}

/* Fields of lists and databases depend on their builds. */
static void print_data(const struct derive *d)
{
    struct text lines = {0};
    derive_print(d, "recounted by ", &lines);
    if (lines.len > 0)
        printf("%sif another build counted, fields that are made by these may differ\n", lines.ptr);
    text_fini(&lines);
}

/* Print a table of the sources that are not whole. */
static void list_missing(const struct seen *k)
{
    char a[UNITS_NUMBER_BYTES], b[UNITS_NUMBER_BYTES];
    printf("%-40s %15s %31s %15s  %s\n", "SOURCE", "COUNTED TO", "JUDGED", "MISSING EVENTS", "WHY");
    for (size_t i = 0; i < k->count; i++) {
        const struct verify_source *source = &k->sources[i];
        const struct range *r = &k->positions[i].range;
        char name[sizeof r->source + sizeof r->label + 4], judged[2 * UNITS_NUMBER_BYTES] = "nothing",
                                                                      shown[SHOW_BYTES];
        if (source->is == SOURCE_WHOLE)
            continue;
        snprintf(name, sizeof name, is_topic(r) ? "%s/%s" : "%s (%s)", is_topic(r) ? r->source : r->label,
                 is_topic(r) ? r->partition : r->source);
        if (source->is == SOURCE_IN_PART)
            snprintf(judged, sizeof judged, "%s to %s", units_number(source->from, a),
                     units_number(source->to, b));
        printf("%-40s %15s %31s %15s  %s\n", show(name, shown), units_number(r->to, a), judged,
               units_number(source->missing, b), source->why);
    }
}

static int say_result(const struct verify *v, const struct seen *k, size_t not_given, size_t expired)
{
    char a[UNITS_NUMBER_BYTES], b[UNITS_NUMBER_BYTES], c[UNITS_NUMBER_BYTES];
    if (not_given + expired > 0)
        list_missing(k);
    uncounted_print(&k->uncounted, stdout);
    printf("%s events of %zu sources recounted, %s figures compared", units_number((int64_t)v->events, a),
           k->count - not_given, units_number((int64_t)v->compared, b));
    if (not_given + expired > 0)
        printf(" (of %s of them some events are missing), %s not judged",
               units_number((int64_t)v->bounded, a), units_number((int64_t)v->unjudged, b));
    printf(": %s differences\n", units_number((int64_t)v->differences, c));
    if (v->differences > 0)
        print_data(&v->config->derive);
    if (v->differences > 0)
        return EXIT_DIFFERENCES;
    return not_given > 0                      ? EXIT_NOT_GIVEN
           : expired > 0                      ? EXIT_EXPIRED
           : uncounted_matters(&k->uncounted) ? EXIT_NOT_COUNTED
                                              : 0;
}

/* A log and its rotated files. Those that were never counted are noted. */
static bool find_log(struct verify *v, struct seen *k, const struct request *rq, const char *path,
                     struct err *e)
{
    struct stat status;
    struct family family;
    int64_t oldest_ns = INT64_MAX;
    bool found = true, is_there = stat(path, &status) == 0 && S_ISREG(status.st_mode),
         good = !is_there || find_file(v, k, rq, path, &found, e);
    if (!found)
        uncounted_add_tail(&k->uncounted, path, 0, clock_wall_ms(v->store->clock));
    else if (is_there && status.st_size > 0) /* a file that is written to after the log is no history */
        oldest_ns = clock_ns(status.st_mtim) + UNCOUNTED_AGE_MS * INT64_C(1000000);
    if (!good || !family_list(&family, path, source_path_olddir(rq->config, path), e))
        return false;
    bool *is_known = xcalloc(family.count + 1, sizeof *is_known);
    for (size_t i = 0; i < family.count && good; i++) {
        const struct family_file *f = &family.files[i];
        good = f->size == 0 || find_file(v, k, rq, f->path, &is_known[i], e) || e->code == EX_DATAERR;
        is_known[i] |= f->size == 0;
        if (is_known[i] && f->size > 0 && f->changed_ns < oldest_ns)
            oldest_ns = f->changed_ns;
    }
    for (size_t i = 0; i < family.count && good; i++) {
        const struct family_file *f = &family.files[i];
        if (!is_known[i])
            uncounted_add(&k->uncounted, f->changed_ns > oldest_ns ? UNCOUNTED_FILE : UNCOUNTED_HISTORY,
                          f->path, 0, f->size);
    }
    free(is_known);
    family_fini(&family);
    return good;
}

/* Is it the position of a log of the configuration that is not there now, but whose folder is? */
static bool is_missing_log(const struct config *c, const struct range *r)
{
    struct stat status;
    char folder[sizeof r->label];
    snprintf(folder, sizeof folder, "%s", r->label);
    char *slash = strrchr(folder, '/');
    if (slash == NULL || stat(r->label, &status) == 0)
        return false;
    slash[slash == folder] = '\0';
    bool is = false;
    for (size_t i = 0; i < c->source_count && !is; i++)
        is = source_path_match(&c->sources[i], r->label, NULL);
    return is && stat(folder, &status) == 0;
}

/* Without FILEs: the files of the configuration. */
static bool find_configured(struct verify *v, struct seen *k, const struct request *rq, struct err *e)
{
    struct listing files = {0};
    bool good = source_path_list(rq->config, &files, e);
    for (size_t i = 0; i < files.file_count && good; i++)
        good = find_log(v, k, rq, files.files[i], e);
    for (size_t i = 0; i < k->count && good; i++) { /* logs that are not there now may have rotated files */
        if (k->sources[i].is == SOURCE_NOT_GIVEN && is_missing_log(rq->config, &k->positions[i].range))
            good = find_log(v, k, rq, k->positions[i].range.label, e);
    }
    listing_fini(&files);
    return good;
}

static int verify_all(struct verify *v, const struct request *rq)
{
    struct seen k = {0};
    struct err e = {0};
    size_t not_given = 0, expired = 0;
    /* Read positions, books and buckets from one snapshot: a daemon may be counting. */
    bool good = store_hold(v->store, &e) && store_positions(v->store, note_position, &k, &e);
    k.sources = xcalloc(k.count, sizeof *k.sources);
    for (char **path = rq->paths; good && *path != NULL; path++) {
        bool found = true;
        good = find_file(v, &k, rq, *path, &found, &e);
        if (!found)
            uncounted_add(&k.uncounted, UNCOUNTED_FILE, *path, 0, -1);
    }
    good = good && (rq->paths[0] != NULL || find_configured(v, &k, rq, &e));
    if (good && setup_has_topics(v->config)) {
        struct kafka_options options = setup_kafka(v->config);
        good = verify_kafka(v, &options, k.positions, k.sources, k.count, &e);
    }
    good = good && take_missing(v, &k, &not_given, &expired, &e) &&
           uncounted_add_lost(&k.uncounted, v->store, &e) && verify_buckets(v, &e);
    const struct builds now = derive_builds(&v->config->derive);
    good = good && verify_print_builds(v->store, &now, v->differences > 0, stdout, &e);
    int status = good ? say_result(v, &k, not_given, expired) : options_complain("verify", &e);
    uncounted_fini(&k.uncounted);
    free(k.positions);
    free(k.sources);
    return status;
}

/* Audit the store alone, without sources. */
static int audit(const struct request *rq)
{
    struct err e;
    struct audit a;
    char figures[UNITS_NUMBER_BYTES], partitions[UNITS_NUMBER_BYTES], differences[UNITS_NUMBER_BYTES];
    struct store *store = store_open(rq->config->store.url, STORE_READ, NULL, 0, &e);
    if (store == NULL)
        return options_complain("verify", &e);
    audit_init(&a, store, stdout);
    const struct builds none = {0};
    bool good = (store->is_shared || store_hold(store, &e)) && audit_store(&a, &e) &&
                verify_print_builds(store, &none, false, stdout, &e);
    if (good)
        printf("%s figures of %zu reports and the books of %s partitions compared with each other: %s "
               "differences\n",
               units_number((int64_t)a.compared, figures), store->report_count,
               units_number((int64_t)a.partitions, partitions),
               units_number((int64_t)a.differences, differences));
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

static bool has_path(const struct config *c)
{
    bool has = false;
    for (size_t i = 0; i < c->source_count; i++)
        has |= c->sources[i].path_count > 0;
    return has;
}

int cmd_verify(int argc, char **argv)
{
    const char *file = NULL, *store_url = NULL;
    struct request rq = {0};
    const struct option_word words[] = {{"config", 'c', .text = &file},
                                        {"store", .text = &store_url},
                                        {"decode", .decode = &rq.decode},
                                        {"source-id", .text = &rq.source_id},
                                        {"store-only", .flag = &rq.store_only}};
    const struct command command = {"verify", usage, words, COUNT_OF(words), &rq};
    int status = options_parse(&command, &argc, &argv);
    if (status != 0)
        return status == OPTIONS_DONE ? EX_OK : status;
    rq.paths = argv;
    rq.config = options_load_to_decode(file, store_url, &rq.decode.steps, &status);
    if (rq.config == NULL)
        return status;
    if (rq.store_only && (argc > 0 || rq.decode.text != NULL || rq.source_id != NULL))
        status = options_bad_usage("verify", "--store-only takes no source");
    else if (rq.store_only)
        status = audit(&rq);
    else if (argc == 0 && !setup_has_topics(rq.config) && !has_path(rq.config))
        status = options_bad_usage("verify", "which FILE? The configuration names none");
    else
        status = verify_store(&rq);
    config_free(rq.config);
    return status;
}
