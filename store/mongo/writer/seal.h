/* mongo/writer/seal.h - seals the batch under way in the ledger. */
#pragma once

#include "store/mongo/handle/handle.h"

/* Prepares the filter and the update of the seal; a retry sends the same. */
void mongo_prepare_seal(struct mongo_store *m, int64_t seq);
/* False: the outcome is unknown, so call it again. If it returns true with *sealed false, *e says why the
 * ledger refused. */
bool mongo_seal(struct mongo_store *m, bool *sealed, struct err *e);
