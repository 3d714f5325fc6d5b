#include "base/check.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/show.h"
#include "base/units.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "daemon/count/account.h"
#include "daemon/forget.h"
#include "daemon/service/stop.h"
#include "daemon/setup.h"
#include "store/backend/backend.h"
#include "store/forget.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "usage: tallyd forget [OPTIONS] SOURCE|REPORT[~GENERATION]\n"
    "\n"
    "Takes out of the store what was counted by mistake; then it may be counted anew. No daemon may count "
    "into\n"
    "the store meanwhile. In MongoDB, a command that was interrupted has taken out a part: run it again.\n"
    "\n"
    "SOURCE is a file that was counted: its path, or its name in the store (`tallyd verify` shows both). "
    "Its\n"
    "lines are read again and taken out of every count, exactly; otherwise nothing is changed, and\n"
    "standard error says why.\n"
    "\n"
    "REPORT[~GENERATION] drops all counts of a generation that counts no more. The newest generation is\n"
    "dropped only with --yes. A file that is named as a report is written ./NAME.\n"
    "\n"
    "  -c FILE          configuration (default: built in); limits and decoding as when the file was counted\n"
    "      --store URL  store to take out of (default: sqlite:tallyd.db)\n"
    "      --decode STEPS  steps with which the file was imported\n"
    "      --file PATH  where the lines of SOURCE are now, packed or not\n"
    "      --dry-run    say what would be taken out, change nothing\n"
    "      --yes        drop the newest generation of a report, too\n"
    "  -h, --help       this text\n";

struct request {
    struct config *config;
    const char *what, *path; /* the operand; --file */
    struct option_decode decode;
    bool dry_run, yes;
};

/* ---- a report */

/* Split "pages~2". *generation 0: none is named. False: it is no name of a report. */
static bool parse_report(const char *text, char name[REPORT_NAME_BYTES], int *generation)
{
    const char *tilde = strchr(text, '~');
    size_t len = tilde != NULL ? (size_t)(tilde - text) : strlen(text);
    char *end = NULL;
    *generation = 0;
    if (!slice_is_name(slice_of(text, len), REPORT_NAME_BYTES))
        return false;
    if (tilde != NULL) {
        long number = strtol(tilde + 1, &end, 10);
        if (number < 1 || number > INT_MAX || *end != '\0')
            return false;
        *generation = (int)number;
    }
    snprintf(name, REPORT_NAME_BYTES, "%.*s", (int)len, text);
    return true;
}

static bool drop_report(const struct request *rq, const char *name, int generation, struct err *e)
{
    struct store_dropped d;
    char rows[UNITS_NUMBER_BYTES], bytes[UNITS_NUMBER_BYTES], series[UNITS_NUMBER_BYTES];
    struct store *st = store_open(rq->config->store.url, STORE_WRITE, NULL, 0, e);
    if (st == NULL)
        return false;
    bool good = store_drop(st, name, generation, rq->dry_run, &d, e);
    const char *verb = rq->dry_run ? "would drop" : "dropped";
    if (good && st->is_shared)
        printf("%s~%d: %s %s documents of counts, and %s series\n", name, generation, verb,
               units_number((int64_t)d.rows, rows), units_number((int64_t)d.series, series));
    else if (good)
        printf("%s~%d: %s %s rows of counts, %s bytes, and %s series\n", name, generation, verb,
               units_number((int64_t)d.rows, rows), units_number((int64_t)d.bytes, bytes),
               units_number((int64_t)d.series, series));
    store_close(st);
    return good;
}

/* `newest`: the report in its newest generation. */
static bool forget_report(const struct request *rq, const struct report *newest, int generation,
                          struct err *e)
{
    if (generation == 0)
        generation = newest->generation;
    if (generation == newest->generation && !rq->yes && !rq->dry_run)
        return err_set(
            e, EX_USAGE,
            "generation %d is the newest of report \"%s\": --yes drops all of its counts, and --dry-run "
            "says how much that is",
            generation, newest->name);
    return drop_report(rq, newest->name, generation, e);
}

/* ---- a source */

/* The positions that may be meant. */
struct search {
    const char *name, *path;
    struct position found;
    struct text list; /* the names of all found, one a line */
    size_t count;
};

static bool look_at_position(void *context, const struct position *p)
{
    struct search *s = context;
    const struct range *r = &p->range;
    bool is_topic = strncmp(r->source, "kafka:", strlen("kafka:")) == 0;
    bool has_id =
        strncmp(r->source, "id:", strlen("id:")) == 0 && strcmp(r->source + strlen("id:"), s->name) == 0;
    if (strcmp(r->source, s->name) != 0 && (is_topic || (!has_id && strcmp(r->label, s->path) != 0)))
        return true;
    s->found = *p;
    s->count++;
    text_printf(&s->list, "\n  %s", r->source);
    return true;
}

