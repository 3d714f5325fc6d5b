/* mongo/writer/retire.h - moves positions of files that have ended to `past` (past.h), so that ledger and
 * seats stay small however many files were counted. The writer calls it between batches.
 *
 * Which  : files of slots without a living writer, and of this one's slot unless the last batch has them; not
 *          those that a daemon follows, by their books. Nothing relies on that: a claim brings any back.
 * Errors : as those of a claim (store.h). Call it again.
 */
#pragma once

#include "store/mongo/handle/handle.h"

#define MONGO_RETIRED_MIN 32  /* with fewer files to move, they stay */
#define MONGO_RETIRED_MAX 500 /* files moved at once */

/* Moves some files, every 20 s. `all`: now, and all that may go. */
bool mongo_retire(struct mongo_store *m, bool all, struct err *e) MUST_CHECK;
