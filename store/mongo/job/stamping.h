/* mongo/job/stamping.h - stamps that jobs write, not batches: for counts from before there were stamps, and
 * for periods that are rolled up, by the holder of the lease. mongo/doc/version_stamps.h shows the document.
 */
#pragma once

#include "store/mongo/doc/version_stamps.h"

/* Stamps all that was counted before there were stamps, unless that is done already. `first`: first day of
 * weeks. */
bool mongo_begin_stamps(struct mongo_store *m, const struct mongo_target *t, size_t report,
                        enum weekday first, struct err *e) MUST_CHECK;
/* Raises the stamps of [from_ms, to_ms), so that these periods are rolled up again, even if they had no
 * stamp. */
bool mongo_stamp_again(struct mongo_store *m, const struct mongo_target *t, size_t report, enum weekday first,
                       int64_t from_ms, int64_t to_ms, struct err *e) MUST_CHECK;

/* Takes the lease, or renews our own, which has this `fence` (0: none yet). *taken false: another holds it.
 * Else `stamps` are those of that moment, with the new fence. */
bool mongo_take_lease(struct mongo_store *m, const struct mongo_target *t, size_t report, int64_t fence,
                      bool *taken, struct mongo_version_stamps *stamps, struct err *e) MUST_CHECK;
/* Renews the lease; *held false: another holds it now. */
bool mongo_keep_lease(struct mongo_store *m, const struct mongo_target *t, size_t report, int64_t fence,
                      bool *held, struct err *e) MUST_CHECK;
bool mongo_give_lease(struct mongo_store *m, const struct mongo_target *t, size_t report, int64_t fence,
                      struct err *e) MUST_CHECK;
/* Sets `rolled` of these periods to `written` as it was when the lease was taken. */
bool mongo_stamp_rolled(struct mongo_store *m, const struct mongo_target *t, size_t report, int64_t fence,
                        const struct mongo_version_stamp *stamps, size_t count, bool *held,
                        struct err *e) MUST_CHECK;
/* Changes the day on which weeks begin. All weeks must be rolled up again. */
bool mongo_stamp_start(struct mongo_store *m, size_t report, int64_t fence, enum weekday first, bool *held,
                       struct err *e) MUST_CHECK;
/* Clears `stale`: weeks of the old day are deleted. */
bool mongo_stamp_fresh(struct mongo_store *m, size_t report, int64_t fence, bool *held,
                       struct err *e) MUST_CHECK;
