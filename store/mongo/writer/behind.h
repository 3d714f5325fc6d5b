/* mongo/writer/behind.h - what a batch that backfills needs of its partition, while another writer may count
 * from the position on (docs/LEDGER.md, "Backfill"). mongo/writer/apply.c calls it for each such batch.
 *
 * Found : the partition's epoch and its number of fills, before the books are read. The commit compares both,
 *         so no other writer has changed the report's entries meanwhile, nor moved the position back.
 * Claim : only if the batch moves `until`, or neither ledger nor seat has the position. The writer that
 *         counts the partition moves `until`, too, from what it read when it claimed it.
 */
#pragma once

#include "store/mongo/handle/handle.h"

/* Finds the batch's partition, recovers open batches that have events of it, and reads which entries the
 * batch moves, into m->batch. EX_DATAERR: the range is not before the position, or was counted. */
bool mongo_find_behind(struct mongo_store *m, const struct batch *batch, struct err *e) MUST_CHECK;
/* Recovers the open batches of all other writers: see store_settle(). */
bool mongo_settle(struct store *st, struct err *e) MUST_CHECK;
/* The batch is committed: this writer may claim the partition, too. */
void mongo_note_behind(struct mongo_store *m);
