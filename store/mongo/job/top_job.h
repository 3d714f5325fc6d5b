/* mongo/job/top_job.h - the job that ranks periods that are over: mongo/doc/top.h. See store/jobs.h. */
#pragma once

#include "store/jobs.h"
#include "store/mongo/handle/handle.h"

bool mongo_rank(struct store *st, const struct store_roll *what, struct err *e) MUST_CHECK;
/* Tells the state of the job for one report. */
bool mongo_rank_job(struct mongo_store *m, size_t report, job_fn *fn, void *context,
                    struct err *e) MUST_CHECK;
