/* mongo/job/top_job.h - periods that are over are ranked: mongo/doc/top.h. */
#pragma once

#include "store/mongo/handle/handle.h"

bool mongo_rank(struct store *st, const struct store_roll *what, struct err *e);
/* How it stands, of one report. */
bool mongo_rank_job(struct mongo_store *m, size_t report, job_fn *fn, void *context, struct err *e);
