/* mongo/send/recover.h - recovers a batch: applies an open batch from its log, whichever writer committed it.
 * */
#pragma once

#include "store/mongo/handle/handle.h"

/* Removes the open batch from the seat or the ledger, whichever has it: it is applied. */
bool mongo_done(struct mongo_store *m, const struct mongo_open *o, struct err *e) MUST_CHECK;
/* Applies an open batch from its log, and calls mongo_done(). */
bool mongo_recover(struct mongo_store *m, const struct mongo_open *o, struct err *e) MUST_CHECK;
/* Finishes a slot of another writer: applies its open batch, and makes longer documents whole. */
bool mongo_finish_slot(struct mongo_store *m, const bson_t *ledger, const char *slot,
                       struct err *e) MUST_CHECK;
/* Recovers the open batches of writers that are gone, except in our own slot. `goes_on`: warn and go on if a
 * log is damaged or the server refuses it. */
bool mongo_recover_abandoned(struct mongo_store *m, const bson_t *ledger, bool goes_on,
                             struct err *e) MUST_CHECK;
