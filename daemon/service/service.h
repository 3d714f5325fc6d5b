/* service.h - what a daemon does besides counting: signals, status, HTTP, systemd, reloads; the same whatever
 * the source.
 *
 *   service_init()   after the configuration: signals are caught, the status exists
 *   service_serve()  the page and the API; before the store is open, so that probes see that it lives
 *   service_tick()   several times a second, by the thread whose turns show that the daemon works
 *   service_fini()   after the last batch
 *
 * Owner   : service_fini() frees what is its own; `config` stays the caller's, and its reloadable keys change
 *           within service_tick() and nowhere else.
 */
#pragma once

#include "config/config.h"
#include "daemon/service/notify.h"
#include "web/server.h"

#include <stdatomic.h>

struct service_options {
    struct config *config;
    const char *config_file; /* NULL: built in, so nothing can be reloaded */
    const char *store_url;   /* NULL, or what is used instead of the configured one … */
    const char *listen;      /* … likewise */
    const char *source;      /* for people */
};

struct service {
    struct service_options options;
    const atomic_bool *stop;
    char store[STORE_URL_BYTES]; /* as it may be shown */
    struct status status;
    struct notify notify;
    struct server *server; /* NULL: http.enabled is false */
    bool said_rejected;    /* that nothing is understood */
};

void service_init(struct service *sv, const struct service_options *options);
void service_fini(struct service *sv);
bool service_serve(struct service *sv, struct err *e) MUST_CHECK;
/* Where it is served, or "none". */
const char *service_address(const struct service *sv);
/* True: the configuration was read again, and reloadable keys of it may differ. */
bool service_tick(struct service *sv);
