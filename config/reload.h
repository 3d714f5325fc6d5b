/* reload.h - applies a new configuration to a running daemon: the keys that its table calls reloadable.
 *
 * Table  : a key of keys.def whose `reload` is YES is applied. All other changes wait for a restart: other
 *          keys, and sources and reports that were added or removed.
 * Owner  : the running configuration is changed in place. Its strings and lists are not reloadable, since
 *          threads may be reading them.
 * Threads: the caller's; no other thread may read the reloadable members of `running` meanwhile.
 */
#pragma once

#include "config/config.h"

/* Lists for the log; "": none. The caller frees both. */
struct reload {
    struct text taken;   /* "aggregate.flush=500ms, log.level=debug" */
    struct text restart; /* "http.listen, sources.access.path, reports.errors (new)" */
};

void reload_take(struct config *running, const struct config *next, struct reload *found);
