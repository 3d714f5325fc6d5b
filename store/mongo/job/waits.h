/* mongo/job/waits.h - since when periods wait for a job, and since when nothing was written to them: as this
 * process has seen it. roll.c and top_job.c call it. Nothing can fail.
 *
 * Due   : a period that is over is due when it was not written to for store_roll.quiet_ms, but at the latest
 *         after MONGO_WAIT_MAX_MS.
 * Owner : the handle, by report and job (`waits` of struct mongo_report).
 */
#pragma once

#include "store/jobs.h"
#include "store/mongo/handle/handle.h"

#define MONGO_WAIT_MAX_MS (15 * MINUTE_MS)

void mongo_waits_add(struct mongo_waits *w, const struct mongo_wait *one);
/* Sorts what waits now, takes over what is known of the same periods, and is what is known from now on. */
void mongo_waits_follow(struct mongo_waits *known, struct mongo_waits *now, const struct mongo_store *m);
bool mongo_wait_is_over(const struct mongo_wait *one, const struct mongo_store *m);
bool mongo_wait_is_due(const struct mongo_wait *one, const struct store_roll *what,
                       const struct mongo_store *m);
/* The job has tried the period: if it waits again, it begins anew. */
void mongo_waits_anew(struct mongo_waits *known, enum span span, int64_t start_ms,
                      const struct mongo_store *m);
