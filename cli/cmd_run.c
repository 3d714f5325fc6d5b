#include "cli/commands.h"

#include "base/failpoint.h"
#include "base/log.h"
#include "base/mem.h"
#include "cli/options.h"
#include "config/address.h"
#include "config/network.h"
#include "daemon/count/jobs.h"
#include "daemon/file/desk.h"
#include "daemon/file/follow.h"
#include "daemon/service/service.h"
#include "daemon/setup.h"
#include "daemon/topic/consume.h"
#include "daemon/topic/refill.h"
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
    "any number of Kafka topics, files, and standard input. Counting resumes at the positions in the store. "
    "A\n"
    "file is followed while it grows and is rotated.\n"
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
    struct consume_options topics;
    struct service service;
    struct store *store;
    struct jobs *jobs; /* NULL: the store has no jobs */
    struct books none; /* books of a daemon that counts nothing yet */
};

static bool take_accept(void *context, const char *name, const char *value, struct err *e)
{
    struct run *run = context;
    struct consume_options *topics = &run->topics;
    if (topics->accepted_count == CONSUME_ACCEPT_MAX)
        return err_set(e, EX_USAGE, "--%s was given too often", name);
    topics->accepted[topics->accepted_count++] = value;
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

/* Is each topic of --accept one of the sources? */
static bool check_accepted(const struct run *run, struct err *e)
{
    const struct config *c = run->config;
    for (size_t i = 0; i < run->topics.accepted_count; i++) {
        bool known = false;
        for (size_t k = 0; k < c->source_count; k++)
            known = known || (c->sources[k].type == SOURCE_KAFKA &&
                              topic_accepts(c->sources[k].topic, run->topics.accepted[i]) != ACCEPT_NOT);
        if (!known)
            return err_set(e, EX_USAGE, "--accept %s: there is no source with this topic",
                           run->topics.accepted[i]);
    }
    return true;
}

static bool is_stopping(const struct run *run)
{
    return atomic_load(run->service.stop);
}

static void log_store_away(const struct err *e)
{
    char quoted[LOG_QUOTE_BYTES];
    log_limited(LOG_LEVEL_WARN, "store_away", "error=%s next=\"waiting until it answers\"",
                log_quote(e->text, quoted));
}

/* The name of the sources in logs and status. */
static const char *source_label(const struct config *c)
{
    if (c->source_count > 1)
        return !setup_has_topics(c)        ? "files"
               : setup_count_files(c) == 0 ? "topics of Kafka"
                                           : "topics of Kafka and files";
    const struct config_source *only = &c->sources[0];
    if (only->type == SOURCE_KAFKA)
        return only->topic;
    return only->path_count == 0 ? "standard input" : only->path_count == 1 ? only->paths[0]->text : "files";
}

static void log_started(const struct run *run)
{
    char store[LOG_QUOTE_BYTES], source[LOG_QUOTE_BYTES];
    service_log_data(&run->config->derive);
    log_info("started", "store=%s source=%s listen=%s", log_quote(run->service.store.ptr, store),
             log_quote(source_label(run->config), source), service_address(&run->service));
}

/* Serve and handle signals for `ms`, between two attempts to open the store. */
static void wait_for_store(struct run *run, int64_t ms)
{
    for (; ms >= 0 && !is_stopping(run); ms -= IDLE_MS) {
        status_note(&run->service.status,
                    &(struct status_figures){.state = STATUS_OPENING, .books = &run->none});
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
    if (setup_has_topics(c))
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
    run->jobs = jobs_start(&(struct jobs_options){.clock = &clock_system,
                                                  .store_url = c->store.url,
                                                  .rollup_after_ms = c->jobs.rollup_after_ms,
                                                  .weeks = c->jobs.weeks,
                                                  .week_start = c->query.week_start,
                                                  .status = &run->service.status,
                                                  .stop = run->service.stop},
                           e);
    return run->jobs != NULL;
}

/* Count until the stop: topics, and files beside them. If a topic fails, what was read from files is stored,
 * too: a pipe's lines cannot be read again. */
static bool count(const struct run *run, struct engine *en, struct err *e)
{
    struct consume_options topics = run->topics;
    struct desk *desk = NULL;
    struct err later = {0};
    char quoted[LOG_QUOTE_BYTES];
    topics.engine = en;
    /* first of all, so that the shards know the watermarks before the first event */
    bool good = writer_expire(&en->writer, e);
    if (good && !run->store->is_shared) {
        const struct desk_options options = {.engine = en,
                                             .config = run->config,
                                             .store_url = run->config->store.url,
                                             .line_max = en->feeds.line_max,
                                             .stop = run->service.stop,
                                             .refill = refill_beside};
        good = (desk = desk_start(&options, e)) != NULL;
    }
    if (good && (setup_count_files(run->config) > 0 || desk != NULL))
        good = (topics.files = follow_start(en, desk, e)) != NULL;
    if (good && setup_has_topics(run->config))
        good = consume_run(&topics, e);
    if (good)
        good = follow_run(topics.files, e);
    else if (!en->has_failed && !follow_finish(topics.files, &later) && strcmp(e->text, later.text) != 0)
        log_warn("source_failed", "error=%s", log_quote(later.text, quoted));
    follow_free(topics.files);
    desk_stop(desk);
    engine_note(en);
    failpoint(FAILPOINT_STOP_DRAINED);
    if (good)
        log_info("stopped", "messages=%" PRId64 " consumed=%" PRId64 " rejected=%" PRId64, en->messages,
                 en->books.entries[BOOK_CONSUMED], books_rejected(&en->books));
    return good;
}

static bool run_engine(struct run *run, struct err *e)
{
    const struct config *c = run->config;
    struct engine en;
    size_t topic_threads = setup_has_topics(c) ? (size_t)c->kafka.threads : 0, files = setup_count_files(c);
    const struct engine_options options = {.service = &run->service,
                                           .config = c,
                                           .store = run->store,
                                           .threads = topic_threads + (files > 0 || !run->store->is_shared),
                                           .insist = topic_threads > 0,
                                           .is_of_brokers = files == 0};
    bool good = engine_init(&en, &options, e) && count(run, &en, e);
    engine_fini(&en);
    return good;
}

/* A network_fn. */
static void warn_network_closed(void *context, const char *key, struct slice host)
{
    char quoted[LOG_QUOTE_BYTES], name[LOG_QUOTE_BYTES];
    (void)context;
    snprintf(name, sizeof name, "%.*s", (int)host.len, host.ptr);
    log_warn(
        "network_closed",
        "key=%s host=%s reason=\"the unit allows this computer's own addresses only (IPAddressDeny=): others "
        "need its drop-in network.conf, see `systemd` in operating.md\"",
        key, log_quote(name, quoted));
}

static void check_network(const struct run *run)
{
    const char *network = getenv(NETWORK_VARIABLE);
    if (network != NULL && strcmp(network, NETWORK_CLOSED) == 0)
        network_each_elsewhere(run->config, run->store_url, run->listen, warn_network_closed, NULL);
}

static bool run_all(struct run *run, struct err *e)
{
    check_network(run);
    if (!service_serve(&run->service, e))
        return false;
    if (!open_store(run, e))
        return is_stopped_early(run, e);
    status_note(&run->service.status,
                &(struct status_figures){.state = STATUS_STARTING, .books = &run->none});
    if (!start_jobs(run, e))
        return false;
    log_started(run);
    return run_engine(run, e);
}

/* Is there a source? Standard input is the default, but not a terminal: an operator would have to type. */
static bool has_source(const struct config *c, struct err *e)
{
    if (c->source_count > 1 || c->sources[0].type != SOURCE_FILE || c->sources[0].path_count > 0 ||
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
                                                          .source = source_label(c)});
    books_init(&run->none, c->report_count);
    bool good = check_accepted(run, &e) && has_source(c, &e) && run_all(run, &e);
    if (!good)
        fprintf(stderr, "%stallyd run: %s\n", log_error_prefix(), e.text);
    store_close(run->store); /* close the writer's handle first: a job may take a while to end */
    jobs_stop(run->jobs);
    service_fini(&run->service);
    books_fini(&run->none);
    return good ? EX_OK : e.code;
}

int cmd_run(int argc, char **argv)
{
    struct run run = {0};
    int status = parse_options(&run, argc, argv);
    if (status != 0)
        return status == OPTIONS_DONE ? EX_OK : status;
    run.config = options_load_to_decode(run.config_file, run.store_url, NULL, &status);
    if (run.config == NULL)
        return status;
    mem_keep_freed();
    status = run_configured(&run);
    config_free(run.config);
    return status;
}
