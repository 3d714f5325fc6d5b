/* mongo/writer/begin.h - makes the ledger, and takes over one of an older format. */
#pragma once

#include "store/mongo/handle/handle.h"

/* Creates the ledger unless it exists, raises its format to that of this version, and reads its identity and
 * epoch at the first call. EX_TEMPFAIL: the format is older, and a writer lives, or a backup
 * is taken. */
bool mongo_begin_ledger(struct mongo_store *m, struct err *e) MUST_CHECK;
