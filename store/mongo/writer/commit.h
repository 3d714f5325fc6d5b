/* mongo/writer/commit.h - commits the batch under way in the ledger. */
#pragma once

#include "store/mongo/handle/handle.h"

/* Adds the position of a partition to a $set of the ledger; `p` NULL: to a document of `past`. */
void mongo_add_position(struct mongo_store *m, const struct mongo_partition *p, const struct range *range,
                        bson_t *set);
/* Prepares the filter and the update of the commit; a retry sends the same. */
void mongo_prepare_commit(struct mongo_store *m, int64_t seq);
/* False: the outcome is unknown, so call it again. If it returns true with *committed false, *e says why the
 * ledger refused. */
bool mongo_commit(struct mongo_store *m, bool *committed, struct err *e) MUST_CHECK;
