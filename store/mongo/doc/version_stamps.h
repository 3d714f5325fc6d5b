/* mongo/doc/version_stamps.h - the version stamps of months and weeks: which months are in the documents of
 * years, which weeks are in documents of weeks, and who rolls them up. Batches raise them, mongo/job/roll.c
 * and mongo/doc/months.c read them.
 *
 * Shape  : for each report and each target of a roll-up (mongo_targets), a document of `jobs`:
 *
 *            { _id: "rollup/pages", since: ISODate(…),
 *              written: { "202611": 42 },   batches that had counts of the month
 *              rolled:  { "202611": 41 },   how many of them are in R.year
 *              fence: 1795352383541, owner: "…", until: ISODate(…), last_run: ISODate(…), applied,
 *              modified, v }
 *
 *            { _id: "weeks/pages", start: "monday", written: { "20261102": 42 }, … }   same members
 *
 * Written: each batch raises it by one of its updates. So a late event leads to its month again, whatever a
 *          clock says. It never goes back.
 * Rolled : a month is read from R.year if `written` and `rolled` exist and are equal, else from R.month.
 *          Months counted before there were stamps are stamped once, when the job begins: `since`.
 * Lease  : its holder rolls up. Each year or week begins with a new `fence`, which guards its documents
 *          (applied.rollup < fence) and this document (fence = fence). So a holder that was stopped, and
 *          resumes when another has the lease, changes nothing.
 * Weeks  : only a handle that was told to (store_options.weeks) begins them; from then on every writer that
 *          opens the database stamps weeks. A stamp covers seven days: if the weeks of a writer begin on
 *          another day, its stamp leads to both weeks that it touches. `start` is the first day of the weeks
 *          in R.week. `stale`: R.week may have weeks that begin on another day; the job deletes them before
 *          it sets any.
 */
#pragma once

#include "store/mongo/handle/handle.h"

/* Reads the stamps of a report. The caller frees the list; it is empty if there is no document. */
bool mongo_read_stamps(struct mongo_store *m, const struct mongo_target *t, size_t report,
                       struct mongo_version_stamps *stamps, struct err *e) MUST_CHECK;
/* False if the period has no stamp: read it from its own documents. */
bool mongo_is_rolled(const struct mongo_version_stamps *stamps, int64_t start_ms);

/* Reads the stamps in a document of `jobs`; the caller frees the list. */
void mongo_take_stamps(const struct mongo_target *t, const bson_t *document,
                       struct mongo_version_stamps *stamps);
/* The path of a stamp: "written.20261102". */
#define MONGO_STAMP_BYTES 32
const char *mongo_stamp_path(const char *member, const struct mongo_target *t, int64_t start_ms,
                             char buf[MONGO_STAMP_BYTES]);

/* The `_id` of the stamps, and the $inc of a batch that has counts of these periods. */
void mongo_stamp_id(const struct mongo_store *m, const struct mongo_target *t, size_t report,
                    struct text *id);
void mongo_stamp_periods(bson_t *inc, const struct mongo_target *t, const int64_t *starts, size_t count);
/* Are weeks stamped in the database? */
bool mongo_find_weeks(struct mongo_store *m, bool *are_there, struct err *e) MUST_CHECK;
