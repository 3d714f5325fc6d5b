/* mongo/ledger/ledger.h - the ledger as it is read: who has a batch that is open, and the number of its last
 * one. docs/LEDGER.md shows the document. */
#pragma once

#include "store/mongo/handle/handle.h"

/* As the primary has it; empty where there is none. The caller destroys it. */
bool mongo_read_ledger(struct mongo_store *m, bson_t *ledger, struct err *e);

/* The number of a slot's last batch. */
int64_t mongo_seq_of(const bson_t *ledger, const char *slot);
/* What is open in a slot; false: nothing. */
bool mongo_open_of(const bson_t *ledger, const char *slot, struct mongo_open *o);
/* … in all of them; how many. */
size_t mongo_all_open(const bson_t *ledger, struct mongo_open open[MONGO_SLOTS]);
bool mongo_read_open(struct mongo_store *m, const char *slot, struct mongo_open *o, struct err *e);
