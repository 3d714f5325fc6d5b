#include "cli/commands.h"

#include "base/log.h"
#include "base/mem.h"
#include "cli/options.h"
#include "config/address.h"
#include "daemon/count/jobs.h"
#include "daemon/service/service.h"
#include "daemon/setup.h"
#include "daemon/source.h"
#include "daemon/topic/consume.h"
#include "daemon/topic/topic.h"
#include "store/backend/backend.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Interval of looking at a source that is empty or has ended. */
#define IDLE_MS          250
#define STORE_WAIT_MAX_S 10

static const char usage[] =
    "usage: tallyd run [OPTIONS]\n"
    "\n"
    "Counts live sources and serves the page and the API, until SIGINT or SIGTERM. The configuration names\n"
    "any number of Kafka topics (type: kafka), or one file, or standard input. Counting resumes at the\n"
    "position in the store. A file is followed while it grows and is rotated.\n"
    "\n"
    "  -c, --config FILE   configuration (default: built in: standard input)\n"
    "      --store URL     store to count into (default: sqlite:tallyd.db)\n"
    "      --listen ADDR   address to serve on (default: 127.0.0.1:8080); port 0 takes a free one\n"
    "      --accept TOPIC  count a topic that was refused, since it was re-created or lost records before "
    "they\n"
    "                      were counted; TOPIC~ counts it as a new topic. May be repeated\n"
    "  -h, --help          this text\n"
    "\n"
    "  tallyd run -c tallyd.yaml\n"
    "  tail -n 0 -F /var/log/apache2/access.log | tallyd run\n"
    "\n"
    "Signals: HUP reads the configuration again; TERM and INT store what was read, and end.\n"
    "A pipe cannot be resumed: tallyd does not notice what it missed, nor what comes through it twice.\n";

struct run {
    struct config *config;
    const char *config_file, *store_url, *listen;
    const char *accepted[CONSUME_ACCEPT_MAX];
    size_t accepted_count;
    struct service service;
    struct store *store;
    struct pipeline *pipeline;
    struct jobs *jobs; /* NULL: the store has no jobs */
    struct flush flush;
    struct pipeline_limits limits; /* limits that the pipeline has now */
    struct source source;
    int64_t last_offset;       /* offset at the last tick */
    struct books over, so_far; /* books of the sources that are over; and those with the current source's */
    bool counting;             /* a source is being counted: the pipeline has its figures */
    bool caught_up;
    struct rejects_file rejects_file;
};

static bool take_accept(void *context, const char *name, const char *value, struct err *e)
{
    struct run *run = context;
    if (run->accepted_count == CONSUME_ACCEPT_MAX)
        return err_set(e, EX_USAGE, "--%s was given too often", name);
    run->accepted[run->accepted_count++] = value;
    return true;
}

static int parse_options(struct run *run, int argc, char **argv)
{
    const struct option_word words[] = {{"config", 'c', .text = &run->config_file},
                                        {"store", .text = &run->store_url},
                                        {"listen", .text = &run->listen},
                                        {"accept", .take = take_accept}};
    const struct command command = {"run", usage, words, COUNT_OF(words), run};
    int code = options_parse(&command, &argc, &argv);
    if (code != 0)
        return code;
    if (run->listen != NULL && !address_is_listen(slice_text(run->listen)))
        return options_bad_usage("run", "--listen takes HOST:PORT, as 127.0.0.1:8080 or [::1]:8080");
    return argc == 0 ? 0
                     : options_bad_usage("run", "it takes its source from the configuration, not from FILE");
}

static bool is_kafka(const struct run *run)
{
    return run->config->sources[0].type == SOURCE_KAFKA;
}

/* Accept any number of topics, or one other source. */
static bool check_sources(const struct run *run, struct err *e)
{
    const struct config *c = run->config;
    for (size_t i = 1; i < c->source_count; i++) {
        if (!is_kafka(run) || c->sources[i].type != SOURCE_KAFKA)
            return err_set(
                e, EX_CONFIG,
                "found sources %s and %s, expected one file, or standard input, or topics of Kafka "
                "only: run one daemon for each, with a store of its own",
                c->sources[0].name, c->sources[i].name);
    }
    for (size_t i = 0; i < run->accepted_count; i++) {
        bool known = false;
        for (size_t k = 0; k < c->source_count; k++)
            known = known || (c->sources[k].type == SOURCE_KAFKA &&
                              topic_accepts(c->sources[k].topic, run->accepted[i]) != ACCEPT_NOT);
        if (!known)
            return err_set(e, EX_USAGE, "--accept %s: there is no source with this topic", run->accepted[i]);
    }
    return true;
}

