#include "base/check.h"
#include "base/clock.h"
#include "base/units.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/top/client.h"
#include "query/query.h"
#include "store/backend/backend.h"
#include "web/server.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char usage[] =
    "usage: tallyd query [http://HOST:PORT] REPORT [OPTIONS]\n"
    "\n"
    "Reads counts back: one row per step, or one for the whole range, or the top series of the range. With "
    "an\n"
    "address it asks a running daemon, else it reads the store.\n"
    "\n"
    "      --filter DIM=VALUE  only series with this text in dimension DIM; again for further dimensions\n"
    "      --where CONDITION   only series that match: 'path=/blog/*|/news/*', 'status!=2*', 'status>=500';\n"
    "                          again for further conditions\n"
    "      --measure NAME      the measure to show (default: the report's first), or all\n"
    "      --from TIME         begin (default: an hour before --to), moved back to the start of its step\n"
    "      --to TIME           end, exclusive (default: now)\n"
    "      --step STEP         one row per minute, hour, day, week, month or year, or several: 15m, 6h, 2w, "
    "3mo\n"
    "                          (default: one row for the whole range); second, with `layout: minute`\n"
    "      --week-start DAY    the day on which weeks begin (default: query.week_start, which is monday)\n"
    "      --tz ZONE           days, weeks, months and years of a time zone, as Europe/Berlin (default: "
    "UTC)\n"
    "      --top N             the N largest series, instead of rows of time\n"
    "      --newest N          the N newest events, of a report with `newest`\n"
    "      --format FORMAT     table (default), csv, csv-raw or json; in csv, names that begin as\n"
    "                          formulas of spreadsheets have a single quote before them\n"
    "      --explain           report on standard error what was read\n"
    "  -c, --config FILE       configuration (default: built in)\n"
    "      --store URL         store to read (default: sqlite:tallyd.db)\n"
    "      --cacert FILE       for https://: PEM file with certificates that may have signed the daemon's\n"
    "  -h, --help              this text\n"
    "\n"
    "Of a histogram, NAME is a figure: 'p99(latency)', 'quantile(0.999, latency)', 'share(latency <= 0.3)', "
    "or\n"
    "min, max, mean or count of it. Quantiles are at most 2.2 % off; all other numbers are exact, but for\n"
    "distinct counts above 700 (1.6 %). If no event has a number, min, max, last, mean and figures are "
    "absent:\n"
    "- in a table, empty in CSV, null in JSON.\n"
    "\n"
    "TIME is in the time zone: 2015-05-17, 2015-05, 2015-05-17T10:05, today, yesterday; or with an offset\n"
    "2015-05-17T10:05+02:00; or now, back from now (-15m, -1h, -7d), or seconds since 1970.\n"
    "\n"
    "  tallyd query pages --filter path=/index.html --from -1h --step minute\n"
    "  tallyd query pages --where 'path=/blog/*' --from yesterday --to today --step hour\n"
    "  tallyd query pages --from 2015-05-17 --to 2015-05-21 --top 10\n"
    "  tallyd query pages --filter path=/index.html --newest 20\n"
    "  tallyd query site --from 2015-01-01 --to 2016-01-01 --step month --tz Europe/Berlin\n"
    "  tallyd query http://127.0.0.1:8080 pages --from -1d --top 10\n";

#define PARAMETERS_MAX (SERVER_PARAMETERS_MAX - 2) /* ask_daemon() adds two */

struct arguments {
    const char *config_file, *store_url;
    struct client daemon; /* url NULL: read the store instead */
    bool explain;
    /* stored, since they cannot be judged before the configuration is loaded */
    struct parameter parameters[PARAMETERS_MAX];
    size_t parameter_count;
};

static void add_parameter(struct arguments *args, const char *name, const char *value)
{
    if (args->parameter_count < PARAMETERS_MAX)
        args->parameters[args->parameter_count] = (struct parameter){slice_text(name), slice_text(value)};
    args->parameter_count++;
}

/* Refuse no report, or several. An address with its port is meant as a daemon's. */
static int refuse_operands(int count, char **operands)
{
    struct err e;
    if (count == 0)
        err_set(&e, EX_USAGE, "it takes the name of a report");
    else if (strchr(operands[0], ':') != NULL)
        err_set(&e, EX_USAGE, "found %s and %s, expected one report (did you mean http://%s?)", operands[0],
                operands[1], operands[0]);
    else
        err_set(&e, EX_USAGE, "it takes one report at a time");
    return options_complain("query", &e);
}

