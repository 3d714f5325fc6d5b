#include "base/check.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/show.h"
#include "base/units.h"
#include "cli/commands.h"
#include "cli/hand_over.h"
#include "cli/options.h"
#include "daemon/count/account.h"
#include "daemon/count/expire.h"
#include "daemon/file/handover.h"
#include "daemon/judge.h"
#include "daemon/lacks.h"
#include "daemon/service/stop.h"
#include "daemon/setup.h"
#include "daemon/source.h"
#include "store/backend/backend.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char usage[] =
    "usage: tallyd import [OPTIONS] FILE…\n"
    "\n"
    "Counts the lines of log files: plain, gzip, zstd, bzip2 or xz, or - for standard input. A file is "
    "known\n"
    "by its content: lines that were counted before are not counted again, even under another name or "
    "before\n"
    "the file was compressed. Counting resumes where a file has grown, or where an import was interrupted.\n"
    "\n"
    "  -c FILE            configuration (default: built in)\n"
    "      --store URL    store to count into (default: sqlite:tallyd.db)\n"
    "  -j, --threads N    threads (default: one per processor, at most 8)\n"
    "      --dry-run      count, show what would be stored, store nothing\n"
    "      --decode STEPS how lines become events, as combined or syslog,combined (default: as configured)\n"
    "      --rejects FILE append lines that cannot be parsed: offset, reason, column, line, by tabs\n"
    "      --last-line    count the last line of a plain file even if it has no line feed and may be "
    "unfinished\n"
    "                     (without it: only if it is a whole line of combined)\n"
    "      --source-id ID name the source by hand, not by its content (one FILE)\n"
    "      --force        count a file even if none of its first 1,000 lines can be parsed\n"
    "  -q, --quiet        print only errors: no progress, no books\n"
    "  -h, --help         this text\n";

struct import {
    struct config *config;
    struct store *store; /* store to count into */
    /* store that is asked for positions: `store`, or with --dry-run the real one or NULL */
    struct store *positions;
    struct pipeline *pipeline;
    const atomic_bool *stop;
    struct progress_bar bar;
    const char *config_file, *store_url, *rejects, *source_id;
    struct option_decode decode;
    long threads;
    struct rejects_file rejects_file;
    bool dry_run, quiet, last_line, force;
};

static int parse_options(struct import *im, int *argc, char ***argv)
{
    const struct option_word words[] = {{"config", 'c', .text = &im->config_file},
                                        {"store", .text = &im->store_url},
                                        {"threads", 'j', .threads = &im->threads},
                                        {"dry-run", .flag = &im->dry_run},
                                        {"decode", .decode = &im->decode},
                                        {"rejects", .text = &im->rejects},
                                        {"last-line", .flag = &im->last_line},
                                        {"source-id", .text = &im->source_id},
                                        {"force", .flag = &im->force},
                                        {"quiet", 'q', .flag = &im->quiet}};
    const struct command command = {"import", usage, words, COUNT_OF(words), im};
    int code = options_parse(&command, argc, argv);
    if (code != 0)
        return code;
    if (*argc == 0)
        return options_bad_usage("import", "which FILE?");
    if (im->source_id != NULL && *argc > 1)
        return options_bad_usage("import", "--source-id names one FILE");
    return 0;
}

static bool open_stores(struct import *im, struct err *e)
{
    const struct config *c = im->config;
    struct store_options options = setup_store(c);
    if (im->dry_run) {
        options.raw_count = 0;
        options.ttl = false;
    }
    im->store = store_open_with(im->dry_run ? "mem:" : c->store.url, STORE_WRITE, &options, c->reports,
                                c->report_count, e);
    if (im->store == NULL)
        return false;
    im->positions = im->store;
    if (!im->dry_run)
        return true;
    im->positions = store_open(c->store.url, STORE_READ, NULL, 0, e);
    return im->positions != NULL || e->code == EX_NOINPUT;
}

