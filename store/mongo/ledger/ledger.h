/* mongo/ledger/ledger.h - reads the ledger: the open batch and the last number of each slot. docs/LEDGER.md
 * shows the document.
 */
#pragma once

#include "store/mongo/handle/handle.h"

/* Reads from the primary; `ledger` is empty if there is none. The caller destroys it. */
bool mongo_read_ledger(struct mongo_store *m, bson_t *ledger, struct err *e) MUST_CHECK;

/* The number of a slot's last batch. */
int64_t mongo_seq_of(const bson_t *ledger, const char *slot);
/* The open batch of a slot; false: none. */
bool mongo_open_of(const bson_t *ledger, const char *slot, struct mongo_open *o);
/* The open batches of all slots; returns their count. */
size_t mongo_all_open(const bson_t *ledger, struct mongo_open open[MONGO_SLOTS]);
bool mongo_read_open(struct mongo_store *m, const char *slot, struct mongo_open *o, struct err *e) MUST_CHECK;
