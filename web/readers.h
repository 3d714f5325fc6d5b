/* readers.h - handles to read the store with, kept open between requests and lent to one thread at a time.
 *
 * Why     : opening a store costs more than most queries; a handle belongs to one thread.
 * Limits  : READERS_MAX are kept; a further one that is given back is closed.
 * Threads : any; what was taken is the taker's alone until it gives it back.
 */
#pragma once

#include "store/store.h"

#include <pthread.h>

#define READERS_MAX 5

struct readers {
    pthread_mutex_t lock;
    const char *url; /* borrowed */
    struct store *idle[READERS_MAX];
    size_t idle_count;
};

void readers_init(struct readers *r, const char *store_url);
void readers_fini(struct readers *r);
/* NULL where the store cannot be opened (yet). */
struct store *readers_take(struct readers *r, struct err *e) MUST_CHECK;
/* `good`: the store did not fail, so the handle may serve again. */
void readers_give(struct readers *r, struct store *st, bool good);
