/* mongo/ledger/copies.h - backups, restores and copies that the ledger knows of, and the format of the
 * database; mongo/admin/copy.h shows the fields.
 *
 *   ledger   { _id: "ledger", v: 5, … }   of an older or a later format: v: 6, needs: "0.4.0"
 *
 * Formats : 1: all positions are in the ledger. 2: those of files that have ended are in `past`
 *           (mongo/writer/retire.h). The first writer raises it (mongo_begin_ledger()). 3: a report
 *           has the key of another one, whose place it took (mongo/job/replace.h). 4: decimals. 5: slots have
 *           seats (seat.h).
 */
#pragma once

#include "store/mongo/handle/handle.h"

#define MONGO_HOLD_MS 600000 /* a backup that has not renewed its note for so long is over */

/* Is a backup under way, by a ledger that was read? */
bool mongo_has_hold(const bson_t *ledger, int64_t now_ms);
/* Is a backup under way? Then writers keep their logs. */
bool mongo_backup_holds(struct mongo_store *m, bool *holds, struct err *e) MUST_CHECK;

/* Removes the notes of backups that have ended; one that goes on, by another clock, fails then. EX_TEMPFAIL:
 * one goes on. */
bool mongo_end_backups(struct mongo_store *m, struct err *e) MUST_CHECK;

/* Is the database a copy that `tallyd admin copy` has begun and not ended? */
bool mongo_is_unfinished(const bson_t *ledger);
/* EX_DATAERR: the database has a format of a later version, which the ledger names. */
bool mongo_check_format(struct mongo_store *m, const bson_t *ledger, struct err *e) MUST_CHECK;
/* May the database be opened? EX_DATAERR: as mongo_check_format(). EX_TEMPFAIL: a restore or copy is under
 * way, or has not ended. */
bool mongo_check_opens(struct mongo_store *m, const bson_t *ledger, struct err *e) MUST_CHECK;
/* Adds the condition that no restore is under way to a filter. */
void mongo_add_restored(bson_t *filter);
