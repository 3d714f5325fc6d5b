#include "daemon/service/service.h"

#include "base/log.h"
#include "config/config_read.h"
#include "config/reload.h"
#include "daemon/service/stop.h"
#include "web/listen.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static struct query_limits query_limits_of(const struct config *c)
{
    return (struct query_limits){(uint64_t)c->query.rows_max,
                                 (uint64_t)c->query.points_max,
                                 (uint64_t)c->query.series_max,
                                 (uint64_t)c->query.response_bytes_max,
                                 (uint64_t)c->query.sketch_bytes_max,
                                 (uint64_t)c->query.memory_bytes_max,
                                 c->query.week_start,
                                 c->query.timeout_ms};
}

void service_init(struct service *sv, const struct service_options *options)
{
    const struct config *c = options->config;
    *sv = (struct service){.options = *options, .control = {.listen_fd = -1, .asker_fd = -1}};
    log_set_level(c->log.level);
    sv->stop = stop_catch();
    stop_catch_reload();
    stop_within(c->run.stop_timeout_ms);
    notify_init(&sv->notify, options->clock);
    text_url(&sv->store, slice_text(c->store.url));
    status_init(&sv->status, &(struct status_options){.clock = options->clock,
                                                      .store = sv->store.ptr,
                                                      .source = options->source,
                                                      .reports = c->reports,
                                                      .report_count = c->report_count,
                                                      .lag_max = c->http.lag_max});
    rejects_init(&sv->rejects, options->clock, (size_t)c->limits.line_max);
    for (size_t i = 0; i < c->source_count; i++)
        rejects_add_source(&sv->rejects, c->sources[i].name);
}

void service_fini(struct service *sv)
{
    server_stop(sv->server);
    control_close(&sv->control);
    rejects_fini(&sv->rejects);
    status_fini(&sv->status);
    text_fini(&sv->store);
    log_limit_tell(INT64_MAX);
}

struct server_options service_server_options(const struct config *c)
{
    return (struct server_options){
        .store_url = c->store.url,
        .listen = c->http.listen,
        .connections_max = (unsigned)c->http.connections_max,
        .per_address_max = (unsigned)c->http.per_address_max,
        .sending_max = SERVER_SENDING_FACTOR * (uint64_t)c->query.response_bytes_max,
        .streams_max = (unsigned)c->http.streams_max,
        .timeout_ms = c->http.timeout_ms,
        .token = c->http.token,
        .tls_cert = c->http.tls_cert,
        .tls_key = c->http.tls_key,
        .limits = query_limits_of(c),
    };
}

bool service_serve(struct service *sv, struct err *e)
{
    const struct config *c = sv->options.config;
    struct server_options options = service_server_options(c);
    if (sv->options.listen != NULL)
        options.listen = sv->options.listen;
    options.clock = sv->options.clock;
    options.status = &sv->status;
    options.rejects = &sv->rejects;
    if (!control_open(&sv->control, e))
        return false;
    if (!c->http.enabled)
        return true;
    sv->server = server_start(&options, e);
    if (sv->server != NULL && c->http.token == NULL && !listen_is_loopback(server_address(sv->server)))
        log_warn("http_is_open",
                 "listen=%s reason=\"there is no http.token: anyone who can connect can read all counts\"",
                 server_address(sv->server));
    return sv->server != NULL;
}

const char *service_address(const struct service *sv)
{
    return sv->server != NULL ? server_address(sv->server) : "none";
}

static void log_problems(struct slice problems)
{
    char quoted[LOG_QUOTE_BYTES];
    while (problems.len > 0) {
        const char *end = memchr(problems.ptr, '\n', problems.len);
        size_t len = end != NULL ? (size_t)(end - problems.ptr) : problems.len;
        char line[LOG_QUOTE_BYTES];
        snprintf(line, sizeof line, "%.*s", (int)len, problems.ptr);
        log_error("reload_problem", "problem=%s", log_quote(line, quoted));
        size_t gone = end != NULL ? len + 1 : len;
        problems = slice_of(problems.ptr + gone, problems.len - gone);
    }
}

/* Load the configuration again. NULL: it has errors, which were logged and are in `problems`. */
static struct config *load_next(const struct service *sv, struct text *problems)
{
    struct err e;
    int code;
    struct config *next = config_load(sv->options.config_file, problems, &code);
    if (next == NULL)
        log_problems(text_slice(problems));
    else if (sv->options.store_url != NULL && !config_set_store(next, sv->options.store_url, &e))
        check_failed("the store's URL was good before", __FILE__, __LINE__, __func__);
    return next;
}

