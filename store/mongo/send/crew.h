/* mongo/send/crew.h - does work in pieces over several connections of the handle. Logs and raw events are
 * sent with it.
 *
 * Order  : pieces begin in the order in which they are taken.
 * Failure: the first error of a piece, of taking one, or of making a connection. No other piece begins.
 * Threads: one per connection while it works; the first connection has the caller's.
 */
#pragma once

#include "store/mongo/handle/handle.h"

struct mongo_crew {
    void *context;
    /* Takes the next piece for a connection, 0 to `most` - 1. It is called under a lock, so it may change
     * what all connections share. *is_taken false: no piece is left. */
    bool (*take)(void *context, size_t connection, bool *is_taken, struct err *e);
    /* Does the piece that the connection has taken. It is called without the lock. */
    bool (*work)(void *context, size_t connection, struct mongo_client *client, struct err *e);
};

/* Does all pieces over at most `most` connections. */
bool mongo_crew_work(struct mongo_store *m, const struct mongo_crew *crew, size_t most,
                     struct err *e) MUST_CHECK;
