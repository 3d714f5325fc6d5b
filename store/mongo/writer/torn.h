/* mongo/writer/torn.h - are documents of a later time than the ledger? */
#pragma once

#include "store/mongo/handle/handle.h"

#define MONGO_BATCHES_ASKED 16 /* after a claim, so many batches */
/* EX_DATAERR: a document that the log is about has a number of any slot that the ledger never gave. */
bool mongo_check_torn(struct mongo_store *m, struct slice packed, struct err *e);
