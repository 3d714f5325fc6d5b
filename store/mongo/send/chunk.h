/* mongo/send/chunk.h - some updates of a batch's log in one command, and what becomes of those that the
 * server does not take at once.
 *
 * Exact  : as docs/LEDGER.md says of "apply"; chunks of one batch may go in any order, and beside each
 *          other: each document has a guard of its own.
 * Alike  : updates that differ in nothing but their document first go together, as one update of many. It
 *          makes no document, and knows them by `_id` alone: one to which another hand gave other metadata
 *          is added to, which an update of one document refuses (EX_DATAERR). Not through a router: it
 *          names no shard key, so that each shard would be asked.
 * New    : documents that are not there are inserted together; which they are turns out where alike
 *          updates went together, and is asked (of all shards) where the chunk before made many.
 * Ahead  : documents that are made before they are needed are inserted together; those that are there are
 *          left as they are.
 * Else   : what the server took in neither way goes one by one, as an upsert.
 * Refused: the first document that the server does not take then, for good, is named (EX_IOERR); what it
 *          took of the command is applied.
 * Limits : MONGO_CHUNK_UPDATES and _BYTES, or what the server takes if that is less. The bytes are those
 *          of the log; a command has fewer. One update may be longer: it goes alone.
 * Threads: one per chunk, which has a client of its own.
 */
#pragma once

#include "store/mongo/handle/handle.h"

struct mongo_chunk {
    struct mongo_client *client;
    const struct mongo_open *of; /* the batch */
    bool one_by_one;             /* not together what is alike */
    char collection[MONGO_NAME_BYTES];
    struct text raw; /* of updates, one behind the other, … */
    size_t at[MONGO_CHUNK_UPDATES];
    const char *ids[MONGO_CHUNK_UPDATES]; /* in it, of their documents, while it is applied */
    size_t count;
    size_t made;    /* documents, that were not there */
    bool is_ahead;  /* all of them only make documents before they are needed */
    bool finds_new; /* many of the chunk before were: it is worth looking for them */
};

/* Done when it returns true; the chunk is empty then. */
bool mongo_chunk_apply(struct mongo_chunk *c, struct err *e) MUST_CHECK;