/* The path as a position has it. The file itself may be away. */
static const char *resolve(const char *name, char full[PATH_MAX])
{
    char folder[PATH_MAX], found[PATH_MAX];
    const char *slash = strrchr(name, '/');
    if (realpath(name, full) != NULL)
        return full;
    int folder_len = slash == NULL ? 1 : slash == name ? 1 : (int)(slash - name);
    snprintf(folder, sizeof folder, "%.*s", folder_len, slash == NULL ? "." : name);
    if (realpath(folder, found) == NULL)
        return name;
    int n = snprintf(full, PATH_MAX, "%s/%s", strcmp(found, "/") == 0 ? "" : found,
                     slash == NULL ? name : slash + 1);
    return n < PATH_MAX ? full : name;
}

static bool find_source(struct store *st, const char *name, struct position *found, struct err *e)
{
    char full[PATH_MAX];
    struct search s = {.name = name, .path = resolve(name, full)};
    bool good = store_positions(st, look_at_position, &s, e);
    if (good && s.count == 0)
        good = err_set(e, EX_NOINPUT, "nothing was counted into the store under the name %s", name);
    if (good && s.count > 1)
        good = err_set(e, EX_USAGE, "%zu sources were counted as %s; say which one:%.500s", s.count, name,
                       s.list.ptr);
    if (good && strncmp(s.found.range.source, "kafka:", strlen("kafka:")) == 0)
        good = err_set(e, EX_UNAVAILABLE, "%s is a topic: only files can be taken out again", name);
    text_fini(&s.list);
    *found = s.found;
    return good;
}

static void print_forgotten(const struct forget *f, const struct store *st)
{
    char number[UNITS_NUMBER_BYTES], label[SHOW_BYTES];
    const struct range *r = &f->position->range;
    printf("%s (%s): %s %s lines\n", show(r->label, label), r->source,
           f->dry_run ? "would take out" : "took out", units_number(f->books.entries[BOOK_CONSUMED], number));
    account_books(stdout, &f->books, st->reports);
    if (!f->dry_run)
        puts("  it may be imported anew");
}

static bool forget_source(const struct request *rq, const struct store *reports, const struct position *p,
                          struct err *e)
{
    struct forget f = {.config = rq->config,
                       .position = p,
                       .path = rq->path != NULL ? rq->path : p->range.label,
                       .stop = stop_catch(),
                       .dry_run = rq->dry_run};
    struct constants constants;
    struct store_options options = setup_store(rq->config);
    if (rq->path == NULL && strcmp(f.path, "-") == 0)
        return err_set(e, EX_USAGE, "it came from standard input: say by --file where its lines are now");
    options.raw_count = 0; /* none is written */
    struct store *st = store_open_with(rq->config->store.url, STORE_WRITE, &options, reports->reports,
                                       reports->report_count, e);
    if (st == NULL)
        return false;
    setup_constants(rq->config, p->range.label, f.path, &constants);
    f.constants = &constants;
    f.decode = rq->decode.text != NULL ? &rq->decode.steps : setup_decode(rq->config, p->range.label, f.path);
    bool good = forget_file(&f, st, e);
    if (good)
        print_forgotten(&f, st);
    books_fini(&f.books);
    constants_fini(&constants);
    store_close(st);
    return good;
}

static bool forget(const struct request *rq, struct store *st, struct err *e)
{
    char name[REPORT_NAME_BYTES];
    struct position position;
    int generation;
    int report = parse_report(rq->what, name, &generation) ? store_find_report(st, slice_text(name)) : -1;
    if (report >= 0)
        return forget_report(rq, &st->reports[report], generation, e);
    if (generation > 0) /* no reader knows a generation that was dropped in part */
        return drop_report(rq, name, generation, e);
    return find_source(st, rq->what, &position, e) && forget_source(rq, st, &position, e);
}

int cmd_forget(int argc, char **argv)
{
    const char *file = NULL, *store_url = NULL;
    struct request rq = {0};
    struct err e;
    const struct option_word words[] = {{"config", 'c', .text = &file},   {"store", .text = &store_url},
                                        {"decode", .decode = &rq.decode}, {"file", .text = &rq.path},
                                        {"dry-run", .flag = &rq.dry_run}, {"yes", .flag = &rq.yes}};
    const struct command command = {"forget", usage, words, COUNT_OF(words), &rq};
    int status = options_parse(&command, &argc, &argv);
    if (status != 0)
        return status == OPTIONS_DONE ? EX_OK : status;
    if (argc != 1)
        return options_bad_usage("forget", "which SOURCE or REPORT? Name one");
    rq.what = argv[0];
    rq.config = options_load_to_decode(file, store_url, &rq.decode.steps, &status);
    if (rq.config == NULL)
        return status;
    status = EX_OK;
    log_set_level(rq.config->log.level);
    struct store *st = store_open(rq.config->store.url, STORE_READ, NULL, 0, &e);
    if (st == NULL || !forget(&rq, st, &e))
        status = options_complain("forget", &e);
    store_close(st);
    config_free(rq.config);
    return status;
}
