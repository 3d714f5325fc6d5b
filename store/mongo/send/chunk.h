/* mongo/send/chunk.h - applies a chunk, which is some updates of a batch's log, with a few commands. send.c
 * calls it.
 *
 * Exact  : as docs/LEDGER.md says of "apply". Chunks of one batch may be applied in any order and at the same
 *          time: each document has its own guard.
 * Many   : updates that differ only in their document, or in their sums, too, are first sent as updates of
 *          many documents (together.h). These insert nothing, and match by `_id` only. So they also update a
 *          document whose metadata another client changed; a single update refuses that (EX_DATAERR). Behind
 *          a router, updates are sent one by one: without a shard key, the router would send them to every
 *          shard.
 * New    : documents that do not exist are inserted together. An update of many shows which ones are missing.
 *          Without one, they are searched for (on all shards) if the chunk before inserted many documents.
 * Series : only have to be there, but their updates have a number, too. They are one update of many, unless
 *          the chunk before made most of its documents: then they are first inserted. So are years and weeks,
 *          which are set, not added to: alike ones go together, under the fence that guards each.
 * Ahead  : preallocated documents are inserted together; existing ones are left alone.
 * Else   : the remaining updates are sent one by one, as upserts.
 * Refused: EX_IOERR names the first document that the server then refuses permanently. The other updates
 *          that the server accepted stay applied.
 * Limits : MONGO_CHUNK_UPDATES and MONGO_CHUNK_BYTES, or the server's limits if lower. The bytes are those of
 *          the log; a command has fewer. A longer update is a chunk of its own.
 * Threads: one per chunk, which has its own client.
 */
#pragma once

#include "store/mongo/send/updates.h"

/* Applies the chunk. When it returns true, all is applied and the chunk is empty. */
bool mongo_chunk_apply(struct mongo_chunk *c, struct err *e) MUST_CHECK;
