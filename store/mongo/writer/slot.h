/* mongo/writer/slot.h - this writer's slot: takes it, renews its lease, gives it back (docs/LEDGER.md,
 * "take"). */
#pragma once

#include "store/mongo/handle/handle.h"

/* Takes a free slot unless the writer has one, and recovers its open batch. */
bool mongo_need_slot(struct mongo_store *m, struct err *e) MUST_CHECK;
/* Renews the lease now and then, and recovers batches of writers that are gone, if possible. */
bool mongo_keep_slot(struct mongo_store *m, struct err *e) MUST_CHECK;
/* MongoDB has no snapshots to lock: fails if a batch is under way. EX_TEMPFAIL, retryable. */
bool mongo_hold(struct store *st, struct err *e) MUST_CHECK;