static int take_operands(struct arguments *args, int count, char **operands)
{
    if (count > 0 && client_is_url(operands[0])) {
        args->daemon.url = operands[0];
        count--;
        operands++;
        if (args->store_url != NULL || args->config_file != NULL || args->explain)
            return options_bad_usage(
                "query", "a daemon has its own store and configuration: no --store, --config or --explain");
    } else if (args->daemon.cacert != NULL) {
        return options_bad_usage("query", "--cacert goes with the address of a daemon, https://HOST:PORT");
    }
    if (count != 1)
        return refuse_operands(count, operands);
    add_parameter(args, "report", operands[0]);
    return args->parameter_count > PARAMETERS_MAX ? options_bad_usage("query", "too many options") : 0;
}

static bool take_parameter(void *context, const char *name, const char *value, struct err *e)
{
    (void)e;
    add_parameter(context, name, value);
    return true;
}

/* Add a parameter, by its name in the API. */
static bool take_week_start(void *context, const char *name, const char *value, struct err *e)
{
    (void)name;
    return take_parameter(context, "week_start", value, e);
}

static int parse_arguments(struct arguments *args, int argc, char **argv)
{
    const struct option_word words[] = {{"filter", .take = take_parameter},
                                        {"where", .take = take_parameter},
                                        {"measure", .take = take_parameter},
                                        {"from", .take = take_parameter},
                                        {"to", .take = take_parameter},
                                        {"step", .take = take_parameter},
                                        {"week-start", .take = take_week_start},
                                        {"tz", .take = take_parameter},
                                        {"top", .take = take_parameter},
                                        {"newest", .take = take_parameter},
                                        {"format", .take = take_parameter},
                                        {"explain", .flag = &args->explain},
                                        {"config", 'c', .text = &args->config_file},
                                        {"store", .text = &args->store_url},
                                        {"cacert", .text = &args->daemon.cacert}};
    const struct command command = {"query", usage, words, COUNT_OF(words), args};
    int code = options_parse(&command, &argc, &argv);
    return code != 0 ? code : take_operands(args, argc, argv);
}

static bool make_query(struct query *q, const struct arguments *args, const struct config *c, struct err *e)
{
    struct query_limits limits = {(uint64_t)c->query.rows_max,
                                  (uint64_t)c->query.points_max,
                                  (uint64_t)c->query.series_max,
                                  (uint64_t)c->query.response_bytes_max,
                                  (uint64_t)c->query.sketch_bytes_max,
                                  (uint64_t)c->query.memory_bytes_max,
                                  c->query.week_start,
                                  0};
    query_init(q, clock_wall_ms(&clock_system), &limits);
    q->bars = isatty(STDOUT_FILENO);
    for (size_t i = 0; i < args->parameter_count; i++) {
        if (!query_set(q, args->parameters[i].name, args->parameters[i].value, e))
            return false;
    }
    return true;
}

/* A report's books, of all its sources. */
struct judged {
    const char *report;
    int64_t counted, filtered;
};

static bool add_judged(void *context, const char *source, const char *partition, const char *report,
                       const char *entry, int64_t value)
{
    struct judged *j = context;
    (void)source;
    (void)partition;
    if (strcmp(report, j->report) == 0 && strcmp(entry, "counted") == 0)
        j->counted += value;
    if (strcmp(report, j->report) == 0 && strcmp(entry, "filtered") == 0)
        j->filtered += value;
    return true;
}

/* Say of a report without counts whether it had any events to count. */
static void note_none(struct store *st, size_t report)
{
    struct judged j = {.report = st->reports[report].name};
    char filtered[UNITS_NUMBER_BYTES];
    struct err e;
    if (store_books(st, add_judged, &j, &e) && j.counted == 0 && j.filtered > 0)
        fprintf(stderr, "note: %s has no counts: its `where` left out all events so far, %s\n", j.report,
                units_number(j.filtered, filtered));
    else
        fprintf(stderr, "note: %s has no counts yet\n", j.report);
}

