/* mongo/doc/stamps.h - which months are in the documents of years, which weeks in theirs, and who brings them
 * there.
 *
 * Shape  : of each report a document of `jobs` for each kind that is rolled up (mongo_targets):
 *
 *            { _id: "rollup/pages", since: ISODate(…),
 *              written: { "202611": 42 },   batches that had counts of the month
 *              rolled:  { "202611": 41 },   of which so many are in R.year
 *              fence: 1795352383541, owner: "…", until: ISODate(…), last_run: ISODate(…), applied,
 *              modified, v }
 *
 *            { _id: "weeks/pages", start: "monday", written: { "20261102": 42 }, … }   likewise
 *
 * Written: by each batch, as one of its updates; so a late event leads to its month again, whatever a clock
 *          says. It never goes back.
 * Rolled : a month is taken from R.year where both are there and the same, else from R.month. Months that the
 *          database had before there were stamps are stamped once, when the job begins: `since`.
 * Lease  : whoever holds it rolls up. `fence` is another one for each year or week that is begun, and guards
 *          what is written of it (applied.rollup < fence in a document, fence = fence here): one that was
 *          stopped in between, and goes on when another has taken its place, changes nothing.
 * Weeks  : only a handle that was told to (store_options.weeks) begins them; from then on whoever opens the
 *          database to write stamps them. A stamp is of seven days, whichever those are: one of a writer
 *          whose weeks begin on another day leads to both weeks that it touches. `start` is the day on which
 *          the weeks in R.week begin. `stale`: there may be others, to be deleted before anything is set.
 */
#pragma once

#include "store/mongo/handle/handle.h"

/* What the document of a lease says. */
int64_t mongo_lease_until(const bson_t *document);
int64_t mongo_lease_last_run(const bson_t *document);
void mongo_lease_owner(const bson_t *document, char owner[MONGO_OWNER_BYTES]);

/* The caller frees the list; none where there is no document. */
bool mongo_read_stamps(struct mongo_store *m, const struct mongo_target *t, size_t report,
                       struct mongo_stamps *stamps, struct err *e);
/* Of one without a stamp nobody knows: it is read from its own documents. */
bool mongo_is_rolled(const struct mongo_stamps *stamps, int64_t start_ms);

/* What a document of `jobs` says; the caller frees the list. */
void mongo_take_stamps(const struct mongo_target *t, const bson_t *document, struct mongo_stamps *stamps);
/* "written.20261102" */
#define MONGO_STAMP_BYTES 32
const char *mongo_stamp_path(const char *member, const struct mongo_target *t, int64_t start_ms,
                             char buf[MONGO_STAMP_BYTES]);

/* Into the update of a batch that has counts of these periods. */
void mongo_stamp_id(const struct mongo_store *m, const struct mongo_target *t, size_t report,
                    struct text *id);
void mongo_stamp_periods(bson_t *inc, const struct mongo_target *t, const int64_t *starts, size_t count);
/* Are weeks stamped in the database? */
bool mongo_find_weeks(struct mongo_store *m, bool *are_there, struct err *e);
