/* mongo/send/chunk.h - applies a chunk, which is some updates of a batch's log, with a few commands. send.c
 * calls it.
 *
 * Exact  : as docs/LEDGER.md says of "apply". Chunks of one batch may be applied in any order and at the same
 *          time: each document has its own guard.
 * Alike  : updates that differ only in their document are first sent as one update of many. It makes no
 *          document, and knows documents by `_id` alone: it also updates one whose metadata others have
 *          changed, which an update of one document refuses (EX_DATAERR). Through a router they are not
 *          sent together: without a shard key each shard would be asked.
 * New    : documents that do not exist are inserted together. After an update of many it is known which they
 *          are; else the server is asked (all shards) if the chunk before made many documents.
 * Ahead  : preallocated documents are inserted together; existing ones are left alone.
 * Else   : updates that neither way applied are sent one by one, as upserts.
 * Refused: EX_IOERR names the first document that the server then refuses for good. The rest that it took of
 *          the command is applied.
 * Limits : MONGO_CHUNK_UPDATES and MONGO_CHUNK_BYTES, or the server's limits if lower. The bytes are those of
 *          the log; a command has fewer. A longer update is a chunk of its own.
 * Threads: one per chunk, which has its own client.
 */
#pragma once

#include "store/mongo/handle/handle.h"

struct mongo_chunk {
    struct mongo_client *client;
    const struct mongo_open *of; /* the batch that the updates are from */
    bool one_by_one;             /* send alike updates one by one, too */
    char collection[MONGO_NAME_BYTES];
    struct text raw; /* updates, one behind the other */
    size_t at[MONGO_CHUNK_UPDATES];
    const char *ids[MONGO_CHUNK_UPDATES]; /* `_id`s within `raw`, while the chunk is applied */
    size_t count;
    size_t made;    /* documents that the chunk made */
    bool is_ahead;  /* all updates only preallocate documents */
    bool finds_new; /* the chunk before made many documents: worth looking for new ones */
};

/* Applies the chunk. When it returns true, all is applied and the chunk is empty. */
bool mongo_chunk_apply(struct mongo_chunk *c, struct err *e) MUST_CHECK;
