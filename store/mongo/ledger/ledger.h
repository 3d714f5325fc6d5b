/* mongo/ledger/ledger.h - reads the ledger: the open batch and the last number of each slot. docs/LEDGER.md
 * shows the document.
 */
#pragma once

#include "store/mongo/handle/handle.h"

/* Reads from the primary; `ledger` is empty if there is none. The caller destroys it.
 * A writer decides by what it reads, so that must be neither old nor taken back later. A member that is no
 * primary any more, and does not know it yet, answers reads by an old state. Only the read concern
 * `linearizable` prevents that, and not every server has it. So a writer reads by an update that changes
 * nothing: only the present primary can acknowledge it by a majority, and then all that it shows stays
 * (docs/mongodb.md). */
bool mongo_read_ledger(struct mongo_store *m, bson_t *ledger, struct err *e) MUST_CHECK;

/* The number of a slot's last batch. */
int64_t mongo_seq_of(const bson_t *ledger, const char *slot);
/* The open batch of a slot; false: none. */
bool mongo_open_of(const bson_t *ledger, const char *slot, struct mongo_open *o);
/* The open batches of all slots; returns their count. */
size_t mongo_all_open(const bson_t *ledger, struct mongo_open open[MONGO_SLOTS]);
/* Reads it as a writer does, by any connection. */
bool mongo_confirm_ledger(struct mongo_client *client, bson_t *ledger, struct err *e) MUST_CHECK;
bool mongo_read_open(struct mongo_store *m, const char *slot, struct mongo_open *o, struct err *e) MUST_CHECK;
