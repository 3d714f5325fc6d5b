/* mongo/writer/past.h - positions of ended files, in the collection `past` (docs/LEDGER.md, "Past").
 * A claim brings them back; retire.h moves them there.
 *
 *   past   { _id: "file:4096:9f…/", source, partition: "", label, next, tail_hash, tail_len, latest_ms,
 *            witnesses, epoch }                  the `_id` of its books; next: -1 if it was taken out again
 *
 * Exact  : a document of `past` has the position as it was in the ledger, and its epoch. It is written before
 *          the position leaves the ledger, and never replaced by one of an older epoch. A position that is in
 *          both counts as the ledger has it, also if the ledger has `held` alone: it was taken out there.
 * Errors : as those of a claim (store.h). Call it again.
 */
#pragma once

#include "store/mongo/handle/handle.h"

/* The `_id` in `past` of a source; valid until the next call. */
struct slice mongo_past_id(struct mongo_store *m, const char *source);
/* Brings positions of partitions back that are just claimed. `ledger` is the ledger since the claim, and then
 * the one with these positions. *held: the claims still hold. */
bool mongo_return(struct mongo_store *m, const struct mongo_partition *partitions, size_t count,
                  bson_t *ledger, bool *held, struct err *e) MUST_CHECK;
/* The epoch of a partition, also if it is in `past`; -1: it has none. */
bool mongo_epoch_of(struct mongo_store *m, const bson_t *ledger, const struct mongo_partition *p,
                    int64_t *epoch, struct err *e) MUST_CHECK;
/* A claimed file is about to be taken out of the ledger: no position in `past` holds from now on. */
bool mongo_void_past(struct mongo_store *m, const struct mongo_partition *p, struct err *e) MUST_CHECK;