static bool open_rejects(struct import *im, struct err *e)
{
    return im->rejects == NULL || rejects_file_open(&im->rejects_file, im->rejects, e);
}

static void tick(void *context, const struct pipeline_progress *progress)
{
    struct import *im = context;
    progress_bar_show(&im->bar, progress);
}

static void open_pipeline(struct import *im, const atomic_bool *stop)
{
    struct pipeline_options options = setup_pipeline(im->config, (size_t)im->threads);
    options.decode = setup_decode(im->config, NULL, NULL);
    options.rejects = im->rejects != NULL ? &im->rejects_file : NULL;
    options.stop = stop;
    options.tick = tick;
    options.context = im;
    options.housekeep = im->store->is_shared; /* a server has batch logs to delete */
    im->pipeline = pipeline_new(im->store, im->config->reports, im->config->report_count, &options);
}

static void report_file(const struct import *im, const struct source *src, const char *path, int64_t took_ms)
{
    const struct account_file file = {.path = path,
                                      .note = src->note,
                                      .is_known = src->is_known,
                                      .is_dry = im->dry_run,
                                      .from = src->range.to,
                                      .took_ms = took_ms,
                                      .left = reader_left(src->reader)};
    if (!im->quiet)
        account_file(stdout, &file, pipeline_progress(im->pipeline), im->config->reports);
}

/* Refuse a file of which no line can be parsed. */
static bool judge(struct import *im, struct source *src, const struct decode *decode, struct err *e)
{
    bool takes_last = im->last_line || !input_is_regular(src->in);
    return im->force || atomic_load(im->stop) ||
           judge_source(src, decode, (size_t)im->config->limits.line_max, takes_last, im->store,
                        im->positions != im->store ? im->positions : NULL, e) ||
           atomic_load(im->stop);
}

/* Say if the fields of the first line are most likely moved. */
static void look_at_first(const struct source *src, const struct decode *decode)
{
    struct text fits = {0};
    if (judge_moved(src, decode, &fits))
        fprintf(stderr,
                "tallyd import: %s: the fields of its first line are most likely moved, as `tallyd explain` "
                "shows; would fit: "
                "%s (--decode)\n",
                src->range.label, fits.ptr);
    text_fini(&fits);
}

/* Say what reports count, but none of the first events has. */
static void look_for_lacks(const struct import *im, const struct source *src, const struct decode *decode,
                           const struct constants *constants)
{
    struct text lacks = {0};
    lacks_print(src, decode, constants, im->config->reports, im->config->report_count, &lacks);
    struct slice rest = text_slice(&lacks);
    while (rest.len > 0) {
        struct slice line = slice_cut(&rest, '\n');
        fprintf(stderr, "tallyd import: %s: %.*s\n", src->range.label, SLICE_ARGS(line));
    }
    text_fini(&lacks);
}

/* A file's books in the store, of all its imports. */
struct file_books {
    const struct range *range; /* range of this import */
    int64_t rejected, parsed;
    const struct config *config;     /* configuration by which the file is counted; NULL: unknown */
    bool counts[CONFIG_REPORTS_MAX]; /* by report of the configuration: whether it counted any of the file */
};

/* Say of a report that was not configured for a while. */
static void print_gap(const char *report, int64_t from, int64_t to)
{
    char begin[UNITS_NUMBER_BYTES], end[UNITS_NUMBER_BYTES];
    printf("  %-16s does not count bytes %s to %s: it was not configured when they were counted\n", report,
           units_number(from, begin), units_number(to, end));
}

/* Read an entry of a report. Print its gap, if it ends where this import began. */
static void look_at_report(struct file_books *f, const char *report, const char *entry, int64_t value)
{
    const bool is_since = strcmp(entry, "since") == 0;
    if (value == f->range->to && value > 0 && (is_since || strncmp(entry, "gap.", 4) == 0))
        print_gap(report, is_since ? 0 : strtoll(entry + 4, NULL, 10), value);
    for (size_t i = 0; f->config != NULL && i < f->config->report_count; i++) {
        if (strcmp(f->config->reports[i].name, report) == 0)
            f->counts[i] |= is_since || strncmp(entry, "filled.", strlen("filled.")) == 0;
    }
}

