#include "base/check.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/show.h"
#include "base/units.h"
#include "cli/commands.h"
#include "cli/hand_over.h"
#include "cli/options.h"
#include "cli/replace.h"
#include "config/source_path.h"
#include "daemon/backfill.h"
#include "daemon/count/account.h"
#include "daemon/count/expire.h"
#include "daemon/file/handover.h"
#include "daemon/service/stop.h"
#include "daemon/setup.h"
#include "daemon/topic/refill.h"
#include "ingest/file/family.h"
#include "query/unknown.h"
#include "store/backend/backend.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char usage[] =
    "usage: tallyd backfill [OPTIONS] REPORT [FILE…]\n"
    "       tallyd backfill [OPTIONS] REPORT --compare OLD | --take OLD [--from --to] [--drop-old]\n"
    "\n"
    "Counts for a report what was counted before it was configured, from what files and topics still hold,\n"
    "up to exactly where it began by itself; also what came while it was not configured. No line is\n"
    "counted twice, and no other report changes. Killed at any moment, it goes on when it is run again.\n"
    "\n"
    "Files are known by their content, also renamed and packed. Without FILEs it looks for them where they\n"
    "were counted and where the configuration says, with their rotated ones; then it reads the topics of\n"
    "the configuration, from their first record on. If a daemon runs on an SQLite store, it counts them,\n"
    "beside its own sources, by its own configuration and with one thread. In MongoDB it counts beside the\n"
    "daemons, by itself.\n"
    "\n"
    "  -c FILE            configuration with the report (default: built in)\n"
    "      --store URL    store to count into (default: sqlite:tallyd.db)\n"
    "      --decode STEPS steps with which the files were imported\n"
    "  -j, --threads N    threads (default: one per processor, at most 8)\n"
    "      --from TIME    count only events of this time or later, by their own time\n"
    "      --to TIME      count only events before this time\n"
    "      --compare OLD  count nothing; print by day where the report differs from the report OLD\n"
    "      --take OLD     count nothing; make the report the newest generation of OLD, in one step.\n"
    "                     It must have all that OLD counted. With --from and --to: of these times, and\n"
    "                     before and after it has OLD's counts\n"
    "      --drop-old     with --take: drop the generation that was the newest\n"
    "      --force        with --take: although it lacks what is nowhere any more\n"
    "      --dry-run      list what the report did not count, change nothing\n"
    "  -q, --quiet        print only errors\n"
    "  -h, --help         this text\n"
    "\n"
    "Exit status: 0 the report has all that was counted; 66 some of it is nowhere any more.\n";

