#include "cli/commands.h"

#include "aggregate/keep.h"
#include "base/clock.h"
#include "base/units.h"
#include "cli/options.h"
#include "daemon/count/expire.h"
#include "daemon/service/stop.h"
#include "daemon/setup.h"
#include "store/backend/backend.h"
#include "store/jobs.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char usage[] =
    "usage: tallyd job list [OPTIONS]\n"
    "       tallyd job run rollup|top [--now] [--dry-run] [OPTIONS]\n"
    "       tallyd job run rollup|top --rebuild FROM TO [OPTIONS]\n"
    "       tallyd job run expire [--now] [--dry-run] [OPTIONS]\n"
    "\n"
    "Shows or runs the jobs that `tallyd run` does beside counting. A job may be killed: the next run "
    "resumes\n"
    "it. Only one daemon or command at a time rolls up, or ranks, a report.\n"
    "\n"
    "  list                show the state of each job: how many periods wait, and who works on them\n"
    "  run rollup          MongoDB: roll past months up into documents of years, which charts of a year "
    "read;\n"
    "                      with jobs.weeks also documents of weeks. SQLite does not need it: batches do it\n"
    "  run top             MongoDB: rank the series of past hours, days and months; queries for the top "
    "series\n"
    "                      read these rankings. SQLite does not need it: it ranks in milliseconds\n"
    "  run expire          delete time buckets that have expired (`keep` of each report), and raw events of\n"
    "                      expired periods, as of the newest events. SQLite: only while no daemon runs\n"
    "\n"
    "      --now           rollup, top: also periods that are not over. expire: go by the computer's clock,\n"
    "                      even if no events are as new\n"
    "      --dry-run       show what would be done\n"
    "      --rebuild       do periods from FROM to TO again: after documents were changed or added by hand, "
    "or\n"
    "                      counted by a version without version stamps. Series that were removed from "
    "months\n"
    "                      stay in documents of years. If query.week_start has changed, all documents of "
    "weeks\n"
    "                      are made again\n"
    "  -c, --config FILE   configuration (default: built in)\n"
    "      --store URL     store (default: that of the configuration)\n"
    "  -h, --help          this text\n"
    "\n"
    "  tallyd job list -c tallyd.yaml\n"
    "  tallyd job run expire --dry-run -c tallyd.yaml\n"
    "  tallyd job run rollup --rebuild 2025-01-01 2026-01-01 -c tallyd.yaml\n";

enum what { JOB_LIST, JOB_ROLLUP, JOB_TOP, JOB_EXPIRE, JOB_NONE };

struct arguments {
    const char *config_file, *store_url;
    enum what what;
    bool rebuild;
    struct store_roll roll;
};

static int take_range(struct arguments *args, char **times)
{
    int64_t now_ms = clock_wall_ms(&clock_system);
    struct store_roll *roll = &args->roll;
    if (!civil_parse(slice_text(times[0]), now_ms, &roll->from_ms) ||
        !civil_parse(slice_text(times[1]), now_ms, &roll->to_ms) || roll->from_ms < 0 ||
        roll->from_ms >= roll->to_ms)
        return options_bad_usage(
            "job", "--rebuild expects two times, as 2025-01-01 2026-01-01, the earlier one first");
    return 0;
}

static enum what find_what(int count, char **operands)
{
    static const char *const names[] = {[JOB_ROLLUP] = "rollup", [JOB_TOP] = "top", [JOB_EXPIRE] = "expire"};
    if (count == 1 && strcmp(operands[0], "list") == 0)
        return JOB_LIST;
    for (enum what what = JOB_ROLLUP; what < JOB_NONE; what++) {
        if (count >= 2 && strcmp(operands[0], "run") == 0 && strcmp(operands[1], names[what]) == 0)
            return what;
    }
    return JOB_NONE;
}

static int take_operands(struct arguments *args, int count, char **operands)
{
    args->what = find_what(count, operands);
    if (args->what == JOB_NONE)
        return options_bad_usage("job", "expected `list`, `run rollup`, `run top` or `run expire`");
    if (args->what == JOB_LIST)
        return args->rebuild || args->roll.now || args->roll.dry
                   ? options_bad_usage("job", "`list` takes no --now, --dry-run or --rebuild")
                   : 0;
    if (args->what == JOB_EXPIRE && args->rebuild)
        return options_bad_usage("job",
                                 "`run expire` takes no --rebuild: expired time buckets do not come back");
    if (count != (args->rebuild ? 4 : 2))
        return options_bad_usage("job", args->rebuild ? "--rebuild expects FROM and TO"
                                                      : "only --rebuild takes times");
    if (args->rebuild && args->roll.dry)
        return options_bad_usage("job", "--rebuild and --dry-run exclude each other");
    return args->rebuild ? take_range(args, operands + 2) : 0;
}

static int parse_arguments(struct arguments *args, int argc, char **argv)
{
    const struct option_word words[] = {{"now", .flag = &args->roll.now},
                                        {"dry-run", .flag = &args->roll.dry},
                                        {"rebuild", .flag = &args->rebuild},
                                        {"config", 'c', .text = &args->config_file},
                                        {"store", .text = &args->store_url}};
    const struct command command = {"job", usage, words, COUNT_OF(words), NULL};
    int code = options_parse(&command, &argc, &argv);
    return code != 0 ? code : take_operands(args, argc, argv);
}

struct told {
    bool is_dry, is_top;
    size_t count, held;
};

static void tell_held(void *context, const char *report, const char *owner)
{
    struct told *told = context;
    printf("%s: %s works on it\n", report, owner[0] != '\0' ? owner : "another process");
    told->held++;
}