/* Path of the source; NULL: standard input or topics. */
static const char *source_path(const struct run *run)
{
    const struct config_source *src = &run->config->sources[0];
    return src->type == SOURCE_FILE ? src->path : NULL;
}

static bool is_stopping(const struct run *run)
{
    return atomic_load(run->service.stop);
}

static struct pipeline_limits limits_of(const struct run *run)
{
    return (struct pipeline_limits){.stripe_ms = run->flush.interval_ms,
                                    .future_max_ms = run->config->limits.future_max_ms};
}

/* Give the pipeline its limits: the configuration or the flush interval may have changed. */
static void take_limits(struct run *run)
{
    struct pipeline_limits limits = limits_of(run);
    if (limits.stripe_ms != run->limits.stripe_ms || limits.future_max_ms != run->limits.future_max_ms)
        pipeline_set_limits(run->pipeline, &limits);
    run->limits = limits;
}

/* Update the status, and do what signals ask for. */
static void note(struct run *run, enum status_state state)
{
    const struct pipeline_progress *p = pipeline_progress(run->pipeline);
    struct books *books = &run->so_far;
    books_clear(books);
    books_add(books, &run->over);
    if (run->counting)
        books_add(books, &p->books);
    status_note(&run->service.status, &(struct status_figures){
                                          .state = is_stopping(run) ? STATUS_STOPPING : state,
                                          .books = books,
                                          .messages = books->entries[BOOK_CONSUMED],
                                          .offset = p->offset,
                                          .stored = p->stored,
                                          .shard_bytes = pipeline_bytes(run->pipeline),
                                          .flush_interval_ms = run->flush.interval_ms,
                                      });
    if (service_tick(&run->service))
        flush_limit(&run->flush, run->config->aggregate.flush_ms, run->config->aggregate.flush_max_ms);
    take_limits(run);
}

static void tick(void *context, const struct pipeline_progress *progress)
{
    struct run *run = context;
    note(run, STATUS_COUNTING);
    /* If nothing was read between two ticks, the file has been read up to its end. */
    if (!run->caught_up && source_path(run) != NULL && progress->offset == run->last_offset) {
        log_info("caught_up", "offset=%" PRId64 " consumed=%" PRId64, progress->offset,
                 progress->books.entries[BOOK_CONSUMED]);
        run->caught_up = true;
    }
    run->last_offset = progress->offset;
}

static void idle(struct run *run, enum status_state state)
{
    note(run, state);
    nanosleep(&(struct timespec){.tv_nsec = IDLE_MS * 1000000L}, NULL);
}

/* Open standard input. A stream has no content yet that could identify it: each is a new source. A regular
 * file (`tallyd run <FILE`) is recognised by its content. */
