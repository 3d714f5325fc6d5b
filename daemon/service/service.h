/* service.h - what a daemon does besides counting: signals, status, HTTP, systemd, reloads. It is the same
 * for every source.
 *
 *   service_init()   after the configuration: catches signals, makes the status
 *   service_serve()  page and API; before the store is open, so that probes see a live daemon
 *   service_tick()   several times a second, by the thread whose turns show that the daemon works
 *   service_fini()   after the last batch
 *
 * Owner   : service_fini() frees what the service allocated. `config` belongs to the caller. Only
 *           service_tick() changes its reloadable keys.
 */
#pragma once

#include "config/config.h"
#include "daemon/service/control.h"
#include "daemon/service/notify.h"
#include "stats/rejects.h"
#include "web/server.h"

#include <stdatomic.h>

struct service_options {
    const struct clock *clock;
    struct config *config;
    const char *config_file; /* NULL: built in, so nothing can be reloaded */
    const char *store_url;   /* NULL, or the store's URL, instead of the configured one */
    const char *listen;      /* NULL, or the address, instead of the configured one */
    const char *source;      /* shown to operators */
};

struct service {
    struct service_options options;
    const atomic_bool *stop;
    struct text store; /* store's URL, as it may be shown */
    struct status status;
    struct rejects rejects;
    struct notify notify;
    struct control control; /* `tallyd reload` asks here */
    struct server *server;  /* NULL: http.enabled is false */
};

/* The options of the server that the configuration sets. */
struct server_options service_server_options(const struct config *c);
void service_init(struct service *sv, const struct service_options *options);
void service_fini(struct service *sv);
bool service_serve(struct service *sv, struct err *e) MUST_CHECK;
/* Address of page and API, or "none". */
const char *service_address(const struct service *sv);
/* Logs which lists and databases are open. */
void service_log_data(const struct derive *d);
/* Returns true if the configuration was read again: its reloadable keys may differ. */
bool service_tick(struct service *sv);