struct request {
    struct config *config;
    const char *name; /* of the report */
    char **paths;
    struct option_decode decode;
    long threads;
    bool dry_run, quiet;
    struct backfill_times only; /* of --from and --to */
    struct store *store;
    size_t report; /* index in the store */
    bool is_new;   /* with dry_run: the store does not have the report yet */
    struct progress_bar bar;
    bool has_daemon; /* a daemon writes the store: it counts, and `backfill` is not used */
    struct hand_over hand_over;
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

/* Has the report all of the files, and with `topics` all of these, too, that were counted at all? */
static bool is_whole(const struct backfill_plan *plan, bool topics)
{
    for (size_t i = 0; i < plan->stretch_count; i++) {
        const struct backfill_stretch *s = &plan->stretches[i];
        if (s->from < s->to && s->begun == 0 && (topics || !is_topic(&plan->positions[s->position])))
            return false;
    }
    return true;
}

/* Paths, copied: the plan changes while they are tried. */
struct paths {
    char **list;
    size_t count, capacity;
};

/* Get the paths under which the files were counted that the report lacks a part of. */
static struct paths lacking_paths(const struct backfill_plan *plan)
{
    struct paths paths = {0};
    for (size_t i = 0; i < plan->position_count; i++) {
        if (is_topic(&plan->positions[i]) || backfill_left(plan, i) == 0)
            continue;
        paths.list = xgrow(paths.list, &paths.capacity, paths.count + 1, sizeof *paths.list);
        paths.list[paths.count++] = xstrdup(plan->positions[i].range.label);
    }
    return paths;
}

static void paths_fini(struct paths *paths)
{
    for (size_t i = 0; i < paths->count; i++)
        free(paths->list[i]);
    free(paths->list);
}

/* The bytes of a regular file; 0: it is none. */
static int64_t size_of(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISREG(status.st_mode) ? status.st_size : 0;
}

static bool count_here(struct request *rq, const char *path, struct backfilled *done, struct err *e)
{
    progress_bar_init(&rq->bar, path, size_of(path), &clock_system, rq->quiet);
    bool good = backfill_file(&rq->backfill, path, -1, done, e);
    progress_bar_clear(&rq->bar);
    return good;
}

/* Have the daemon count the file, then look what is left. */
static bool count_by_daemon(struct request *rq, const char *path, struct backfilled *done, struct err *e)
{
    struct handover_reply *rp = xcalloc(1, sizeof *rp);
    int fd = hand_over_connect(&rq->hand_over);
    bool good = hand_over_file(&rq->hand_over, fd, path, rp, e);
    *done = (struct backfilled){
        .is_known = rp->source[0] != '\0', .bytes = good ? rp->offset : 0, .lines = rp->consumed};
    free(rp);
    backfill_plan_fini(&rq->plan);
    return good && backfill_plan(&rq->plan, rq->store, rq->report, &rq->only, e);
}

static bool take_file(struct request *rq, const char *path, struct err *e)
{
    struct backfilled done;
    char lines[UNITS_NUMBER_BYTES], bytes[UNITS_NUMBER_BYTES], shown[SHOW_BYTES];
    bool good = (rq->has_daemon ? count_by_daemon : count_here)(rq, path, &done, e);
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
    if (e->code != EX_DATAERR || (!rq->has_daemon && pipeline_has_failed(rq->backfill.pipeline)))
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
    struct paths counted = lacking_paths(&rq->plan);
    bool good = true;
    for (size_t i = 0; good && i < counted.count; i++)
        good = try_file(rq, counted.list[i], e);
    paths_fini(&counted);
    good = good && (is_whole(&rq->plan, false) || source_path_list(rq->config, &files, e));
    for (size_t i = 0; good && i < files.file_count; i++)
        good = try_log(rq, files.files[i], e);
    counted = lacking_paths(&rq->plan);
    for (size_t i = 0; good && i < counted.count; i++) {
        /* A log that is not there now may have rotated files. */
        const char *path = counted.list[i];
        if (path[0] == '/' && size_of(path) == 0)
            good = try_log(rq, path, e);
    }
    paths_fini(&counted);
    listing_fini(&files);
    return good;
}

/* ---- topics */

/* Apply a batch of topics as the store's writer. */
static bool apply(void *context, const struct batch *batch, struct err *e)
{
    struct writer *w = context;
    return writer_apply(w, batch, NULL, NULL, e) && (!w->store->is_shared || writer_housekeep(w, e)) &&
           writer_expire(w, e);
}

static bool may_go_on(void *context, const struct pipeline_progress *progress)
{
    struct request *rq = context;
    progress_bar_show(&rq->bar, progress);
    return !atomic_load(rq->hand_over.stop);
}

static bool refill_here(struct request *rq, struct text *said, struct err *e)
{
    const struct pipeline_options options = setup_pipeline(rq->config, 1);
    _Atomic int64_t late_ms = 0;
    struct writer w = {
        .store = rq->store, .clock = options.clock, .give_up = rq->hand_over.stop, .late_ms = &late_ms};
    struct refill refill = {.config = rq->config,
                            .report = rq->store->reports,
                            .plan = &rq->plan,
                            .shard = options.shard,
                            .shard_number = PIPELINE_THREADS_MAX,
                            .batch_ms = options.stripe_ms,
                            .apply = apply,
                            .store = &w,
                            .go_on = may_go_on,
                            .context = rq,
                            .said = said};
    refill.shard.late_ms = &late_ms;
    refill.shard.raw_bytes_max = 0;
    progress_bar_init(&rq->bar, "topics", refill_left(&rq->plan), &clock_system, rq->quiet);
    bool good = writer_expire(&w, e) && refill_topics(&refill, e);
    progress_bar_clear(&rq->bar);
    writer_fini(&w);
    return good;
}

static bool refill_by_daemon(struct request *rq, struct text *said, struct err *e)
{
    struct handover_reply *rp = xcalloc(1, sizeof *rp);
    bool good = hand_over_topics(&rq->hand_over, hand_over_connect(&rq->hand_over), rp, e);
    text_puts(said, rp->text);
    free(rp);
    return good;
}

/* Count what topics still hold, then look what is left. */
static bool take_topics(struct request *rq, struct err *e)
{
    struct text said = {0};
    if (rq->paths[0] != NULL || refill_left(&rq->plan) == 0)
        return true;
    bool good = (rq->has_daemon ? refill_by_daemon : refill_here)(rq, &said, e);
    if (!rq->quiet && said.len > 0)
        printf("%.*s", SLICE_ARGS(text_slice(&said)));
    text_fini(&said);
    backfill_plan_fini(&rq->plan);
    return good && backfill_plan(&rq->plan, rq->store, rq->report, &rq->only, e);
}

/* ---- telling */

/* Print what the report did not count. `dry`: and what it may count besides. */
static void list_left(const struct request *rq, bool dry, FILE *out)
{
    char from[UNITS_NUMBER_BYTES], to[UNITS_NUMBER_BYTES];
    for (size_t i = 0; i < rq->plan.stretch_count; i++) {
        const struct backfill_stretch *s = &rq->plan.stretches[i];
        const struct position *p = &rq->plan.positions[s->position];
        const struct range *r = &p->range;
        if (s->from == s->to || (s->begun > 0 && !dry))
            continue;
        units_number(s->from, from);
        units_number(s->to, to);
        if (!is_topic(p))
            fprintf(out, "  %s: bytes %s to %s\n", r->label, from, to);
        else
            fprintf(out, "  %s/%s: offsets %s to %s%s\n", r->source, r->partition, from, to,
                    s->begun > 0 ? " (as far as the topic has them; no report counted them)" : "");
    }
}

static int say_result(const struct request *rq, const struct report *report)
{
    if (is_whole(&rq->plan, true) && !(rq->dry_run && refill_left(&rq->plan) > 0)) {
        if (!rq->quiet)
            printf("%s~%d has counted all %sthat was counted into this store\n", report->name,
                   report->generation, backfill_has_all(&rq->only) ? "" : "of these times ");
        return EX_OK;
    }
    if (rq->dry_run) {
        printf("%s~%d did not count\n", report->name, report->generation);
        list_left(rq, true, stdout);
        return EX_OK;
    }
    fflush(stdout);
    fprintf(stderr, "tallyd backfill: %s~%d still lacks what no source was found to hold:\n", report->name,
            report->generation);
    list_left(rq, false, stderr);
    return EX_NOINPUT;
}

/* ---- the command */

static bool take_files(struct request *rq, struct err *e)
{
    bool good = true;
    for (char **path = rq->paths; good && *path != NULL; path++)
        good = take_file(rq, *path, e);
    return good && (rq->paths[0] != NULL || try_all(rq, e));
}

/* Backfill as the store's writer. */
static bool backfill(struct request *rq, struct err *e)
{
    struct store *st = rq->store;
    struct pipeline_options options = setup_pipeline(rq->config, (size_t)rq->threads);
    uint64_t expired = 0;
    options.decode = setup_decode(rq->config, NULL, NULL);
    options.shard.raw_bytes_max = 0;
    options.backfills = true;
    options.housekeep = st->is_shared; /* a server has batch logs to delete */
    options.only = rq->only;
    options.stop = stop_catch();
    options.tick = tick;
    options.context = rq;
    rq->backfill = (struct backfill){.config = rq->config,
                                     .store = st,
                                     .pipeline = pipeline_new(st, st->reports, 1, &options),
                                     .plan = &rq->plan,
                                     .decode = rq->decode.text != NULL ? &rq->decode.steps : NULL,
                                     .stop = options.stop};
    bool good = take_files(rq, e);
    /* A daemon of a server may have counted more meanwhile. */
    backfill_plan_fini(&rq->plan);
    good = good && backfill_plan(&rq->plan, st, rq->report, &rq->only, e) && take_topics(rq, e);
    pipeline_free(rq->backfill.pipeline);
    return good && expire_all(st, false, options.stop, rq->quiet, &expired, e);
}

static const struct report *find_report(const struct config *c, const char *name)
{
    for (size_t i = 0; i < c->report_count; i++) {
        if (strcmp(c->reports[i].name, name) == 0)
            return &c->reports[i];
    }
    return NULL;
}

/* Refuse the name of a report that is none of these. */
static bool refuse_name(const struct request *rq, const struct report *reports, size_t count,
                        const char *condition, struct err *e)
{
    const char **names = xcalloc(count + 1, sizeof *names);
    for (size_t i = 0; i < count; i++)
        names[i] = reports[i].name;
    unknown_name(e, "report", slice_text(rq->name), names);
    free(names);
    const struct err unknown = *e;
    return err_set(e, EX_CONFIG, "%s; it can be filled in once it %s", unknown.text, condition);
}

/* Open the store: as its writer with the report alone; else it has the report as a daemon counts it. With
 * `is_new` that was told, and nothing is to be done. */
static bool open_store(struct request *rq, struct err *e)
{
    const char *url = rq->config->store.url;
    const struct report *report = find_report(rq->config, rq->name);
    struct store_options options = setup_store(rq->config);
    options.writer.backfills = true;
    options.raw_count = 0; /* they were stored when the lines were counted first */
    if (!rq->has_daemon && report == NULL)
        return refuse_name(rq, rq->config->reports, rq->config->report_count, "is configured", e);
    rq->store = rq->dry_run || rq->has_daemon ? store_open(url, STORE_READ, NULL, 0, e)
                                              : store_open_with(url, STORE_WRITE, &options, report, 1, e);
    if (rq->store == NULL)
        return false;
    int n = store_find_report(rq->store, slice_text(rq->name));
    rq->report = (size_t)n;
    if (n < 0 && rq->has_daemon)
        return refuse_name(rq, rq->store->reports, rq->store->report_count, "is counted by the daemon", e);
    rq->is_new = !rq->has_daemon && (n < 0 || rq->store->reports[n].generation != report->generation);
    ASSERT(rq->dry_run || !rq->is_new);
    if (rq->is_new && !rq->quiet)
        printf("%s~%d has counted nothing yet: what was counted into this store would be counted whole\n",
               report->name, report->generation);
    return true;
}

/* Does a daemon write the store? */
static bool has_daemon(struct request *rq, bool has_config)
{
    rq->hand_over = (struct hand_over){.config = rq->config,
                                       .has_config = has_config,
                                       .decode = rq->decode.text,
                                       .report = rq->name,
                                       .only = rq->only,
                                       .quiet = rq->quiet,
                                       .stop = stop_catch()};
    int fd = hand_over_connect(&rq->hand_over);
    if (fd >= 0)
        close(fd);
    if (fd >= 0 && !rq->quiet)
        fputs("a daemon writes this store: it counts the files, by its own configuration\n", stderr);
    return fd >= 0;
}

/* Backfill the report. Returns the exit status. */
static int backfill_report(struct request *rq)
{
    struct err e;
    int status;
    bool good = open_store(rq, &e);
    good = good && (rq->is_new || backfill_plan(&rq->plan, rq->store, rq->report, &rq->only, &e));
    if (good && !rq->dry_run)
        good = rq->has_daemon ? take_files(rq, &e) && take_topics(rq, &e) : backfill(rq, &e);
    if (!good)
        status = options_complain("backfill", &e);
    else
        status = rq->is_new ? EX_OK : say_result(rq, &rq->store->reports[rq->report]);
    backfill_plan_fini(&rq->plan);
    store_close(rq->store);
    return status;
}

/* A time of --from or --to. */
static bool take_time(void *context, const char *name, const char *value, struct err *e)
{
    struct request *rq = context;
    int64_t *ms = strcmp(name, "from") == 0 ? &rq->only.from_ms : &rq->only.to_ms;
    return civil_parse(slice_text(value), clock_wall_ms(&clock_system), ms) ||
           err_set(e, EX_USAGE, "--%s: found %s, expected a time such as 2015-05-17, 2015-05-17T10:05 or -1d",
                   name, value);
}

int cmd_backfill(int argc, char **argv)
{
    const char *file = NULL, *store_url = NULL, *compared = NULL, *taken = NULL;
    bool drops_old = false, forced = false;
    struct request rq = {0};
    const struct option_word words[] = {
        {"config", 'c', .text = &file},   {"store", .text = &store_url},
        {"decode", .decode = &rq.decode}, {"threads", 'j', .threads = &rq.threads},
        {"dry-run", .flag = &rq.dry_run}, {"quiet", 'q', .flag = &rq.quiet},
        {"from", .take = take_time},      {"to", .take = take_time},
        {"compare", .text = &compared},   {"take", .text = &taken},
        {"drop-old", .flag = &drops_old}, {"force", .flag = &forced}};
    const struct command command = {"backfill", usage, words, COUNT_OF(words), &rq};
    int status = options_parse(&command, &argc, &argv);
    if (status != 0)
        return status == OPTIONS_DONE ? EX_OK : status;
    if (argc == 0)
        return options_bad_usage("backfill", "which REPORT?");
    if ((compared != NULL || taken != NULL) && (argc != 1 || (compared != NULL && taken != NULL)))
        return options_bad_usage("backfill", "--compare and --take are given alone, without FILE");
    if ((drops_old || forced) && taken == NULL)
        return options_bad_usage("backfill", "--drop-old and --force need --take");
    if (rq.only.from_ms > 0 && rq.only.to_ms == 0)
        rq.only.to_ms = CIVIL_END_MS;
    if (compared != NULL && rq.only.to_ms > 0)
        return options_bad_usage("backfill", "--compare has no --from and --to: it prints every day");
    if (rq.only.from_ms > rq.only.to_ms)
        return options_bad_usage("backfill", "--from is after --to");
    rq.name = argv[0];
    rq.paths = argv + 1;
    rq.config = options_load_to_decode(file, store_url, &rq.decode.steps, &status);
    if (rq.config == NULL)
        return status;
    log_set_level(rq.config->log.level);
    if (compared != NULL) {
        status = replace_compare(rq.config, rq.name, compared);
    } else if (taken != NULL) {
        const struct replace_request request = {rq.name, taken, rq.only, drops_old, forced};
        status = replace_take(rq.config, &request);
    } else {
        rq.has_daemon = !rq.dry_run && has_daemon(&rq, file != NULL);
        status = backfill_report(&rq);
    }
    config_free(rq.config);
    return status;
}