static bool open_stream(struct run *run, struct err *e)
{
    struct stat status;
    struct source_options options = {.line_max = (size_t)run->config->limits.line_max,
                                     .last_line = LAST_LINE_LEAVE,
                                     .stop = run->service.stop};
    if (fstat(STDIN_FILENO, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0)
        return source_open(&run->source, "-", run->store, &options, e);
    struct source *src = &run->source;
    src->in = input_open("-", e);
    if (src->in == NULL)
        return false;
    src->reader = reader_new(src->in, (size_t)run->config->limits.line_max, LAST_LINE_LEAVE);
    snprintf(src->range.source, sizeof src->range.source, "stdin:%" PRId64, clock_wall_ms(&clock_system));
    snprintf(src->range.label, sizeof src->range.label, "standard input");
    return true;
}

static void log_store_away(const struct err *e)
{
    char quoted[LOG_QUOTE_BYTES];
    log_limited(LOG_LEVEL_WARN, "store_away", "error=%s next=\"waiting until it answers\"",
                log_quote(e->text, quoted));
}

/* Open a file. An empty one has no content that could identify it: wait for its first bytes. */
static bool open_file(struct run *run, const char *path, const struct input *before, struct err *e)
{
    struct source_options options = {
        .line_max = (size_t)run->config->limits.line_max, .last_line = LAST_LINE_LEAVE, .before = before};
    while (true) {
        bool good = source_open(&run->source, path, run->store, &options, e);
        if (!good && !e->retryable)
            return false;
        if (!good)
            log_store_away(e);
        if (good && !run->source.is_empty)
            return true;
        if (good)
            /* the successor is empty again: next look for the file that has its place */
            options.before = NULL;
        source_close(&run->source);
        if (is_stopping(run))
            return true;
        idle(run, STATUS_WAITING);
    }
}

static void log_source(const struct run *run)
{
    char label[LOG_QUOTE_BYTES], what[LOG_QUOTE_BYTES];
    const struct range *r = &run->source.range;
    log_info("source_opened", "source=%s id=%s from=%" PRId64, log_quote(r->label, label), r->source, r->to);
    if (run->source.note[0] != '\0')
        log_info("source_known", "source=%s note=%s", label, log_quote(run->source.note, what));
}

/* Serve on after the end of the stream, so that its counts can be queried. */
static void serve_on(struct run *run)
{
    char quoted[LOG_QUOTE_BYTES];
    struct err e;
    log_info("source_ended", "consumed=%" PRId64 " next=\"serving until a signal\"",
             run->over.entries[BOOK_CONSUMED]);
    for (bool good = true; !is_stopping(run); idle(run, STATUS_ENDED)) {
        bool before = good;
        good = pipeline_tidy(run->pipeline, &e);
        if (before && !good)
            log_warn("housekeeping_failed", "error=%s", log_quote(e.text, quoted));
    }
}

static bool count_source(struct run *run, struct err *e)
{
    const struct pipeline_progress *p = pipeline_progress(run->pipeline);
    log_source(run);
    run->counting = true;
    bool good = pipeline_run(run->pipeline, run->source.reader, &run->source.range, e);
    size_t left = reader_left(run->source.reader);
    if (good && left > 0 && !is_stopping(run))
        log_warn("line_left",
                 "bytes=%zu reason=\"the last line is unfinished, and another file has replaced this one\"",
                 left);
    run->counting = false;
    books_add(&run->over, &p->books);
    return good;
}

/* Follow a file, and each file that takes its place. Lines that are written to the old file even later are
 * left to an import: it resumes where this run ended. */
static bool count_files(struct run *run, const char *path, struct err *e)
{
    struct input *before = NULL;
    bool good = true;
    while (good && !is_stopping(run)) {
        good = open_file(run, path, before, e);
        input_close(before);
        good = good && (run->source.reader == NULL || count_source(run, e)); /* NULL: it was stopped */
        before = source_leave(&run->source);
        run->caught_up = false;
    }
    input_close(before);
    return good;
}

static bool count(struct run *run, struct err *e)
{
    const char *path = source_path(run);
    if (path != NULL)
        return count_files(run, path, e);
    bool good = open_stream(run, e) && count_source(run, e);
    source_close(&run->source);
    if (good && !is_stopping(run))
        serve_on(run);
    return good;
}

/* Open the file for rejected lines of a file or pipe; consume.h handles rejected messages. */
static bool open_rejects(struct run *run, struct err *e)
{
    const struct config *c = run->config;
    if (c->rejects.topic != NULL)
        return err_set(
            e, EX_CONFIG,
            "found rejects.topic with a file or standard input as the source, expected rejects.file");
    return c->rejects.file == NULL || rejects_file_open(&run->rejects_file, c->rejects.file, e);
}

static void open_pipeline(struct run *run)
{
    const struct config *c = run->config;
    struct pipeline_options options = setup_pipeline(c, 1);
    options.decode = &c->sources[0].decode;
    options.raw = &c->sources[0].raw;
    flush_init(&run->flush, c->aggregate.flush_ms, c->aggregate.flush_max_ms, 1);
    options.flush = &run->flush;
    options.limits = run->limits = limits_of(run);
    options.follow = source_path(run) != NULL;
    options.tidy = true;
    options.retry = true;
    options.rejects = c->rejects.file != NULL ? &run->rejects_file : NULL;
    options.stop = run->service.stop;
    options.status = &run->service.status;
    options.beats = &run->service.notify.beats;
    options.tick = tick;
    options.context = run;
    run->pipeline = pipeline_new(run->store, c->reports, c->report_count, &options);
}

/* The source's name in logs and status. */
static const char *source_label(const struct run *run)
{
    const char *path = source_path(run);
    if (is_kafka(run))
        return run->config->source_count == 1 ? run->config->sources[0].topic : "topics of Kafka";
    return path != NULL ? path : "standard input";
}

static void log_started(const struct run *run)
{
    char store[LOG_QUOTE_BYTES], source[LOG_QUOTE_BYTES];
    log_info("started", "store=%s source=%s listen=%s", log_quote(run->service.store, store),
             log_quote(source_label(run), source), service_address(&run->service));
}

static void log_stopped(const struct run *run)
{
    log_info("stopped", "consumed=%" PRId64 " rejected=%" PRId64 " stored=%" PRId64,
             run->over.entries[BOOK_CONSUMED], books_rejected(&run->over),
             pipeline_progress(run->pipeline)->stored);
}

static bool count_topics(struct run *run, struct err *e)
{
    struct consume_options options = {.service = &run->service,
                                      .config = run->config,
                                      .store = run->store,
                                      .accepted_count = run->accepted_count};
    memcpy(options.accepted, run->accepted, sizeof options.accepted);
    return consume_run(&options, e);
}

/* Serve and handle signals for `ms`, between two attempts to open the store. */
static void wait_for_store(struct run *run, int64_t ms)
{
    for (; ms >= 0 && !is_stopping(run); ms -= IDLE_MS) {
        status_note(&run->service.status,
                    &(struct status_figures){.state = STATUS_OPENING, .books = &run->so_far});
        service_tick(&run->service);
        nanosleep(&(struct timespec){.tv_nsec = IDLE_MS * 1000000L}, NULL);
    }
}

/* Open the store; wait for a server that is away. */
static bool open_store(struct run *run, struct err *e)
{
    const struct config *c = run->config;
    struct store_options options = setup_store(c);
    options.prealloc = setup_prealloc(c);
    if (is_kafka(run))
        options.writer = setup_writer(c);
    for (int tries = 0; !is_stopping(run); tries++) {
        service_tick(&run->service);
        run->store = store_open_with(c->store.url, STORE_WRITE, &options, c->reports, c->report_count, e);
        status_note_store(&run->service.status, run->store == NULL ? e->text : NULL);
        if (run->store != NULL || !e->retryable || e->code != EX_UNAVAILABLE)
            break;
        if (tries == 0)
            log_store_away(e);
        wait_for_store(run, (tries < STORE_WAIT_MAX_S ? tries + 1 : STORE_WAIT_MAX_S) * 1000);
    }
    return run->store != NULL;
}

/* Was it stopped while it waited for the store? That is no failure. */
static bool is_stopped_early(const struct run *run, const struct err *e)
{
    if (!is_stopping(run) || (e->code != 0 && !e->retryable))
        return false;
    log_info("stopped", "reason=\"a signal came before the store could be opened\"");
    return true;
}

static bool start_jobs(struct run *run, struct err *e)
{
    const struct config *c = run->config;
    if (run->store->jobs == NULL)
        return true;
    run->jobs = jobs_start(&(struct jobs_options){.store_url = c->store.url,
                                                  .clock = &clock_system,
                                                  .rollup_after_ms = c->jobs.rollup_after_ms,
                                                  .weeks = c->jobs.weeks,
                                                  .week_start = c->query.week_start,
                                                  .status = &run->service.status,
                                                  .stop = run->service.stop},
                           e);
    return run->jobs != NULL;
}

static bool run_all(struct run *run, struct err *e)
{
    if (!service_serve(&run->service, e))
        return false;
    if (!open_store(run, e))
        return is_stopped_early(run, e);
    status_note(&run->service.status,
                &(struct status_figures){.state = STATUS_STARTING, .books = &run->so_far});
    if (!start_jobs(run, e))
        return false;
    log_started(run);
    if (is_kafka(run))
        return count_topics(run, e);
    if (!open_rejects(run, e))
        return false;
    open_pipeline(run);
    bool good = count(run, e);
    log_stopped(run);
    return good;
}

/* Is there a source? Standard input is the default, but not a terminal: an operator would have to type. */
static bool has_source(const struct run *run, struct err *e)
{
    if (is_kafka(run) || source_path(run) != NULL || run->config->sources[0].type == SOURCE_STDIN ||
        !isatty(STDIN_FILENO))
        return true;
    return err_set(e, EX_USAGE,
                   "there is no source: pipe lines into it (`tail -F access.log | tallyd run`), or name a "
                   "file in a configuration (`sources: {access: {path: access.log}}`, -c FILE)");
}

static int run_configured(struct run *run)
{
    struct err e = {0};
    const struct config *c = run->config;
    service_init(&run->service, &(struct service_options){.clock = &clock_system,
                                                          .config = run->config,
                                                          .config_file = run->config_file,
                                                          .store_url = run->store_url,
                                                          .listen = run->listen,
                                                          .source = source_label(run)});
    books_init(&run->over, c->report_count);
    books_init(&run->so_far, c->report_count);
    bool good = check_sources(run, &e) && has_source(run, &e) && run_all(run, &e);
    if (!good)
        fprintf(stderr, "tallyd run: %s\n", e.text);
    pipeline_free(run->pipeline);
    store_close(run->store); /* close the writer's handle first: a job may take a while to end */
    jobs_stop(run->jobs);
    service_fini(&run->service);
    rejects_file_close(&run->rejects_file);
    books_fini(&run->over);
    books_fini(&run->so_far);
    return good ? EX_OK : e.code;
}

int cmd_run(int argc, char **argv)
{
    struct run run = {.rejects_file = {.fd = -1}};
    int status = parse_options(&run, argc, argv);
    if (status != 0)
        return status == OPTIONS_DONE ? EX_OK : status;
    run.config = options_load(run.config_file, run.store_url, &status);
    if (run.config == NULL)
        return status;
    mem_keep_freed();
    status = run_configured(&run);
    config_free(run.config);
    return status;
}
