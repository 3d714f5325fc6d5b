#include "base/check.h"
#include "base/log.h"
#include "base/show.h"
#include "base/units.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "config/source_path.h"
#include "daemon/backfill.h"
#include "daemon/count/account.h"
#include "daemon/count/expire.h"
#include "daemon/service/stop.h"
#include "daemon/setup.h"
#include "ingest/file/family.h"
#include "store/backend/backend.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char usage[] =
    "usage: tallyd backfill [OPTIONS] REPORT [FILE…]\n"
    "\n"
    "Counts for a report what was counted before it was configured, from the files that are still there, up\n"
    "to exactly where it began by itself; also what came while it was not configured. No line is counted\n"
    "twice, and no other report changes. Killed at any moment, it goes on when it is run again.\n"
    "\n"
    "Files are known by their content, also renamed and packed. Without FILEs it looks for them where they\n"
    "were counted and where the configuration says, with their rotated ones. No daemon may count into the\n"
    "store meanwhile.\n"
    "\n"
    "  -c FILE            configuration with the report (default: built in)\n"
    "      --store URL    store to count into (default: sqlite:tallyd.db)\n"
    "      --decode STEPS steps with which the files were imported\n"
    "  -j, --threads N    threads (default: one per processor, at most 8)\n"
    "      --dry-run      list what the report did not count, change nothing\n"
    "  -q, --quiet        print only errors\n"
    "  -h, --help         this text\n"
    "\n"
    "Exit status: 0 the report has all that was counted; 66 some of it is in no file that was found.\n";

struct request {
    struct config *config;
    const char *name; /* of the report */
    char **paths;
    struct option_decode decode;
    long threads;
    bool dry_run, quiet;
    struct progress_bar bar;
    struct backfill backfill;
    struct backfill_plan plan;
};

static void tick(void *context, const struct pipeline_progress *progress)
{
    struct request *rq = context;
    progress_bar_show(&rq->bar, progress);
}

/* ---- finding the files */

/* Is it a partition of a topic, else a file? */
static bool is_topic(const struct position *p)
{
    return p->range.partition[0] != '\0';
}

/* Has the report all of the files, and with `topics` all of these, too? */
static bool is_whole(const struct backfill_plan *plan, bool topics)
{
    for (size_t i = 0; i < plan->stretch_count; i++) {
        const struct backfill_stretch *s = &plan->stretches[i];
        if (s->from < s->to && (topics || !is_topic(&plan->positions[s->position])))
            return false;
    }
    return true;
}

/* The path of a file that the report lacks a part of; NULL: it lacks nothing of this position, or it is no
 * file. */
static const char *lacking_path(const struct request *rq, size_t position)
{
    const struct position *p = &rq->plan.positions[position];
    return !is_topic(p) && backfill_left(&rq->plan, position) > 0 ? p->range.label : NULL;
}

/* The bytes of a regular file; 0: it is none. */
static int64_t size_of(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISREG(status.st_mode) ? status.st_size : 0;
}

static bool take_file(struct request *rq, const char *path, struct err *e)
{
    struct backfilled done;
    char lines[UNITS_NUMBER_BYTES], bytes[UNITS_NUMBER_BYTES], shown[SHOW_BYTES];
    progress_bar_init(&rq->bar, path, size_of(path), &clock_system, rq->quiet);
    bool good = backfill_file(&rq->backfill, path, &done, e);
    progress_bar_clear(&rq->bar);
    if (done.bytes > 0 && !rq->quiet)
        printf("%s: %s lines, %s bytes\n", show(path, shown), units_number(done.lines, lines),
               units_number(done.bytes, bytes));
    if (good && !done.is_known && rq->paths[0] != NULL)
        fprintf(stderr, "tallyd backfill: %s was never counted into this store\n", show(path, shown));
    return good;
}

/* A file that was found, not given: it may be another one, or have changed. */
static bool try_file(struct request *rq, const char *path, struct err *e)
{
    if (is_whole(&rq->plan, false) || size_of(path) == 0 || take_file(rq, path, e))
        return true;
    if (e->code != EX_DATAERR || pipeline_has_failed(rq->backfill.pipeline))
        return false;
    fprintf(stderr, "tallyd backfill: %s\n", e->text);
    return true;
}

/* A log and its rotated files. */
static bool try_log(struct request *rq, const char *path, struct err *e)
{
    struct family family;
    if (is_whole(&rq->plan, false))
        return true;
    bool good = try_file(rq, path, e) && family_list(&family, path, source_path_olddir(rq->config, path), e);
    if (!good)
        return false;
    for (size_t i = 0; good && i < family.count; i++)
        good = try_file(rq, family.files[i].path, e);
    family_fini(&family);
    return good;
}

/* Files where they were counted, then those of the configuration. */
static bool try_all(struct request *rq, struct err *e)
{
    struct listing files = {0};
    const char *path;
    bool good = true;
    for (size_t i = 0; good && i < rq->plan.position_count; i++) {
        if ((path = lacking_path(rq, i)) != NULL)
            good = try_file(rq, path, e);
    }
    good = good && (is_whole(&rq->plan, false) || source_path_list(rq->config, &files, e));
    for (size_t i = 0; good && i < files.file_count; i++)
        good = try_log(rq, files.files[i], e);
    for (size_t i = 0; good && i < rq->plan.position_count; i++) {
        /* A log that is not there now may have rotated files. */
        if ((path = lacking_path(rq, i)) != NULL && path[0] == '/' && size_of(path) == 0)
            good = try_log(rq, path, e);
    }
    listing_fini(&files);
    return good;
}

/* ---- telling */

