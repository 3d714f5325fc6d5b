/* mongo/writer/take.h - takes a file out of the documents again: the operations of store/forget.h.
 *
 * Stripe : a batch with the opposites of a stripe's counts. Its commit moves `next` back, by a
 *          compare-and-set of the ledger, where the claim has brought the position. So the counts of a stripe
 *          are taken out whole or not at all, also if another writer recovers the batch.
 * Last   : the stripe from 0 removes the position. The partition's epoch stays in the ledger, and the books'
 *          document stays without entries, since it guards against a late recovery (docs/LEDGER.md).
 */
#pragma once

#include "store/mongo/handle/handle.h"

/* Claims the file. EX_TEMPFAIL: another writer lives, or has just counted more of it. EX_UNAVAILABLE: raw
 * events of it are stored. EX_CONFIG: it was also counted in generations that count no more. */
bool mongo_take_begin(struct store *st, const struct range *of, struct err *e) MUST_CHECK;
/* EX_DATAERR: the documents do not have these counts. Nothing is written. */
bool mongo_take_check(struct store *st, const struct batch *batch, const bool *reports,
                      struct err *e) MUST_CHECK;
bool mongo_take_stripe(struct store *st, const struct batch *batch, const bool *reports,
                       struct err *e) MUST_CHECK;
