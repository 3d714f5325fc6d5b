/* mongo/job/stamping.h - version stamps that jobs write, not batches: for counts from before there were
 * stamps, and for periods that are to be rolled up again. mongo/doc/version_stamps.h shows the document.
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
