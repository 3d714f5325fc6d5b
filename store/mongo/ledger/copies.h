/* mongo/ledger/copies.h - what the ledger says of backups and restores, which mongo/admin/copy.h shows. */
#pragma once

#include "store/mongo/handle/handle.h"

#define MONGO_HOLD_MS 600000 /* after so long without a word, a backup holds nothing any more */

/* Is any under way? A writer's logs are to stay then. */
bool mongo_backup_holds(struct mongo_store *m, bool *holds, struct err *e) MUST_CHECK;

/* EX_TEMPFAIL: the ledger says that a restore is under way, or was not ended. */
bool mongo_check_restored(struct mongo_store *m, const bson_t *ledger, struct err *e) MUST_CHECK;
/* … it does not, into a filter. */
void mongo_add_restored(bson_t *filter);
