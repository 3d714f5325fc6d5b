/* mongo/writer/retire.h - moves positions of files that have ended from the ledger to `past`, and back, so
 * that the ledger stays small however many files were counted (docs/LEDGER.md, "Past"). The writer calls it
 * between batches, and for its claims.
 *
 *   past   { _id: "file:4096:9f…/", source, partition: "", label, next, tail_hash, tail_len, latest_ms,
 *            witnesses, epoch }                  the `_id` of its books; next: -1 if it was taken out again
 *
 * Exact  : a document of `past` has the position as it was in the ledger, and its epoch. It is written before
 *          the position leaves the ledger, and never replaced by one of an older epoch. A position that is in
 *          both counts as the ledger has it.
 * Which  : files of slots without a living writer, and of this one's slot unless the last batch has them; not
 *          those that a daemon follows, by their books. Nothing relies on that: a claim brings any back.
 * Errors : as those of a claim (store.h). Call it again.
 */
#pragma once

#include "store/mongo/handle/handle.h"

#define MONGO_RETIRED_MIN 32  /* with fewer files to move, they stay */
#define MONGO_RETIRED_MAX 500 /* files moved at once */

/* Moves some files, every 20 s. `all`: now, and all that may go. */
bool mongo_retire(struct mongo_store *m, bool all, struct err *e) MUST_CHECK;
/* Brings positions of partitions back that are just claimed. `ledger` is the ledger since the claim, and then
 * the one with these positions. *held: the claims still hold. */
bool mongo_return(struct mongo_store *m, const struct mongo_partition *partitions, size_t count,
                  bson_t *ledger, bool *held, struct err *e) MUST_CHECK;
/* The epoch of a partition, also if it is in `past`; -1: it has none. */
bool mongo_epoch_of(struct mongo_store *m, const bson_t *ledger, const struct mongo_partition *p,
                    int64_t *epoch, struct err *e) MUST_CHECK;
/* A claimed file is about to be taken out of the ledger: no position in `past` holds from now on. */
bool mongo_void_past(struct mongo_store *m, const struct mongo_partition *p, struct err *e) MUST_CHECK;