/* Add up a book entry. */
static bool look_at_book(void *context, const char *source, const char *partition, const char *report,
                         const char *entry, int64_t value)
{
    struct file_books *f = context;
    const struct range *r = f->range;
    if (strcmp(source, r->source) != 0 || strcmp(partition, r->partition) != 0)
        return true;
    if (report[0] != '\0')
        look_at_report(f, report, entry, value);
    if (report[0] == '\0' && strcmp(entry, "parsed") == 0)
        f->parsed += value;
    if (report[0] == '\0' && strncmp(entry, "rejected.", strlen("rejected.")) == 0)
        f->rejected += value;
    return true;
}

/* Name the reports that came after the file was counted. */
static void print_without(const struct import *im, const struct file_books *f)
{
    char file[SHOW_BYTES] = "";
    if (im->config_file != NULL)
        show(im->config_file, file);
    for (size_t i = 0; f->config != NULL && i < f->config->report_count; i++) {
        const char *name = f->config->reports[i].name;
        if (!f->counts[i])
            printf("  %-16s counted nothing of it: it was not configured then; `tallyd backfill%s%s %s` "
                   "counts it\n",
                   name, file[0] != '\0' ? " -c " : "", file, name);
    }
}

/* `config`: the configuration by which it was counted; NULL: unknown. */
static bool report_books(const struct import *im, const struct range *r, const struct config *config,
                         bool is_new, struct err *e)
{
    struct file_books f = {.range = r, .config = config};
    if (!store_books(im->store, look_at_book, &f, e))
        return false;
    if (!is_new && f.parsed + f.rejected > 0)
        print_without(im, &f);
    if (f.parsed > 0 || f.rejected == 0)
        return true;
    puts("  no line of it was ever understood: is it of another format (--decode)?");
    if (!im->dry_run)
        puts("  `tallyd forget FILE` takes it out again; then it may be imported anew");
    return true;
}

/* A file, and how its lines are read. */
struct chosen {
    const struct import *im;
    const char *path;
    const struct decode *decode;
};

static bool choose_decode(void *context, const char *label, struct source_options *options, struct err *e)
{
    struct chosen *ch = context;
    const struct import *im = ch->im;
    const struct config_source *guess = NULL;
    ch->decode = im->decode.text != NULL ? &im->decode.steps : setup_decode(im->config, label, ch->path);
    options->heeds_directives = decode_heeds_directives(ch->decode);
    options->last_line = source_last_line(ch->decode, im->last_line);
    options->keeps_label = setup_keeps_label(im->config, label, ch->path);
    if (im->decode.text == NULL && !setup_guess(im->config, label, ch->path, &guess, e))
        return false;
    if (guess != NULL && !im->quiet)
        fprintf(stderr,
                "tallyd import: %s matches the path of no source: it is counted as a file of the source %s "
                "(--decode says otherwise)\n",
                ch->path, guess->name);
    return true;
}

