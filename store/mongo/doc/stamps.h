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

#include "store/mongo/doc/lease.h"

struct mongo_stamp {
    int64_t start_ms; /* of the month, or week */
    int64_t written, rolled;
};

struct mongo_stamps {
    int64_t read_ms; /* monotonic: when they were asked for */
    bool has_begun;  /* all periods with counts are stamped */
    bool is_stale;   /* see `stale` */
    char start[16];  /* of weeks: a weekday's name, or "" */
    int64_t fence;
    int64_t last_run_ms, until_ms; /* of the lease */
    char owner[MONGO_OWNER_BYTES];
    struct mongo_stamp *list; /* by time */
    size_t count, capacity;
};

/* The caller frees the list; none where there is no document. */
bool mongo_read_stamps(struct mongo_store *m, const struct mongo_target *t, size_t report,
                       struct mongo_stamps *stamps, struct err *e);
/* Of one without a stamp nobody knows: it is read from its own documents. */
bool mongo_is_rolled(const struct mongo_stamps *stamps, int64_t start_ms);

/* Into the update of a batch that has counts of these periods. */
void mongo_stamp_id(const struct mongo_store *m, const struct mongo_target *t, size_t report,
                    struct text *id);
void mongo_stamp_periods(bson_t *inc, const struct mongo_target *t, const int64_t *starts, size_t count);
/* Are weeks stamped in the database? */
bool mongo_find_weeks(struct mongo_store *m, bool *are_there, struct err *e);

/* Stamp what was counted before there were stamps; done where it was. `first`: of weeks. */
bool mongo_begin_stamps(struct mongo_store *m, const struct mongo_target *t, size_t report,
                        enum weekday first, struct err *e);
/* Have those of [from_ms, to_ms) rolled up again, also such as nobody stamped. */
bool mongo_stamp_again(struct mongo_store *m, const struct mongo_target *t, size_t report, enum weekday first,
                       int64_t from_ms, int64_t to_ms, struct err *e);

/* *taken false: another has it, and not we, by `fence` (0: not yet). Else `stamps` are those of that moment,
 * with the fence of what is done next. */
bool mongo_take_lease(struct mongo_store *m, const struct mongo_target *t, size_t report, int64_t fence,
                      bool *taken, struct mongo_stamps *stamps, struct err *e);
/* While it goes on; *held false: another has it now. */
bool mongo_keep_lease(struct mongo_store *m, const struct mongo_target *t, size_t report, int64_t fence,
                      bool *held, struct err *e);
bool mongo_give_lease(struct mongo_store *m, const struct mongo_target *t, size_t report, int64_t fence,
                      struct err *e);
/* These are rolled up as they were written when the lease was taken. */
bool mongo_stamp_rolled(struct mongo_store *m, const struct mongo_target *t, size_t report, int64_t fence,
                        const struct mongo_stamp *stamps, size_t count, bool *held, struct err *e);
/* From now on weeks begin on another day: none is rolled up. */
bool mongo_stamp_start(struct mongo_store *m, size_t report, int64_t fence, enum weekday first, bool *held,
                       struct err *e);
/* Those of the day before are deleted. */
bool mongo_stamp_fresh(struct mongo_store *m, size_t report, int64_t fence, bool *held, struct err *e);