/* Print a period, with as much of its start as its resolution needs: "2026-11", "2026-11-22",
 * "2026-11-22T15". */
static void tell_period(void *context, const char *report, enum span span, int64_t start_ms, uint64_t count)
{
    struct told *told = context;
    char iso[CIVIL_ISO_BYTES];
    int len = span == SPAN_MONTH ? 7 : span == SPAN_HOUR ? 13 : 10;
    const char *week = span == SPAN_WEEK ? "week " : "";
    civil_iso(start_ms, iso);
    if (told->is_dry)
        printf("%s %s%.*s waits\n", report, week, len, iso);
    else
        printf("%s %s%.*s: %" PRIu64 " %s\n", report, week, len, iso, count,
               told->is_top ? "series ranked" : "documents rolled up");
    fflush(stdout);
    told->count++;
}

static void tell_job(void *context, const struct store_job *job)
{
    size_t *count = context;
    char iso[CIVIL_ISO_BYTES] = "never";
    if ((*count)++ == 0)
        printf("%-10s %-24s %10s  %-20s  %s\n", "job", "report", "waiting", "last run", "owner");
    if (job->last_run_ms > 0)
        civil_iso(job->last_run_ms, iso);
    printf("%-10s %-24s %10" PRIu64 "  %-20s  %s\n", job->name, job->report, job->waiting,
           job->last_run_ms >= 0 ? iso : "-", job->owner[0] != '\0' ? job->owner : "-");
}

static bool list(const struct config *c, struct store *st, struct err *e)
{
    size_t count = 0;
    bool good = st->jobs == NULL || store_jobs(st, tell_job, &count, e);
    for (size_t r = 0; good && r < c->report_count; r++) {
        struct store_job job = {
            .name = "expire", .report = c->reports[r].name, .last_run_ms = -1, .owner = ""};
        if (!keep_is_limited(&c->reports[r]))
            continue;
        good = expire_count(st, &c->reports[r], &job.waiting, e);
        if (good)
            tell_job(&count, &job);
    }
    if (good && count == 0)
        puts("no job: this store needs none, and reports keep everything");
    return good;
}

static bool roll(const struct arguments *args, const struct config *c, struct store *st, struct err *e)
{
    struct told told = {.is_dry = args->roll.dry, .is_top = args->what == JOB_TOP};
    struct store_roll what = args->roll;
    what.weeks = c->jobs.weeks;
    what.week_start = c->query.week_start;
    what.done = tell_period;
    what.held = tell_held;
    what.context = &told;
    if (st->jobs != NULL && !(told.is_top ? store_rank : store_roll)(st, &what, e))
        return false;
    if (told.held > 0)
        return err_set(e, EX_TEMPFAIL,
                       "other processes work on these reports: `tallyd job list` shows when they are done");
    if (told.count == 0)
        puts("nothing waits");
    return true;
}

/* Expire by another handle, which is opened for writing with the reports and their `keep`. */
static bool expire_rows(const struct config *c, bool by_clock, struct err *e)
{
    const struct store_options options = setup_store(c);
    const atomic_bool *stop = stop_catch();
    char number[UNITS_NUMBER_BYTES];
    uint64_t rows = 0;
    struct store *st = store_open_with(c->store.url, STORE_WRITE, &options, c->reports, c->report_count, e);
    bool good = st != NULL && expire_all(st, by_clock, stop, false, &rows, e);
    store_close(st);
    if (rows > 0 || good)
        printf("%s rows or documents expired\n", units_number((int64_t)rows, number));
    if (good && atomic_load(stop))
        return err_set(e, EX_TEMPFAIL,
                       "interrupted: run the same command again, or a daemon, to expire the rest");
    return good;
}

/* Say which time decides what expires, if it is not the clock's. */
static void tell_time(const struct event_time *by)
{
    char now[CIVIL_ISO_BYTES], wall[CIVIL_ISO_BYTES];
    if (by->now_ms == 0)
        puts("nothing is counted yet, so nothing expires; --now goes by the clock");
    else
        printf(
            "expiry goes by %s, the time of the newest events; the clock says %s: --now goes by the clock\n",
            civil_iso(by->now_ms, now), civil_iso(by->wall_ms, wall));
}

static bool expire(const struct arguments *args, const struct config *c, struct store *st, struct err *e)
{
    size_t count;
    struct event_time by;
    if (!expire_time(st, args->roll.now, &by, e) ||
        !expire_show(stdout, st, c->reports, c->report_count, &by, &count, e))
        return false;
    if (count == 0)
        puts("reports keep everything: set `keep` of a report to limit it");
    else if (by.now_ms < by.wall_ms)
        tell_time(&by);
    fflush(stdout);
    return args->roll.dry || expire_rows(c, args->roll.now, e);
}

static bool work(const struct arguments *args, const struct config *c, struct store *st, struct err *e)
{
    if (args->what == JOB_LIST)
        return list(c, st, e);
    return args->what == JOB_EXPIRE ? expire(args, c, st, e) : roll(args, c, st, e);
}

int cmd_job(int argc, char **argv)
{
    struct arguments args = {.roll = {.from_ms = -1}};
    struct err e;
    int code = parse_arguments(&args, argc, argv);
    if (code != 0)
        return code == OPTIONS_DONE ? EX_OK : code;
    struct config *c = options_load(args.config_file, args.store_url, &code);
    if (c == NULL)
        return code;
    struct store *st = store_open(c->store.url, STORE_WORK, NULL, 0, &e);
    bool good = st != NULL && work(&args, c, st, &e);
    store_close(st);
    config_free(c);
    return good ? EX_OK : options_complain("job", &e);
}
