/* mongo/job/weeks.h - deletes the weeks of another first day, when the day on which weeks begin has changed.
 * mongo/job/roll.c calls it under the lease.
 *
 * Order : first the stamps say on which day weeks begin, and that none is rolled up; then the other weeks are
 *         deleted; then the stamps say so. If it was killed in between, the next holder of the lease resumes.
 * Search: a week's `_id` begins with its first day. So it looks for the days that have documents, with one
 *         query for each day.
 */
#pragma once

#include "store/mongo/job/lease.h"

struct mongo_clearing {
    struct mongo_store *m;
    size_t report;
    int64_t fence; /* fence of the lease */
    enum weekday first;
    bool is_new; /* the stamps do not have the new day yet */
    mongo_goes_on_fn *goes_on;
    void *context;
    bool held; /* result; false: another holds the lease, and resumes the job */
};

/* If `goes_on` returned false: false, with *e as goes_on() left it. */
bool mongo_clear_weeks(struct mongo_clearing *c, struct err *e) MUST_CHECK;
