/* mongo/writer/seal.h - the batch under way is sealed in the ledger. */
#pragma once

#include "store/mongo/handle/handle.h"

/* Of the batch under way. */
void mongo_prepare_seal(struct mongo_store *m, int64_t seq);
/* False where nobody knows: call it again. Else *sealed, or *e says why the ledger has another mind. */
bool mongo_seal(struct mongo_store *m, bool *sealed, struct err *e);