static bool import_file(struct import *im, const char *path, struct err *e)
{
    struct source src;
    struct constants constants;
    struct chosen chosen = {.im = im, .path = path};
    char shown[SHOW_BYTES];
    struct source_options options = {.line_max = (size_t)im->config->limits.line_max,
                                     .choose = choose_decode,
                                     .context = &chosen,
                                     .source_id = im->source_id,
                                     .stop = im->stop,
                                     .later_positions = im->dry_run ? im->store : NULL};
    int64_t begun_ms = clock_mono_ms(&clock_system);
    if (!source_open(&src, path, im->positions, &options, e))
        return false;
    if (src.is_empty) {
        if (!im->quiet)
            printf("%s: empty, nothing to count\n", show(path, shown));
        source_close(&src);
        return true;
    }
    const struct decode *decode = chosen.decode;
    if (!judge(im, &src, decode, e)) {
        source_close(&src);
        return false;
    }
    look_at_first(&src, decode);
    const char *label = src.label[0] != '\0' ? src.label : NULL;
    setup_constants(im->config, label, path, &constants);
    if (!im->quiet)
        look_for_lacks(im, &src, decode, &constants);
    pipeline_set_decode(im->pipeline, decode, &constants,
                        im->dry_run ? NULL : setup_raw(im->config, label, path));
    progress_bar_init(&im->bar, path, input_raw_size(src.in), &clock_system, im->quiet);
    bool good = pipeline_run(im->pipeline, src.reader, &src.range, e);
    progress_bar_clear(&im->bar);
    if (good || pipeline_progress(im->pipeline)->books.entries[BOOK_CONSUMED] > 0)
        report_file(im, &src, path, clock_mono_ms(&clock_system) - begun_ms);
    if (good && !im->quiet)
        good = report_books(im, &src.range, im->config,
                            pipeline_progress(im->pipeline)->books.entries[BOOK_CONSUMED] > 0, e);
    constants_fini(&constants);
    source_close(&src);
    return good;
}

/* Print how many events went to the series `other`, or came after their buckets had expired, in all imports
 * into this store. */
static bool print_kept_out(void *context, const char *source, const char *partition, const char *report,
                           const char *entry, int64_t value)
{
    char n[UNITS_NUMBER_BYTES];
    (void)context;
    if (source[0] == '\0' && partition[0] == '\0' && strcmp(entry, "other") == 0)
        printf("  %-16s counted %s events of series beyond its series_max as " STORE_OTHER_KEY "\n", report,
               units_number(value, n));
    if (source[0] == '\0' && partition[0] == '\0' && strncmp(entry, "late.", strlen("late.")) == 0)
        printf("  %-16s lacks the %ss of %s events: they had expired when the events came\n", report,
               entry + strlen("late."), units_number(value, n));
    return true;
}

/* Import the files. If one cannot be read, go on with the next; a store that fails ends the import. */
static int import_files(struct import *im, char **paths, const atomic_bool *stop)
{
    int status = 0;
    for (; *paths != NULL && !atomic_load(stop); paths++) {
        struct err e = {0};
        if (import_file(im, *paths, &e))
            continue;
        fprintf(stderr, "tallyd import: %s\n", e.text);
        status = e.code;
        if (pipeline_has_failed(im->pipeline))
            break;
    }
    if (!atomic_load(stop))
        return status;
    fprintf(stderr,
            "tallyd import: interrupted; what was read is stored, run the same command again to resume\n");
    return 128 + stop_signal();
}

/* Expire at the end of an import: a run expires as time goes by, but an import may be the last use of a
 * store. The counts are stored, so a retryable failure does not change the exit status. */
static int expire_last(struct import *im, int status)
{
    struct err e;
    uint64_t rows = 0;
    char number[UNITS_NUMBER_BYTES];
    bool good = expire_all(im->store, false, im->stop, im->quiet, &rows, &e);
    if (rows > 0 && !im->quiet)
        printf("%s rows or documents have expired, as of the newest events\n",
               units_number((int64_t)rows, number));
    if (good)
        return status;
    fprintf(stderr, "tallyd import: not everything that expired is deleted yet: %s\n", e.text);
    return status == 0 && !e.retryable ? e.code : status;
}