static void use_new_values(struct service *sv)
{
    const struct config *c = sv->options.config;
    struct query_limits limits = query_limits_of(c);
    log_set_level(c->log.level);
    stop_within(c->run.stop_timeout_ms);
    status_set_lag_max(&sv->status, c->http.lag_max);
    if (sv->server != NULL)
        server_set_limits(sv->server, &limits);
}

static void log_reload(const struct reload *found)
{
    char quoted[LOG_QUOTE_BYTES];
    log_info("reloaded", "changed=%s", log_quote(found->taken.ptr, quoted));
    if (found->restart.len > 0)
        log_warn("reload_kept", "keys=%s reason=\"they need a restart\"",
                 log_quote(found->restart.ptr, quoted));
}

void service_log_data(const struct derive *d)
{
    char quoted[LOG_QUOTE_BYTES];
    struct text lines = {0};
    derive_print(d, "", &lines);
    for (char *line = lines.ptr, *end; line != NULL && *line != '\0'; line = end + 1) {
        end = strchr(line, '\n');
        *end = '\0';
        log_info("database", "is=%s", log_quote(line, quoted));
    }
    text_fini(&lines);
}

/* Reads lists and databases anew. */
static bool reload_data(struct service *sv, struct text *said)
{
    struct err e;
    bool is_new;
    char quoted[LOG_QUOTE_BYTES];
    if (!derive_reload(&sv->options.config->derive, &is_new, &e)) {
        log_error("database_failed", "error=%s next=\"the lists and databases in use stay\"",
                  log_quote(e.text, quoted));
        text_printf(said, "%s: the lists and databases in use stay\n", e.text);
        return false;
    }
    if (is_new)
        service_log_data(&sv->options.config->derive);
    return true;
}

/* `said` becomes what is said to the one who asked: problems, and what needs a restart. False: there are
 * problems. *is_taken: the keys are those of the new configuration. */
static bool reload(struct service *sv, struct text *said, bool *is_taken)
{
    struct reload found;
    if (sv->options.config_file == NULL) {
        log_warn("reload_failed", "reason=\"there is no configuration file (-c)\"");
        text_puts(said, "there is no configuration file (-c)\n");
        return false;
    }
    struct config *next = load_next(sv, said);
    if (next == NULL) {
        log_error("reload_failed", "next=\"the running configuration stays in effect\"");
        return false;
    }
    reload_take(sv->options.config, next, &found);
    use_new_values(sv);
    log_reload(&found);
    if (found.restart.len > 0)
        text_printf(said, "these keys need a restart: %s\n", found.restart.ptr);
    text_fini(&found.taken);
    text_fini(&found.restart);
    config_free(next);
    *is_taken = true;
    return reload_data(sv, said);
}

/* Warn of sources of which all is rejected: most likely their decoding is wrong, while all else looks well.
 */
static void tell_rejected(struct service *sv)
{
    struct text fields = {0};
    while (rejects_tell(&sv->rejects, &fields)) {
        log_limited(LOG_LEVEL_WARN, "all_rejected",
                    "%s next=\"check sources.*.decode; set rejects.file to keep rejected lines\"",
                    fields.ptr);
        text_clear(&fields);
    }
    text_fini(&fields);
}

static bool reload_and_tell(struct service *sv)
{
    struct text said = {0};
    bool is_taken = false;
    notify_reloading(&sv->notify);
    bool is_good = reload(sv, &said, &is_taken);
    notify_reloaded(
        &sv->notify); /* before the answer: systemd must not wait for it once its command has ended */
    control_answer(&sv->control, is_good, text_slice(&said));
    text_fini(&said);
    return is_taken;
}

bool service_tick(struct service *sv)
{
    bool reloaded = false, is_asked = control_take(&sv->control);
    const struct heartbeat *stuck = heartbeats_stuck(&sv->notify.heartbeats, STATUS_SILENCE_MS);
    status_note_stuck(&sv->status, stuck != NULL ? stuck->name : NULL);
    if (atomic_load(sv->stop))
        notify_stopping(&sv->notify, sv->options.config->run.stop_timeout_ms);
    else if (stop_take_reload() || is_asked)
        reloaded = reload_and_tell(sv);
    notify_tick(&sv->notify, &sv->status);
    tell_rejected(sv);
    log_limit_tell(log_now_ms());
    return reloaded;
}
