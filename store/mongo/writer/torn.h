/* mongo/writer/torn.h - checks that documents are not newer than the ledger. */
#pragma once

#include "store/mongo/handle/handle.h"

#define MONGO_BATCHES_ASKED 16 /* batches that are checked after a claim */
/* EX_DATAERR: a document of the log has a number, of any slot, that the ledger never gave. */
bool mongo_check_torn(struct mongo_store *m, struct err *e) MUST_CHECK;