static int import_all(struct import *im, char **paths)
{
    struct err e = {0};
    const atomic_bool *stop = stop_catch();
    im->stop = stop;
    int status;
    if (open_rejects(im, &e) && open_stores(im, &e)) {
        open_pipeline(im, stop);
        status = import_files(im, paths, stop);
        if (!pipeline_has_failed(im->pipeline))
            status = expire_last(im, status);
        if (!im->quiet)
            account_raws(stdout, im->store->raws, im->store->raw_count);
        if (!im->quiet && !store_books(im->store, print_kept_out, NULL, &e))
            fprintf(stderr, "tallyd import: %s\n", e.text);
    } else {
        fprintf(stderr, "tallyd import: %s\n", e.text);
        status = e.code;
    }
    pipeline_free(im->pipeline);
    if (im->positions != im->store)
        store_close(im->positions);
    store_close(im->store);
    rejects_file_close(&im->rejects_file);
    return status;
}

static bool hand_over_one(const struct import *im, const struct hand_over *h, int fd, const char *path,
                          struct err *e)
{
    struct handover_reply *rp = xcalloc(1, sizeof *rp);
    bool good = hand_over_file(h, fd, path, rp, e);
    struct range begun = {.to = rp->from};
    memcpy(begun.source, rp->source, sizeof begun.source);
    if (good && !im->quiet) {
        fputs(rp->text[0] != '\0' ? rp->text : "empty, nothing to count\n", stdout);
        good = report_books(im, &begun, h->has_config ? h->config : NULL, rp->consumed > 0, e);
    }
    free(rp);
    return good;
}

static int hand_over_all(const struct import *im, const struct hand_over *h, int fd, char **paths)
{
    int status = 0;
    for (; *paths != NULL && !atomic_load(h->stop); paths++) {
        struct err e = {0};
        if (fd < 0)
            fd = hand_over_connect(h);
        bool good = hand_over_one(im, h, fd, *paths, &e);
        fd = -1;
        if (good)
            continue;
        if (!atomic_load(h->stop))
            fprintf(stderr, "tallyd import: %s\n", e.text);
        status = e.code;
    }
    if (fd >= 0)
        close(fd);
    if (!atomic_load(h->stop))
        return status;
    fputs("tallyd import: interrupted; what was read is stored, run the same command again to resume\n",
          stderr);
    return 128 + stop_signal();
}

/* Hand the files to the daemon that writes the store. `fd`: a connection to it. */
static int hand_over(struct import *im, struct hand_over *h, int fd, char **paths)
{
    struct err e;
    if (im->rejects != NULL) {
        close(fd);
        return options_bad_usage("import",
                                 "a daemon writes this store, so its configuration says where rejects go, "
                                 "and not --rejects");
    }
    im->store = store_open(im->config->store.url, STORE_READ, NULL, 0, &e);
    if (im->store == NULL) {
        close(fd);
        fprintf(stderr, "tallyd import: %s\n", e.text);
        return e.code;
    }
    if (!im->quiet)
        fputs("a daemon writes this store: it counts the files, by its own configuration\n", stderr);
    h->stop = stop_catch();
    int status = hand_over_all(im, h, fd, paths);
    if (!im->quiet && !store_books(im->store, print_kept_out, NULL, &e))
        fprintf(stderr, "tallyd import: %s\n", e.text);
    store_close(im->store);
    return status;
}

int cmd_import(int argc, char **argv)
{
    struct import im = {.rejects_file = {.fd = -1}};
    int status = parse_options(&im, &argc, &argv);
    if (status != 0)
        return status == OPTIONS_DONE ? EX_OK : status;
    im.config = options_load_to_decode(im.config_file, im.store_url, &im.decode.steps, &status);
    if (im.config == NULL)
        return status;
    log_set_level(im.config->log.level);
    struct hand_over h = {.config = im.config,
                          .has_config = im.config_file != NULL,
                          .decode = im.decode.text,
                          .source_id = im.source_id,
                          .last_line = im.last_line,
                          .force = im.force,
                          .quiet = im.quiet};
    int fd = im.dry_run ? -1 : hand_over_connect(&h);
    status = fd >= 0 ? hand_over(&im, &h, fd, argv) : import_all(&im, argv);
    config_free(im.config);
    return status;
}
