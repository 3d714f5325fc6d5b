/* mongo/writer/commit.h - commits the batch under way, in the slot's seat or in the ledger itself. */
#pragma once

#include "store/mongo/handle/handle.h"

/* Prepares the filter and the update of the commit; a retry sends the same. */
void mongo_prepare_commit(struct mongo_store *m, int64_t seq);
/* False: the outcome is unknown, so call it again. If it returns true with *committed false, *e says why
 * it was refused. */
bool mongo_commit(struct mongo_store *m, bool *committed, struct err *e) MUST_CHECK;
