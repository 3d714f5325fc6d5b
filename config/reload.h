/* reload.h - a new configuration for a daemon that runs: takes over what its table calls reloadable.
 *
 * Table  : a key of keys.def whose `reload` is YES is taken; any other that differs is kept as it is, and
 *          so are sources and reports that were added, removed or changed: a restart takes those.
 * Owner  : the running configuration is changed in place. Its strings are not: threads may be reading them
 *          (no string or list is reloadable).
 * Threads: the caller's, while nobody else reads the reloadable members of `running`.
 */
#pragma once

#include "config/config.h"

/* For the log, "" where there are none; the caller frees both. */
struct reload {
    struct text taken;   /* "aggregate.flush=500ms, log.level=debug" */
    struct text restart; /* "http.listen, sources.access.path, reports.errors (new)" */
};

void reload_take(struct config *running, const struct config *next, struct reload *found);
