/* mongo/job/stamping.h - stamps that others than batches write: of what was counted before there were stamps,
 * and of what is rolled up, by whoever holds the lease. mongo/doc/stamps.h shows the document.
 */
#pragma once

#include "store/mongo/doc/stamps.h"

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
