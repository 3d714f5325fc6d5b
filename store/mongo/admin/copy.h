/* mongo/admin/copy.h - what backup and restore of a database share. The fields in the ledger are also for
 * writers (mongo/ledger/copies.h).
 *
 * Why a backup beside writers is whole (docs/LEDGER.md, "Backup"): documents are copied one after the other,
 * each as it is at its moment; then the ledger and its seats, in one picture; and with them the log of every
 * batch that was committed since the first document was copied. Restore applies these logs under their
 * guards, as a recovery does. So each document gets all batches that the ledger has, whenever it was copied.
 *
 *   ledger    { …, backups: { ID: { until: ISODate(…), owner: "host 4711" } } }   while backups go on
 *             { …, noted: 3 }                           backups that ever began
 *             { …, restoring: { since: ISODate(…) } }   in a copy, until it is restored: nobody counts
 *             { …, restoring: { …, copy: true } }       while `tallyd admin copy` fills it: admin/fill.h
 *   batches   { _id: "w0/…", zstd, prev: 41, at: … }    as mongo/send/batches.h says
 *
 * Seats  : the copied ledger has all positions. A copied seat has the slot's numbers alone.
 * Past   : while a backup goes on, no position leaves the ledger (mongo/writer/retire.h). So the copy of the
 *          ledger or of `past` has each one.
 * Logs   : while a backup goes on, writers delete no logs; they ask before they do. At the end the backup
 *          checks by `prev` that it has every log, else it fails.
 */
#pragma once

#include "store/mongo/admin/dump.h"
#include "store/mongo/handle/handle.h"

/* ---- mongo/admin/owned.c */

/* Called for a collection of tallyd. `listed`: the server's description of it, { name, type, options }. */
typedef bool mongo_owned_fn(void *context, const struct mongo_place *place, const bson_t *listed,
                            struct err *e); /* false ends the walk */
/* Calls `fn` for the collections of the database, and for those of raw events in databases of their own.
 * `also`: collections that count as tallyd's, too; NULL: none. */
bool mongo_each_owned(struct mongo_store *m, const struct mongo_dump *also, mongo_owned_fn *fn, void *context,
                      struct err *e) MUST_CHECK;
/* The name of one of these collections; "": there is none. */
bool mongo_find_owned(struct mongo_store *m, const struct mongo_dump *also, char found[MONGO_NAME_BYTES],
                      struct err *e) MUST_CHECK;
bool mongo_is_raw(const struct mongo_place *place);
/* Drops all of them but the ledger. `reports` goes last: it says which collections are tallyd's. */
bool mongo_drop_owned(struct mongo_store *m, const struct mongo_dump *also, struct err *e) MUST_CHECK;
