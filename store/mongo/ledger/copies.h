/* mongo/ledger/copies.h - backups and restores that the ledger knows of; mongo/admin/copy.h shows the
 * fields. */
#pragma once

#include "store/mongo/handle/handle.h"

#define MONGO_HOLD_MS 600000 /* a backup that has not renewed its note for so long is over */

/* Is a backup under way? Then writers keep their logs. */
bool mongo_backup_holds(struct mongo_store *m, bool *holds, struct err *e) MUST_CHECK;

/* Is the database a copy that `tallyd admin copy` has begun and not ended? */
bool mongo_is_unfinished(const bson_t *ledger);
/* EX_TEMPFAIL: the ledger says that a restore or copy is under way, or has not ended. */
bool mongo_check_restored(struct mongo_store *m, const bson_t *ledger, struct err *e) MUST_CHECK;
/* Adds the condition that no restore is under way to a filter. */
void mongo_add_restored(bson_t *filter);