/* Print what the report did not count. */
static void list_left(const struct request *rq, FILE *out)
{
    char from[UNITS_NUMBER_BYTES], to[UNITS_NUMBER_BYTES];
    for (size_t i = 0; i < rq->plan.stretch_count; i++) {
        const struct backfill_stretch *s = &rq->plan.stretches[i];
        const struct position *p = &rq->plan.positions[s->position];
        const struct range *r = &p->range;
        if (s->from < s->to && !is_topic(p))
            fprintf(out, "  %s: bytes %s to %s\n", r->label, units_number(s->from, from),
                    units_number(s->to, to));
        else if (s->from < s->to)
            fprintf(out, "  %s/%s: offsets %s to %s (topics are not backfilled)\n", r->source, r->partition,
                    units_number(s->from, from), units_number(s->to, to));
    }
}

static int say_result(const struct request *rq, const struct report *report)
{
    if (is_whole(&rq->plan, true)) {
        if (!rq->quiet)
            printf("%s~%d has counted all that was counted into this store\n", report->name,
                   report->generation);
        return EX_OK;
    }
    if (rq->dry_run) {
        printf("%s~%d did not count\n", report->name, report->generation);
        list_left(rq, stdout);
        return EX_OK;
    }
    fflush(stdout);
    fprintf(stderr, "tallyd backfill: %s~%d still lacks what is in no file that was found:\n", report->name,
            report->generation);
    list_left(rq, stderr);
    return EX_NOINPUT;
}

/* ---- the command */

static bool backfill(struct request *rq, struct store *st, struct err *e)
{
    struct pipeline_options options = setup_pipeline(rq->config, (size_t)rq->threads);
    uint64_t expired = 0;
    options.decode = setup_decode(rq->config, NULL, NULL);
    options.shard.raw_bytes_max = 0;
    options.backfills = true;
    options.stop = stop_catch();
    options.tick = tick;
    options.context = rq;
    rq->backfill = (struct backfill){.config = rq->config,
                                     .store = st,
                                     .pipeline = pipeline_new(st, st->reports, 1, &options),
                                     .plan = &rq->plan,
                                     .decode = rq->decode.text != NULL ? &rq->decode.steps : NULL,
                                     .stop = options.stop};
    bool good = true;
    for (char **path = rq->paths; good && *path != NULL; path++)
        good = take_file(rq, *path, e);
    if (good && rq->paths[0] == NULL)
        good = try_all(rq, e);
    pipeline_free(rq->backfill.pipeline);
    return good && expire_all(st, false, options.stop, rq->quiet, &expired, e);
}

/* Open the store with the report alone. A dry run takes the report as the store has it. */
static struct store *open_store(const struct request *rq, const struct report *report, struct err *e)
{
    const char *url = rq->config->store.url;
    if (!rq->dry_run)
        return store_open(url, STORE_WRITE, report, 1, e);
    return store_open(url, STORE_READ, NULL, 0, e);
}

static const struct report *find_report(const struct config *c, const char *name)
{
    for (size_t i = 0; i < c->report_count; i++) {
        if (strcmp(c->reports[i].name, name) == 0)
            return &c->reports[i];
    }
    return NULL;
}

static bool run(struct request *rq, struct store *st, const struct report *report, int *status, struct err *e)
{
    int n = store_find_report(st, slice_text(report->name));
    if (n < 0 || st->reports[n].generation != report->generation)
        return err_set(e, EX_NOINPUT,
                       "%s has no generation %d of report \"%s\" yet: it would be counted whole",
                       rq->config->store.url, report->generation, report->name);
    if (!backfill_plan(&rq->plan, st, (size_t)n, e) || (!rq->dry_run && !backfill(rq, st, e)))
        return false;
    *status = say_result(rq, &st->reports[n]);
    return true;
}

/* Backfill the report. Returns the exit status. */
static int backfill_report(struct request *rq)
{
    struct err e;
    int status = EX_OK;
    const struct report *report = find_report(rq->config, rq->name);
    struct store *st = NULL;
    bool good =
        report != NULL ||
        err_set(&e, EX_CONFIG, "found no report \"%s\" in the configuration: a report is configured first",
                rq->name);
    good = good && (st = open_store(rq, report, &e)) != NULL;
    good = good && (rq->dry_run || st->writer->backfills ||
                    err_set(&e, EX_UNAVAILABLE, "a report can be backfilled in an SQLite store only"));
    if (!good || !run(rq, st, report, &status, &e))
        status = options_complain("backfill", &e);
    backfill_plan_fini(&rq->plan);
    store_close(st);
    return status;
}

int cmd_backfill(int argc, char **argv)
{
    const char *file = NULL, *store_url = NULL;
    struct request rq = {0};
    const struct option_word words[] = {
        {"config", 'c', .text = &file},   {"store", .text = &store_url},
        {"decode", .decode = &rq.decode}, {"threads", 'j', .threads = &rq.threads},
        {"dry-run", .flag = &rq.dry_run}, {"quiet", 'q', .flag = &rq.quiet}};
    const struct command command = {"backfill", usage, words, COUNT_OF(words), &rq};
    int status = options_parse(&command, &argc, &argv);
    if (status != 0)
        return status == OPTIONS_DONE ? EX_OK : status;
    if (argc == 0)
        return options_bad_usage("backfill", "which REPORT?");
    rq.name = argv[0];
    rq.paths = argv + 1;
    rq.config = options_load_to_decode(file, store_url, &rq.decode.steps, &status);
    if (rq.config == NULL)
        return status;
    log_set_level(rq.config->log.level);
    status = backfill_report(&rq);
    config_free(rq.config);
    return status;
}
