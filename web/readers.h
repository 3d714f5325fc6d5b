/* readers.h - a pool of handles that read the store: each is lent to one thread at a time, and stays open
 * between requests. Called by api.c, prom_api.c and streams.c.
 *
 * Why     : opening a store costs more than most queries, and threads cannot share a handle.
 * Limits  : READERS_MAX idle handles stay open; a further one is closed when it is given back. A handle waits
 *           for a server no longer than the question may take for which it was opened (query.timeout).
 * Threads : any; a handle belongs to the thread that took it until it gives it back.
 */
#pragma once

#include "store/store.h"

#include "web/workers.h"

#include <pthread.h>

#define READERS_MAX (WORKERS_COUNT + 1) /* and one for the thread of streams */

struct readers {
    pthread_mutex_t lock;
    const char *url; /* borrowed */
    const struct clock *clock;
    struct store *idle[READERS_MAX];
    size_t idle_count;
};

void readers_init(struct readers *r, const char *store_url, const struct clock *clock);
void readers_fini(struct readers *r);
/* Reads end with the deadline and take from the share of memory; each may be NULL. NULL: the deadline is
 * over, or the store cannot be opened (yet). */
struct store *readers_take(struct readers *r, struct deadline *deadline, struct share *memory,
                           struct err *e) MUST_CHECK;
/* Gives a handle back. `good`: the store did not fail, so the handle may be lent again. */
void readers_give(struct readers *r, struct store *st, bool good);