/* Say when there are counts: whoever imported an old log has none in the default range. */
static void note_empty(struct store *st, const struct query *q)
{
    const char *usual = q->from_ms < 0 && q->newest == 0 ? "; the default range is the last hour" : "";
    char iso[ZONE_ISO_BYTES];
    struct newest newest;
    struct err e;
    int report = store_find_report(st, q->report);
    if (!store_newest(st, (size_t)report, CIVIL_END_MS, &newest, &e))
        fprintf(stderr, "note: nothing was counted in this range%s\n", usual);
    else if (newest.start_ms < 0)
        note_none(st, (size_t)report);
    else
        fprintf(stderr,
                "note: nothing was counted in this range%s. The newest counts are of the %s %s: give --from "
                "and --to\n",
                usual, span_name(newest.span), zone_iso(q->zone, newest.start_ms, iso));
}

static bool has_star(const struct query *q)
{
    bool has = false;
    for (size_t i = 0; i < q->filter_count; i++)
        has |= memchr(q->filters[i].value.ptr, '*', q->filters[i].value.len) != NULL;
    return has;
}

/* Explain a table of zeros, which may surprise an operator, before it is printed; scripts compare the other
 * formats. */
static void explain_zeros(struct store *st, const struct query *q, const struct query_stats *stats)
{
    if (q->format != QUERY_TABLE)
        return;
    if (!stats->every_series && stats->series_matched == 0)
        fprintf(stderr, "note: the report has no series that matches%s\n",
                has_star(q) ? ": --filter takes whole texts, --where takes patterns" : "");
    else if (stats->total.rows == 0)
        note_empty(st, q);
}

static void print_note(const struct query *q, const struct query_stats *stats)
{
    struct text note = {0};
    query_note(q, stats, &note);
    if (q->format == QUERY_TABLE && note.len > 0)
        fputs(note.ptr, stderr);
    text_fini(&note);
}

static bool answer(const struct query *q, const struct config *c, bool explain, struct err *e)
{
    struct text out = {0}, plan = {0};
    struct query_stats stats;
    struct store *st = store_open(c->store.url, STORE_READ, NULL, 0, e);
    if (st == NULL)
        return false;
    bool good = query_run(st, q, &out, &stats, e);
    if (good && isatty(STDOUT_FILENO))
        options_show_lines(&out);
    if (good)
        explain_zeros(st, q, &stats);
    good = good && options_print(&out, e);
    if (good)
        print_note(q, &stats);
    if (good && explain) {
        query_explain(q, &stats, &plan);
        fputs(plan.ptr, stderr);
    }
    text_fini(&out);
    text_fini(&plan);
    store_close(st);
    return good;
}

/* Is a table asked for? */
static bool is_table(const struct arguments *args)
{
    bool is = true;
    for (size_t i = 0; i < args->parameter_count; i++)
        is = slice_is(args->parameters[i].name, "format") ? slice_is(args->parameters[i].value, "table") : is;
    return is;
}

/* Send the same query by HTTP. The daemon's default format is JSON, the command's is a table. The last
 * --format counts. */
static bool ask_daemon(const struct arguments *args, struct err *e)
{
    struct parameter parameters[PARAMETERS_MAX + 2] = {
        {slice_text("format"), slice_text("table")},
        {slice_text("bars"), slice_text(isatty(STDOUT_FILENO) ? "yes" : "no")}};
    struct text out = {0};
    memcpy(parameters + 2, args->parameters, args->parameter_count * sizeof *parameters);
    bool good = client_get(&args->daemon, "/api/v1/query", parameters, args->parameter_count + 2,
                           CLIENT_TIMEOUT_MS, &out, e);
    if (good && (is_table(args) || isatty(STDOUT_FILENO)))
        options_show_lines(&out); /* whoever the daemon is */
    good = good && options_print(&out, e);
    text_fini(&out);
    return good;
}

int cmd_query(int argc, char **argv)
{
    struct arguments args = {0};
    struct query q;
    struct err e;
    int code = parse_arguments(&args, argc, argv);
    if (code != 0)
        return code == OPTIONS_DONE ? EX_OK : code;
    if (args.daemon.url != NULL)
        return ask_daemon(&args, &e) ? EX_OK : options_complain("query", &e);
    struct config *c = options_load(args.config_file, args.store_url, &code);
    if (c == NULL)
        return code;
    bool good = make_query(&q, &args, c, &e) && answer(&q, c, args.explain, &e);
    config_free(c);
    return good ? EX_OK : options_complain("query", &e);
}
