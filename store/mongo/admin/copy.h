/* mongo/admin/copy.h - what backup and restore of a database share, and what writers know of it.
 *
 * Why a backup beside writers is whole (docs/LEDGER.md, "Backup"): documents are copied one after the other,
 * each as it is at its moment; then the ledger; and with it the log of every batch that was sealed since the
 * first of them was copied. Restore carries out these logs under their guards, as a recovery does: so each
 * document has what the ledger says, whenever it was copied.
 *
 *   ledger    { …, backups: { ID: { until: ISODate(…), owner: "host 4711" } } }   while they go on
 *             { …, restoring: { since: ISODate(…) } }   of a copy, and until it is restored: nobody counts
 *   batches   { _id: "w0/…", zstd, prev: 41 }           the batch that the slot had sealed before this one
 *
 * Held   : while a backup goes on, writers delete no logs. They ask before they do. At the end the backup
 *          checks that it has all logs, one by one, by `prev`: else it fails.
 */
#pragma once

#include "store/mongo/admin/dump.h"
#include "store/mongo/handle/handle.h"

/* ---- mongo/admin/owned.c */

/* A collection of tallyd's: `listed` is what the server lists of it, `name`, `type`, `options`. */
typedef bool mongo_owned_fn(void *context, const struct mongo_place *place, const bson_t *listed,
                            struct err *e); /* false ends the walk */
/* Those of the database, and those of its raw events in databases of their own. `also`: collections of these
 * names are tallyd's, too; NULL: none. */
bool mongo_each_owned(struct mongo_store *m, const struct mongo_dump *also, mongo_owned_fn *fn, void *context,
                      struct err *e) MUST_CHECK;
bool mongo_is_raw(const struct mongo_place *place);
