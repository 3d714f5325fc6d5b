/* mongo/writer/enough.h - do documents have what a batch is to take out? apply.c asks before the batch is
 * logged: an update that was committed cannot be refused any more.
 */
#pragma once

#include "store/mongo/handle/handle.h"

/* Asks for the logs of mongo_write_opposites(). EX_DATAERR: a document is missing, or has fewer events, or a
 * sum that has reached the end of int64. The documents of expired buckets may be missing. */
bool mongo_check_enough(struct mongo_store *m, struct err *e) MUST_CHECK;
