/* mongo/job/weeks.h - weeks begin on one day: documents of those that began on another are deleted.
 *
 * Order : first the stamps say on which day weeks begin, and that none is rolled up; then the others are
 *         deleted; then the stamps say so. Killed in between, whoever has the lease next goes on.
 * Which : a week's `_id` begins with its first day. So the days that there are documents of are looked for,
 *         one query each.
 */
#pragma once

#include "store/mongo/job/lease.h"

struct mongo_clearing {
    struct mongo_store *m;
    size_t report;
    int64_t fence; /* of the lease */
    enum weekday first;
    bool is_new; /* the stamps do not say so yet */
    mongo_goes_on_fn *goes_on;
    void *context;
    bool held; /* afterwards; false: another has the lease, and goes on */
};

/* False with *e as it was where `goes_on` said so. */
bool mongo_clear_weeks(struct mongo_clearing *c, struct err *e);
