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

/* Weeks begin on job->what->week_start. `is_new`: the stamps do not have that day yet. Fails as
 * mongo/job/lease.h says. */
bool mongo_clear_weeks(struct mongo_job *job, bool is_new) MUST_CHECK;
